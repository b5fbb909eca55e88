"""Lays out where to look for faces in a picture; pure numbers, knows no network and no pixels.

Why views: the network sees 128x128 pixels and finds a face once it fills 15 % of the view. A view of the whole
picture misses a person who stands back, so a search also looks at smaller, overlapping squares. A complete search of a
16:9 picture takes 15 runs of the network; a call does three of them at most, so its cost is bounded, and a complete
search takes five calls. The first finds whoever is near, the later ones whoever stands back.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np

from realtime.types import F32, Size

SMALLEST_FACE = 0.08
"""Height of the smallest face (brows to chin) that a complete search finds, over the height of the frame."""


class View(NamedTuple):
    """A square part of the frame, in frame pixels; it may reach outside the frame, where there is black."""

    x: float
    y: float
    side: float


def plan(size: Size, smallest_face: float) -> tuple[View, ...]:
    """Lay out a complete search for faces from ``SMALLEST_FACE`` of the frame's height upwards.

    Args:
        size: of the frame.
        smallest_face: see :class:`SsdDecode`.

    Returns:
        The views in the order to look at them: the whole frame, the largest squares inside it, then squares in which
        the smallest face is just large enough, those near the middle of the upper third first, where heads are.
    """
    short, long = float(min(size)), float(max(size))
    whole = View((size.w - long) / 2, (size.h - long) / 2, long)
    side = min(short, size.h * SMALLEST_FACE / smallest_face)
    fine = _tiles(size, side, side * smallest_face * 1.4)
    fine.sort(key=lambda v: np.hypot((v.x + v.side / 2) / size.w - 1 / 2, (v.y + v.side / 2) / size.h - 1 / 3))
    return (whole, *_tiles(size, short, short * 0.2), *fine)


def around(box_xyxy: F32) -> View:
    """Return the view in which a face that is still near this box is best found.

    Args:
        box_xyxy: (4,) in frame pixels.

    Returns:
        A view of four times the box's height: a quarter of it is what the network finds best, and the face may have
        moved by more than its own size.
    """
    left, top, right, bottom = (float(v) for v in box_xyxy)
    side = 4 * (bottom - top)
    return View((left + right - side) / 2, (top + bottom - side) / 2, side)


def _tiles(size: Size, side: float, overlap: float) -> list[View]:
    """Cover a frame evenly with squares that overlap by at least ``overlap`` pixels."""
    columns, rows = (1 + ceil(max(0.0, length - side) / (side - overlap)) for length in size)
    xs = np.linspace(0, size.w - side, columns)
    ys = np.linspace(0, size.h - side, rows)
    return [View(float(x), float(y), side) for y in ys for x in xs]
