"""Makes what is under it unrecognisable, in place; knows pictures and boxes, never why."""

from __future__ import annotations

import cv2
import numpy as np

from realtime.types import F32, U8

PICTURE_CELLS = 6
"""Cells along the short side of a frosted picture. With the 3x3 box that follows, a face that fills 90 % of the height
is left with about 2 x 2 independent values. People recognise familiar faces down to about 7 x 10 pixels (Sinha,
Balas, Ostrovsky and Russell, "Face recognition by humans: nineteen results", 2006)."""
BOX_CELLS = 4
"""The same along the longer side of a single box, where the face fills the box."""
SAMPLES = 8
"""Pixels averaged for a cell, along each side: enough, and twenty times cheaper than averaging all of them."""
GROWN = 1.6
"""Size of the frosted area over that of the box: hair, ears and chin belong to a face."""
CORE = 1.25
"""Size of the part that is frosted completely, over that of the box; from there the frost fades out to ``GROWN``."""


def frost(pixels: U8) -> None:
    """Frost a whole picture, in place.

    Args:
        pixels: (H, W, 3) uint8; overwritten.
    """
    _melt(pixels, min(pixels.shape[:2]) / PICTURE_CELLS, out=pixels)


def frost_box(pixels: U8, box_xyxy: F32) -> None:
    """Frost a face's surroundings with a soft border, in place.

    A box that is no box (not finite) frosts everything: where the face is, is then not known.

    Args:
        pixels: (H, W, 3) uint8; overwritten inside the box grown to ``GROWN``.
        box_xyxy: (4,) left, top, right, bottom in pixels; may reach outside the picture.
    """
    if not np.isfinite(box_xyxy).all():
        frost(pixels)
        return
    left, top, right, bottom = (float(side) for side in box_xyxy)
    height, width = pixels.shape[:2]
    columns, alpha_x = _fade(left, right, width)
    rows, alpha_y = _fade(top, bottom, height)
    area = pixels[rows, columns]
    if not area.size:
        return
    frosted = np.empty_like(area)
    _melt(area, max(right - left, bottom - top, 1.0) / BOX_CELLS, out=frosted)
    alpha = alpha_y[:, None] * alpha_x[None, :]
    area[:] = cv2.blendLinear(frosted, np.ascontiguousarray(area), alpha, 1 - alpha)


def _melt(pixels: U8, cell_px: float, out: U8) -> None:
    """Average over cells of about ``cell_px``, blur over 3 x 3 cells, and stretch that over ``out``."""
    height, width = pixels.shape[:2]
    cells = (max(1, round(width / cell_px)), max(1, round(height / cell_px)))
    stride = max(1, int(cell_px / SAMPLES))
    samples = np.ascontiguousarray(pixels[stride // 2 :: stride, stride // 2 :: stride])
    tiny = cv2.resize(samples, cells, interpolation=cv2.INTER_AREA)
    tiny = cv2.blur(tiny, (3, 3), borderType=cv2.BORDER_REPLICATE)
    cv2.resize(tiny, (width, height), dst=out, interpolation=cv2.INTER_CUBIC)


def _fade(low: float, high: float, limit: int) -> tuple[slice, F32]:
    """Pixels of one axis under the grown box, clipped to the picture, and how much of each is frosted (0..1)."""
    centre, half = (low + high) / 2, max(abs(high - low) / 2, 0.5)
    start = min(max(int(np.floor(centre - half * GROWN)), 0), limit)
    stop = min(max(int(np.ceil(centre + half * GROWN)), start), limit)
    distance = np.abs(np.arange(start, stop, dtype=np.float32) + 0.5 - centre) / half
    return slice(start, stop), np.clip((GROWN - distance) / (GROWN - CORE), 0, 1).astype(np.float32)
