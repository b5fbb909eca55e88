"""The embedded networks at hand for tests that need real faces; knows pictures and meshes, never what is swapped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from engines.card import load_card
from engines.contract import Device
from engines.registry import open_device, open_engine
from realtime import geometry
from realtime.detect.ssd import SsdDetector
from realtime.identity import read_portrait
from realtime.landmarks import MeshNet, points5
from realtime.meter import Meter
from realtime.swappers.mesh import MeshIdentity, identity_of
from realtime.swappers.texture import build_texture
from realtime.track import Tracker
from realtime.types import F32, U8, Face

Portrait = tuple[U8, F32]
"""A photo, (H, W, 3) uint8 BGR, and the (468, 3) mesh of the face in it."""


class Eyes:
    """The detector, the mesh network and the device that they run on."""

    def __init__(self) -> None:
        self.device: Device = open_device("cpu")
        detector, net = load_card("face_detection_short_range"), load_card("face_landmark")
        self.detector = SsdDetector(detector, open_engine(detector), self.device)
        self.net = MeshNet(net, open_engine(net), self.device)
        self._known: dict[Path, Portrait] = {}
        self._identities: dict[Path, MeshIdentity] = {}

    def portrait(self, path: Path) -> Portrait:
        """The photo of a file and its most prominent face; both are the caller's."""
        if path not in self._known:
            found = read_portrait(path, self.detector, self.net)
            self._known[path] = found.pixels, found.mesh
        pixels, mesh = self._known[path]
        return pixels.copy(), mesh.copy()

    def identity(self, path: Path) -> MeshIdentity:
        """The source face of a photo."""
        if path not in self._identities:
            self._identities[path] = identity_of(build_texture(*self.portrait(path)))
        return self._identities[path]

    def follow(self, pictures: list[U8], fps: float = 30) -> list[Face]:
        """The most prominent face in each picture of a clip in which one is always in view, as the tracker gives it."""
        tracker = Tracker(self.detector, self.net, 0.5, Meter())
        return [tracker.follow(picture, number / fps, 15).faces[0] for number, picture in enumerate(pictures)]

    def close(self) -> None:
        self.detector.close()
        self.net.close()


def face_of(mesh: F32, track_id: int = 1) -> Face:
    """The face of a mesh, as the tracker gives it."""
    return Face(geometry.bounds(mesh), 1.0, points5(mesh), mesh, track_id, 0)


def pictures_of(path: Path, most: int = 10_000) -> list[U8]:
    """The first pictures of a clip."""
    clip = cv2.VideoCapture(str(path))

    def each() -> Iterator[U8]:
        for _ in range(most):
            ok, picture = clip.read()
            if not ok:
                return
            yield np.asarray(picture, np.uint8)

    pictures = list(each())
    clip.release()
    return pictures
