"""Keeps the mouth of the person in view, by the lips of the dense mesh; knows points, no picture."""

from __future__ import annotations

import cv2
import numpy as np

from realtime import geometry, topology
from realtime.opacity.outline import filled
from realtime.types import F32, F64, U8

DRAWN_PX = 128
"""Side at which it is drawn: the edge is soft, and a larger crop costs no more."""
GROWN = 0.08
"""By how much the outline of the lips is moved outwards, as a share of the mouth's width: to the skin around them."""
SOFT = 0.10
"""Width of the soft edge, in the same unit."""


class OwnMouth:
    """Where the lips and what they show are the person's own. Used by one thread.

    Args:
        side: of the crop in pixels.
    """

    def __init__(self, side: int) -> None:
        self._side = side
        self._out: U8 = np.zeros((side, side), np.uint8)

    def shown(self, mesh: F32, picture_from_crop: F64) -> U8:
        """Say where the new face may be shown.

        Args:
            mesh: (468, 3) in the picture, origin at the corner of its first pixel; may lie outside.
            picture_from_crop: (2, 3) between centres of pixels.

        Returns:
            (side, side) uint8, 0 on the mouth and 255 away from it; valid until the next call. The outline is as steady
            as the mesh, and a shut mouth is as wide as an open one. Without a usable mesh, the new mouth stays.
        """
        lips = mesh[list(topology.LIPS_OUTER), :2] - 0.5
        if not np.isfinite(lips).all():
            self._out[:] = 255
            return self._out
        lips = (geometry.apply(geometry.invert(picture_from_crop), lips) + 0.5) * (DRAWN_PX / self._side) - 0.5
        width_px = min(float(np.ptp(lips[:, 0])), DRAWN_PX)
        mouth = filled(lips.astype(np.float32), DRAWN_PX)
        grown = 2 * round(GROWN * width_px) + 1
        mouth = cv2.dilate(mouth, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (grown, grown)))
        mouth = cv2.GaussianBlur(mouth, (0, 0), max(SOFT * width_px / 2, 0.5))
        cv2.resize(cv2.bitwise_not(mouth), (self._side, self._side), dst=self._out)
        return self._out
