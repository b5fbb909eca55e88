"""Draws a person whose mesh is known exactly: a photo's skin on the mean face, eyes and mouth of plain colours."""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from engines.cpu import CpuDevice
from realtime import topology
from realtime.meter import Meter
from realtime.swappers import OBSTACLES, Look
from realtime.swappers.mesh import MeshIdentity, MeshSwapper
from realtime.swappers.texture import FaceTexture
from realtime.types import F32, U8, Size
from tests.faces import face_of

WEBCAM: Final = Size(640, 480)
MOUTH_BGR: Final = (40, 20, 110)
EYE_BGR: Final = (150, 90, 20)
"""Colours that no skin has."""

FRAME_S: Final = 1 / 30
LOOK: Final = Look()
AS_IT_IS: Final = Look(likeness=0)
"""The person's own shape: every point of the new face is where the person's is."""

_UPPER = {*topology.LIPS_INNER[:11], *topology.LIPS_OUTER[:11]}


def pose(
    *,
    at: tuple[float, float] = (320, 240),
    height_px: float = 200,
    yaw_rad: float = 0,
    roll_rad: float = 0,
    mouth: float = 0,
) -> F32:
    """A mesh in frame pixels.

    Args:
        at: middle of the face.
        height_px: of the face, forehead to chin.
        yaw_rad: positive to the right of the picture.
        roll_rad: clockwise.
        mouth: opening in face heights; 0 is shut.

    Returns:
        (468, 3) float32.
    """
    points = topology.face_mesh().canonical.astype(np.float64)
    half = len(topology.LIPS_INNER) // 2
    upper, lower = topology.LIPS_INNER[1:half], topology.LIPS_INNER[:half:-1]
    points[list(lower)] = points[list(upper)]  # the mean face smiles a little
    below = (points[:, 1] > points[[78, 308], 1].mean()) | np.isin(np.arange(468), lower)
    below &= ~np.isin(np.arange(468), list(_UPPER))
    points[below, 1] += mouth * np.clip(1.2 - np.abs(points[below, 0]) / 0.25, 0, 1)
    yaw, roll = (cv2.Rodrigues(np.array(axis, np.float64))[0] for axis in ((0, -yaw_rad, 0), (0, 0, roll_rad)))
    return np.asarray(height_px * points @ (roll @ yaw).T + (*at, 0), np.float32)


def room(size: Size = WEBCAM) -> U8:
    """A wall with a pattern, so that every change of it is seen."""
    y, x = np.mgrid[: size.h, : size.w]
    return np.stack([100 + x % 60, 120 + y % 50, 90 + (x + y) % 70], axis=-1).astype(np.uint8)


def inside(shape: tuple[int, ...], mesh: F32, loop: tuple[int, ...], shrink_px: int = 0) -> NDArray[np.bool_]:
    """(H, W) bool, pixels inside a loop of mesh points, a few pixels from its border."""
    mask = np.zeros(shape[:2], np.uint8)
    cv2.fillPoly(mask, [np.round((mesh[list(loop), :2] - 0.5) * 16).astype(np.int32)], 255, shift=4)
    return cv2.erode(mask, np.ones((3, 3), np.uint8), iterations=shrink_px) > 0


class Actor:
    """One person, in front of the wall."""

    def __init__(self, skin: FaceTexture) -> None:
        self._skin, self._device = skin, CpuDevice()

    def picture(self, mesh: F32, size: Size = WEBCAM, light: float | tuple[float, float] = 1.0) -> U8:
        """The person with this mesh.

        Args:
            mesh: (468, 3) in frame pixels.
            size: of the frame.
            light: brightness, or that of the left and of the right side of the face.
        """
        picture = room(size)
        attributes = np.zeros((468, 8), np.float32)
        attributes[:, :2], attributes[:, 2] = topology.face_mesh().uv, 1
        left, right = light if isinstance(light, tuple) else (light, light)
        attributes[:, 5:] = (left + (right - left) * attributes[:, 0])[:, None]
        level = self._skin.levels[1 if np.ptp(mesh[:, 1]) > 120 else 2]
        opaque = np.ones((2, 2, 2), np.float32)
        on_centres = mesh - np.array([0.5, 0.5, 0], np.float32)
        self._device.draw(picture, on_centres, attributes, topology.face_mesh().triangles, level, opaque)
        for loop, colour in (
            (topology.EYE_LEFT, EYE_BGR),
            (topology.EYE_RIGHT, EYE_BGR),
            (topology.LIPS_INNER, MOUTH_BGR),
        ):
            picture[inside(picture.shape, mesh, loop)] = np.array(colour) * (left + right) / 2
        return picture


def a_swapper(*photos: MeshIdentity, look: Look = LOOK) -> MeshSwapper:
    return MeshSwapper(CpuDevice(), photos, look, Meter())


def swapped(swapper: MeshSwapper, picture: U8, mesh: F32, frames: int = 1, start_s: float = 0.0) -> U8:
    """The last of so many pictures of the same moment."""
    for number in range(frames):
        out = picture.copy()
        assert swapper.swap(out, face_of(mesh), start_s + number * FRAME_S, {OBSTACLES})
    return out


def off(one: U8, other: U8, where: NDArray[np.bool_]) -> F32:
    """Differences in grey levels, the largest of the channels."""
    return np.abs(one[where].astype(np.float32) - other[where]).max(axis=-1)


def cheeks(mesh: F32) -> NDArray[np.bool_]:
    """(H, W) bool: small discs on the cheeks in a webcam picture."""
    mask = np.zeros((WEBCAM.h, WEBCAM.w), np.uint8)
    for x, y in mesh[list(topology.CHEEKS), :2]:
        cv2.circle(mask, (int(x), int(y)), 8, 255, -1)
    return mask > 0


def brightness(picture: U8, mesh: F32) -> float:
    return float(picture[cheeks(mesh)].mean())
