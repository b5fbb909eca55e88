"""Fits a picture into a size without changing its shape; knows nothing about where it came from."""

from __future__ import annotations

import cv2
import numpy as np

from realtime.types import U8, Size


def letterbox(pixels: U8, size: Size | None) -> U8:
    """Scale a picture as large as ``size`` allows and put black bars where its shape differs.

    Args:
        pixels: (H, W, 3) uint8.
        size: wanted; ``None`` leaves the picture as it is.

    Returns:
        (size.h, size.w, 3) uint8, C-contiguous; ``pixels`` itself when it has the size already.
    """
    have = Size(pixels.shape[1], pixels.shape[0])
    if size is None or have == size:
        return pixels
    inner = inscribed(have, size)
    scaled = _scale(pixels, inner)
    if inner == size:
        return scaled
    left, top = (size.w - inner.w) // 2, (size.h - inner.h) // 2
    out = np.zeros((size.h, size.w, 3), np.uint8)
    out[top : top + inner.h, left : left + inner.w] = scaled
    return out


def shrink(pixels: U8, largest: Size) -> U8:
    """Scale a picture down, shape kept, until it fits into ``largest``; ``pixels`` itself when it fits already."""
    have = Size(pixels.shape[1], pixels.shape[0])
    return pixels if have.w <= largest.w and have.h <= largest.h else _scale(pixels, inscribed(have, largest))


def inscribed(shape: Size, size: Size) -> Size:
    """Give the largest size with the proportions of ``shape`` that lies inside ``size``; at least 1x1."""
    scale = min(size.w / shape.w, size.h / shape.h)
    return Size(*(min(limit, max(1, round(side * scale))) for side, limit in zip(shape, size, strict=True)))


def _scale(pixels: U8, size: Size) -> U8:
    # Area averaging is the only cheap filter of OpenCV that does not alias when shrinking.
    smaller = size.w < pixels.shape[1] or size.h < pixels.shape[0]
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA if smaller else cv2.INTER_LINEAR))
