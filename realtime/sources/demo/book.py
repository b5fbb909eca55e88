"""A cloth-bound notebook that is held up before the face; knows how it looks, not when it comes."""

from __future__ import annotations

import cv2
import numpy as np

from realtime.sources.demo.layer import premultiply
from realtime.types import F32, U8

SIZE_PX = (150, 330)
"""Width and height in photo pixels; the lower end always stays below the picture, where the hand would be."""
MARGIN_PX = 12
"""Room around it for its shadow."""


def draw_book(scale: float) -> U8:
    """Draw the book.

    Args:
        scale: pixels in a photo pixel.

    Returns:
        (h, w, 4) uint8 BGRA premultiplied, ``MARGIN_PX`` of shadow on every side.
    """
    width, height = (round((side + 2 * MARGIN_PX) * scale) for side in SIZE_PX)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32) / scale - MARGIN_PX
    cloth = _cover(x, y)
    inside = _rounded(x, y, 0, 0, *SIZE_PX, 7)
    alpha = np.clip(0.5 - inside * scale, 0, 1)
    shadow = 0.30 * np.clip(1 - np.maximum(_rounded(x - 3, y - 4, 0, 0, *SIZE_PX, 7), 0) / 9, 0, 1) ** 2
    total = alpha + shadow * (1 - alpha)
    colour = cloth * (alpha / np.maximum(total, 1e-6))[..., None]
    return premultiply(np.rint(colour).clip(0, 255).astype(np.uint8), np.rint(total * 255).astype(np.uint8))


def _cover(x: F32, y: F32) -> F32:
    """Colour (h, w, 3) BGR of the cover at photo pixels ``x``, ``y`` from its upper left corner."""
    weave = np.random.default_rng(3).normal(0, 1, x.shape).astype(np.float32)
    weave = cv2.GaussianBlur(weave, (0, 0), 1.1, sigmaY=0.5)
    light = 1.08 - 0.0016 * x - 0.0006 * y + 0.045 * weave
    light *= 1 - 0.30 * np.exp(-(((x - 15) / 2.0) ** 2)) + 0.10 * np.exp(-(((x - 19) / 2.5) ** 2))  # hinge
    edge = np.minimum(np.minimum(x, SIZE_PX[0] - x), y)
    light *= 1 - 0.35 * np.exp(-np.maximum(edge, 0) / 1.6)
    colour = light[..., None] * np.array((96, 74, 38), np.float32)
    label = _rounded(x, y, 42, 46, 82, 52, 3)
    paper = np.array((206, 226, 232), np.float32) * light[..., None]
    colour = np.where((label < 0)[..., None], paper, colour)
    for row_px, length_px in ((66, 58), (78, 58), (88, 34)):  # what is written on the label, too far away to read
        written = np.clip(1.5 - np.abs(y - row_px), 0, 1) * np.clip((length_px / 2 - np.abs(x - 83)) + 0.5, 0, 1)
        colour *= 1 - 0.6 * written[..., None]
    band = np.clip(3.6 - np.abs(x - 133), 0, 1)[..., None]
    elastic = np.array((38, 38, 150), np.float32) * light[..., None]
    return np.asarray(colour + (elastic - colour) * band, np.float32)


def _rounded(x: F32, y: F32, left: float, top: float, width: float, height: float, radius: float) -> F32:
    """Signed distance to a rectangle with round corners, negative inside, in the unit of its arguments."""
    dx = np.abs(x - left - width / 2) - (width / 2 - radius)
    dy = np.abs(y - top - height / 2) - (height / 2 - radius)
    outside = np.hypot(np.maximum(dx, 0), np.maximum(dy, 0))
    return np.asarray(outside + np.minimum(np.maximum(dx, dy), 0) - radius, np.float32)
