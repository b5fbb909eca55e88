"""Says how much of the new face is shown where, on the upright crop; knows masks, not what made the face."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from realtime.types import F32, F64, U8, Face

FEATHER = 0.12
"""Width of the soft edge of the crop, as a share of its side."""


class Opacity:
    """The masks of one swapper's crops, combined. Used by one thread.

    Args:
        side: of the crop in pixels.
        amount: of the new face, 0..1.
    """

    def __init__(self, side: int, amount: float = 1.0) -> None:
        edge = np.minimum(np.arange(side), np.arange(side)[::-1]) / (FEATHER * side)
        ramp = np.clip(edge, 0, 1).astype(np.float32)
        ramp = ramp * ramp * (3 - 2 * ramp)
        self.box: F32 = np.outer(ramp, ramp) * np.float32(amount)
        """(side, side) float32 0..1: the soft box, which never changes."""
        self._box_bytes: U8 = np.rint(self.box * 255).astype(np.uint8)

    def write(
        self,
        pixels: U8,
        face: Face,
        picture_from_crop: F64,
        made: F32 | None,
        now_s: float,
        steps: Collection[str],
        out: U8,
    ) -> None:
        """Write how much of the new face is shown.

        Args:
            pixels: (H, W, 3) uint8 BGR, not painted into yet. Only read.
            face: in these pixels.
            picture_from_crop: (2, 3), see :meth:`realtime.cropnet.CropNetwork.picture_from_crop`.
            made: (side, side) float32 0..1, the swapper's own mask, or ``None``.
            now_s: when the frame was captured.
            steps: the optional steps that run.
            out: (side, side) uint8, may be strided; overwritten, its outermost pixels with 0.
        """
        if made is None:
            out[:] = self._box_bytes
        else:
            np.multiply(np.minimum(self.box, made), 255, out=out, casting="unsafe")

    def forget(self, followed: Collection[int]) -> None:
        """Drop what is remembered of everyone but these track ids."""
