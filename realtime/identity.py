"""Finds the face in a source photo; knows photos and faces, not what a swapper makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from realtime import geometry
from realtime.detect import Detector, prominence
from realtime.errors import IdentityError
from realtime.evidence import is_face
from realtime.landmarks import MeshNet, points5
from realtime.photos import read_photo
from realtime.types import F32, U8, Size

LEAST_FACE_PX = 48
"""Lowest face, brow to chin, that a photo may have: below, there is nothing to recognise anyone by."""
ROUNDS = 3
"""How often the mesh is looked for again in its own crop; the first crop, from the detector, is a rough one."""
SAME_FACE_IOU = 0.25
"""Overlap from which two meshes are of the same face."""


@dataclass(frozen=True, slots=True)
class Portrait:
    """A photo and the face in it.

    Attributes:
        path: where it came from.
        pixels: (H, W, 3) uint8 BGR.
        mesh: (468, 3) float32 in its pixels.
        faces: how many faces the photo shows; the most prominent one was taken.
    """

    path: str
    pixels: U8
    mesh: F32
    faces: int

    @property
    def points5(self) -> F32:
        """(5, 2) float32 in its pixels, see :class:`realtime.types.Face`."""
        return points5(self.mesh)


def read_portrait(path: str | Path, detector: Detector, mesh_net: MeshNet) -> Portrait:
    """Read a photo and find the face in it.

    Args:
        path: of the photo.
        detector: looks for faces.
        mesh_net: looks at one face.

    Returns:
        The most prominent face of the photo.

    Raises:
        IdentityError: the file is no usable picture, shows no face, or shows it too small.
    """
    pixels = read_photo(path)
    large_enough = min(pixels.shape[:2]) >= LEAST_FACE_PX
    meshes = _faces(pixels, detector, mesh_net) if large_enough else []
    if not meshes:
        raise IdentityError(
            f"{path} shows no face", "take a photo that shows one face upright, from the front and well lit"
        )
    height_px = float(np.ptp(meshes[0][:, :2], axis=0).max())  # also where the face lies on its side
    if height_px < LEAST_FACE_PX:
        raise IdentityError(
            f"the face in {path} is only {height_px:.0f} pixels high",
            f"take a photo in which the face is at least {LEAST_FACE_PX} pixels high, better 300",
        )
    return Portrait(str(path), pixels, meshes[0], len(meshes))


def _faces(pixels: U8, detector: Detector, mesh_net: MeshNet) -> list[F32]:
    """Find the meshes of all faces, the most prominent first."""
    meshes: list[F32] = []
    for detection in detector.detect_everywhere(pixels):
        mesh, presence = mesh_net.locate(pixels, mesh_net.crop_of_detection(detection))
        for _ in range(ROUNDS):
            mesh, again = mesh_net.locate(pixels, mesh_net.crop_of_mesh(mesh))
            presence = min(presence, again)
        overlaps = geometry.iou(geometry.bounds(mesh), [geometry.bounds(other) for other in meshes])
        if is_face(detection.score, presence) and overlaps.max(initial=0) <= SAME_FACE_IOU:
            meshes.append(mesh)
    size = Size(pixels.shape[1], pixels.shape[0])
    return sorted(meshes, key=lambda mesh: -prominence(geometry.bounds(mesh), size))
