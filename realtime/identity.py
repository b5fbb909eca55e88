"""Finds the face in a source photo; knows photos and faces, not what a swapper makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from realtime.detect import Detector
from realtime.errors import IdentityError
from realtime.landmarks import MeshNet
from realtime.photos import read_photo
from realtime.types import F32, U8

LEAST_FACE_PX = 48
"""Lowest face, brow to chin, that a photo may have: below, there is nothing to recognise anyone by."""
MIN_PRESENCE = 0.5
"""How sure the mesh network must be, 0..1."""
RIVAL = 0.8
"""Share of the best score that a candidate needs: a badge that looks like a face scores well below a real one."""
ROUNDS = 3
"""How often the mesh is looked for again in its own crop; the first crop, from the detector, is a rough one."""


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
    candidates: list[tuple[float, F32]] = []
    for detection in detector.detect_everywhere(pixels):
        mesh, presence = mesh_net.locate(pixels, mesh_net.crop_of_detection(detection))
        for _ in range(ROUNDS):
            mesh, presence = mesh_net.locate(pixels, mesh_net.crop_of_mesh(mesh))
        if presence >= MIN_PRESENCE:
            candidates.append((detection.score, mesh))
    if not candidates:
        raise IdentityError(f"{path} shows no face", "take a photo that shows one face from the front, well lit")
    best = max(score for score, _ in candidates)
    meshes = [mesh for score, mesh in candidates if score >= RIVAL * best]
    height_px = float(meshes[0][:, 1].max() - meshes[0][:, 1].min())
    if height_px < LEAST_FACE_PX:
        raise IdentityError(
            f"the face in {path} is only {height_px:.0f} pixels high",
            f"take a photo in which the face is at least {LEAST_FACE_PX} pixels high, better 300",
        )
    return Portrait(str(path), pixels, meshes[0], len(meshes))
