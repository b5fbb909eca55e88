"""Compiled kernels between engine tensors, upright patches and pictures; knows planes of numbers, not what they show.

Every kernel releases the GIL, allocates nothing and writes only into the arrays it is given, as those of ``raster`` do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]

TONE_STEP = 4
"""Every so many pixels each way tell the tone: 1024 samples of a crop of 128 pixels."""

_kernel = njit(cache=True, nogil=True)


@_kernel
def develop(plane: Array, factor: Any, shift: Any, gain: Any, offset: Any, out: Array) -> tuple[float, float]:
    """Turn one channel of a tensor into one channel of a picture.

    Args:
        plane: (h, w) float32, may be strided.
        factor: grey levels for a step of 1.
        shift: grey level of 0.
        gain: multiplies the pixel.
        offset: added after that.
        out: (h, w) uint8, may be strided; overwritten, rounded and clipped.

    Returns:
        Least and greatest grey level before ``gain``; NaN both if any value is not finite.
    """
    height, width = plane.shape
    low, high, total = np.float32(np.inf), np.float32(-np.inf), np.float32(0)
    half, white, black = np.float32(0.5), np.float32(255), np.float32(0)
    for y in range(height):
        for x in range(width):
            level = plane[y, x] * factor + shift
            low, high, total = min(low, level), max(high, level), total + level * np.float32(0)
            out[y, x] = np.uint8(min(max(level * gain + offset, black), white) + half)
    if total != 0:  # infinity or NaN times 0 is NaN, which is not 0
        return np.nan, np.nan
    return float(low), float(high)


@_kernel
def tone(plane: Array, factor: Any, shift: Any, weight: Array) -> tuple[float, float]:
    """Mean and standard deviation of one channel, in grey levels.

    Args:
        plane: (h, w) float32, may be strided.
        factor: grey levels for a step of 1.
        shift: grey level of 0.
        weight: (h / TONE_STEP, w / TONE_STEP) rounded up, float32.
    """
    total, first, second = 0.0, 0.0, 0.0
    for y in range(weight.shape[0]):
        for x in range(weight.shape[1]):
            level, share = plane[y * TONE_STEP, x * TONE_STEP] * factor + shift, weight[y, x]
            total += share
            first += share * level
            second += share * level * level
    mean = first / total
    return mean, np.sqrt(max(second / total - mean * mean, 0.0))


@_kernel
def lay_over(picture: Array, patch: Array) -> None:
    """Blend a patch over a part of a picture of the same size.

    Args:
        picture: (h, w, 3) uint8, may be strided by row; painted into.
        patch: (h, w, 4) uint8, the last channel is its opacity.
    """
    for y in range(picture.shape[0]):
        for x in range(picture.shape[1]):
            share = np.int32(patch[y, x, 3])
            for k in range(3):
                below = np.int32(picture[y, x, k])
                # (v * 257 + 32896) >> 16 is v / 255 rounded, for every v that two bytes can make
                moved = (np.int32(patch[y, x, k]) - below) * share
                picture[y, x, k] = np.uint8(below + ((moved * 257 + 32896) >> 16))
