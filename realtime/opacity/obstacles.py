"""Sees what is in front of a face without a network, by a memory of what it looks like; knows no swapper.

The memory is that of the mesh swapper (``masks.Appearance``), in the face's own texture; here it is laid over the crop.
"""

from __future__ import annotations

from collections.abc import Collection

import cv2
import numpy as np

from engines.contract import Device
from realtime import geometry, topology
from realtime.masks import Appearance
from realtime.people.memory import Memory
from realtime.swappers import OBSTACLES
from realtime.swappers.shape import Shape
from realtime.types import F32, F64, U8, Face

JUDGED_PX = 64
"""Side of the texture in which obstacles are judged, as in the mesh swapper."""
LAID_PX = 96
"""Side at which the judgement is laid over the crop: it is smooth, so more would show nothing more."""
BEYOND = 0.15
"""Width of the blur that carries the judgement beyond the mesh, as a share of the crop: a hand does not end there."""
_HALF_PIXEL = np.array([0.5, 0.5, 0], np.float32)


class Obstacles:
    """The step "obstacles" of the swappers that work on crops. Used by one thread.

    Args:
        device: unwraps and draws.
        side: of the crop in pixels.
    """

    step = OBSTACLES

    def __init__(self, device: Device, side: int) -> None:
        self._device, self._side = device, side
        self._people = Memory(Appearance)
        self._texels = topology.texel_map(JUDGED_PX)
        self._triangles = topology.closed_triangles()
        self._seen: F32 = np.zeros((JUDGED_PX, JUDGED_PX, 3), np.float32)
        self._known: F32 = np.zeros((JUDGED_PX, JUDGED_PX), np.float32)
        self._texture: U8 = np.zeros((JUDGED_PX, JUDGED_PX, 3), np.uint8)  # blocked, and where that can be told
        self._texture[..., 1] = 255 * self._texels.inside
        self._opaque: F32 = np.ones((2, 2, 2), np.float32)
        self._attributes: F32 = np.ones((468, 8), np.float32)
        self._attributes[:, :2] = topology.face_mesh().uv
        self._attributes[:, 3:5] = 0
        self._canvas: U8 = np.zeros((LAID_PX, LAID_PX, 3), np.uint8)
        self._out: U8 = np.zeros((side, side), np.uint8)

    def shown(self, pixels: U8, face: Face, picture_from_crop: F64, now_s: float) -> U8:
        """See :class:`realtime.opacity.Part`."""
        appearance, dt_s = self._people.meet(face.track_id, now_s)
        blocked = self._blocked(pixels, face.mesh - _HALF_PIXEL, appearance, dt_s)
        if blocked is None:
            self._people.drop(face.track_id)  # what is remembered is spoilt, or of no use
            self._out[:] = 255
            return self._out
        np.multiply(blocked, self._texture[..., 1], out=self._texture[..., 0], casting="unsafe")
        self._lay(face.mesh - _HALF_PIXEL, picture_from_crop)
        return self._out

    def forget(self, followed: Collection[int]) -> None:
        """See :class:`realtime.opacity.Part`."""
        self._people.forget(followed)

    def _blocked(self, pixels: U8, mesh: F32, appearance: Appearance, dt_s: float) -> F32 | None:
        """What is in front, (``JUDGED_PX``, ``JUDGED_PX``) float32 0..1; ``None`` when it cannot be told."""
        height, width = pixels.shape[:2]
        if not np.isfinite(mesh).all():
            return None
        bounds = geometry.bounds(mesh)
        left, top = (int(v) for v in np.clip(bounds[:2] - 1, 0, (width, height)))
        right, bottom = (int(v) for v in np.clip(bounds[2:] + 2, 0, (width, height)))
        if right - left < 2 or bottom - top < 2:
            return None
        corner = np.array([left, top, 0], np.float32)
        self._device.unwrap(
            pixels[top:bottom, left:right],
            mesh - corner,
            topology.facing(mesh),
            self._texels.corners,
            self._texels.weights,
            self._seen,
            self._known,
        )
        blocked = appearance.blocked(self._seen, self._known, Shape(mesh).rotation[:, 2], dt_s)
        return blocked if np.isfinite(blocked).all() else None

    def _lay(self, mesh: F32, picture_from_crop: F64) -> None:
        """Draw the judgement where the mesh is in the crop and write what may be shown.

        It is carried over the holes of the mesh, eyes and mouth, where nothing can be told, and a little beyond it.
        """
        scale = LAID_PX / self._side
        laid = mesh.copy()
        laid[:, :2] = (geometry.apply(geometry.invert(picture_from_crop), mesh[:, :2]) + 0.5) * scale - 0.5
        laid[:, 2] *= scale / np.hypot(picture_from_crop[0, 0], picture_from_crop[1, 0])
        self._canvas[:] = 0
        self._device.draw(self._canvas, laid, self._attributes, self._triangles, self._texture, self._opaque)
        soft = cv2.blur(self._canvas, (round(BEYOND * LAID_PX), round(BEYOND * LAID_PX)))
        blocked, told, _ = cv2.split(self._canvas)
        around, weight, _ = cv2.split(soft)
        np.copyto(blocked, cv2.divide(around, weight, scale=255), where=told < 255)  # 0 where nothing is near
        cv2.resize(cv2.bitwise_not(blocked), (self._side, self._side), dst=self._out)
