"""Shifts the shades of a patch until it meets the picture around it without a seam (Poisson blending); knows no face.

What Poisson blending adds to a patch is smooth: it takes the value that is missing at the outline and spreads it
inwards. So it is solved on a small copy of the crop, and only what it adds is enlarged: the detail stays that of the
patch, the cost does not grow with the face, and it stays inside the face's rectangle by itself.
"""

from __future__ import annotations

import cv2
import numpy as np

from realtime import geometry
from realtime.types import F64, U8

SOLVED_PX = 96
"""Side of the copy that is solved. Measured on one core of a server: 1.3 ms for 96 x 96, 8 for 212, 29 for 420."""
INSIDE = 24
"""Opacity in grey levels from which on a pixel counts as the new face's: its outline is where it begins to show."""
LEAST_PX = 10
"""Least width and height of the new face in the copy: OpenCV takes three pixels away all around, and fails on less."""

_INVERSE = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP


class Poisson:
    """The blending of one swapper's patches. It remembers nothing. Used by one thread.

    Args:
        side: of the patches in pixels.
    """

    def __init__(self, side: int) -> None:
        self._side, self._n = side, min(side, SOLVED_PX)
        n = self._n
        self._below: U8 = np.zeros((n, n, 3), np.uint8)
        self._inside: U8 = np.zeros((n, n), np.uint8)

    def blend(self, pixels: U8, picture_from_crop: F64, opacity: U8, patch: U8) -> bool:
        """Shift the colours of a patch.

        Args:
            pixels: (H, W, 3) uint8 BGR, not painted into yet. Only read.
            picture_from_crop: (2, 3) between centres of pixels, of the patch.
            opacity: (side, side) uint8: outline of the new face, without what is in front of it. Only read.
            patch: (side, side, 4) uint8; blue, green and red are overwritten.

        Returns:
            ``False`` where too little of the face is in the picture to tell; then the patch is as it was.
        """
        n = self._n
        crop_from_small = np.array([[1, 0, 0], [0, 1, 0]]) * (self._side / n)
        crop_from_small[:, 2] = (self._side / n - 1) / 2
        picture_from_small = geometry.compose(picture_from_crop, crop_from_small)
        cv2.warpAffine(
            pixels, picture_from_small, (n, n), dst=self._below, flags=_INVERSE, borderMode=cv2.BORDER_REPLICATE
        )
        self._find_inside(opacity, picture_from_small, pixels.shape)
        left, top, width, height = cv2.boundingRect(self._inside)
        if min(width, height) < LEAST_PX:
            return False
        colours = cv2.cvtColor(patch, cv2.COLOR_BGRA2BGR)  # numpy takes a hundred times as long to drop a channel
        new = cv2.resize(colours, (n, n), interpolation=cv2.INTER_AREA)
        middle = (left + width // 2, top + height // 2)
        # It overwrites the mask that it is given.
        solved = cv2.seamlessClone(new, self._below, self._inside.copy(), middle, cv2.NORMAL_CLONE)
        added = cv2.subtract(solved, new, mask=self._inside, dtype=cv2.CV_16S)
        added = cv2.resize(added, (self._side, self._side))
        cv2.mixChannels([cv2.add(colours, added, dtype=cv2.CV_8U)], [patch], [0, 0, 1, 1, 2, 2])
        return True

    def _find_inside(self, opacity: U8, picture_from_small: F64, shape: tuple[int, ...]) -> None:
        """Mark the pixels of the new face that are in the picture."""
        n, inside = self._n, self._inside
        cv2.resize(opacity, (n, n), dst=inside, interpolation=cv2.INTER_AREA)
        cv2.threshold(inside, INSIDE, 255, cv2.THRESH_BINARY, dst=inside)
        along, down = np.arange(n), np.arange(n)[:, None]
        for (a, b, c), end in zip(picture_from_small, (shape[1], shape[0]), strict=True):
            place = a * along + b * down + c
            inside[(place < 0) | (place > end - 1)] = 0
        inside[[0, -1]] = inside[:, [0, -1]] = 0  # what lies around it must be in the copy
