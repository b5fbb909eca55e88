"""The embedded networks and the real clips, for tests that want no fakes; and how to tell whether a face is bare."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cv2
import numpy as np

from engines.card import load_card
from engines.registry import open_device, open_engine
from realtime.detect.ssd import SsdDetector
from realtime.landmarks import MeshNet
from realtime.types import F32, U8

CLIPS = ("again", "bird", "book", "brother", "eat", "help", "hungry", "learn", "milk", "night",
         "no", "please", "school", "sister", "sorry", "student", "thanks", "walk", "want", "yes")  # fmt: skip

Networks = tuple[SsdDetector, MeshNet]


@contextmanager
def open_networks() -> Iterator[Networks]:
    """Open the two embedded networks on the CPU."""
    detector_card, mesh_card, device = (
        load_card("face_detection_short_range"),
        load_card("face_landmark"),
        open_device("cpu"),
    )
    detector = SsdDetector(detector_card, open_engine(detector_card), device)
    mesh_net = MeshNet(mesh_card, open_engine(mesh_card), device)
    yield detector, mesh_net
    detector.close()
    mesh_net.close()


def clip(data_dir: Path, name: str, most: int = 1000) -> list[U8]:
    """The pictures of a clip, (480, 640, 3) BGR."""
    reader = cv2.VideoCapture(str(data_dir / "clips" / f"{name}.mkv"))
    pictures: list[U8] = []
    while len(pictures) < most and (got := reader.read())[0]:
        pictures.append(np.asarray(got[1], np.uint8))
    reader.release()
    return pictures


def face_of(detector: SsdDetector, picture: U8) -> F32:
    """Box (4,) of the face that the detector is surest of, which in every clip is the person's."""
    return max(detector.detect_everywhere(picture), key=lambda face: face.score).box_xyxy


def bareness(shown: U8, camera: U8, box: F32) -> float:
    """Correlation of the features that are shown of a face with those that the camera saw, -1..1.

    Features are what is finer than an eighth of the face: shading says little of who it is, and survives a swap.
    """
    height, width = camera.shape[:2]
    left, top, right, bottom = (int(v) for v in np.clip(box, 0, (width, height, width, height)))
    fine = []
    for picture in (shown, camera):
        part = picture[top:bottom, left:right].astype(np.float32)
        fine.append(part - cv2.GaussianBlur(part, (0, 0), (bottom - top) / 8))
    a, b = (part.ravel() - part.mean() for part in fine)
    return float(a @ b / np.sqrt((a @ a) * (b @ b) + 1e-9))
