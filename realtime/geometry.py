"""Pure geometry of points, boxes and affine transforms; knows no pictures and no models.

All coordinates have their origin at the corner of the first pixel, x right, y down, so a picture of width w spans
0..w and scaling a picture scales its coordinates. OpenCV and ``engines.contract.Device`` count from the centre of the
first pixel instead: :func:`between_centres` is the one way across.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from realtime.types import F32, F64


def invert(dst_from_src: F64) -> F64:
    """Invert an affine transform.

    Args:
        dst_from_src: (2, 3), not degenerate.

    Returns:
        ``src_from_dst``, (2, 3).
    """
    (a, b, x), (c, d, y) = dst_from_src.tolist()
    power = a * d - b * c
    a, b, c, d = d / power, -b / power, -c / power, a / power
    return np.array([[a, b, -a * x - b * y], [c, d, -c * x - d * y]])


def compose(c_from_b: F64, b_from_a: F64) -> F64:
    """Chain two affine transforms.

    Args:
        c_from_b: (2, 3), applied second.
        b_from_a: (2, 3), applied first.

    Returns:
        ``c_from_a``, (2, 3).
    """
    return np.column_stack([c_from_b[:, :2] @ b_from_a[:, :2], c_from_b[:, :2] @ b_from_a[:, 2] + c_from_b[:, 2]])


def apply(dst_from_src: F64, points: ArrayLike) -> F64:
    """Take points through an affine transform.

    Args:
        dst_from_src: (2, 3).
        points: (..., 2).

    Returns:
        (..., 2) float64.
    """
    return np.asarray(points, np.float64) @ dst_from_src[:, :2].T + dst_from_src[:, 2]


def between_centres(dst_from_src: F64) -> F64:
    """Rewrite a transform for coordinates whose origin is the centre of the first pixel.

    Args:
        dst_from_src: (2, 3) between coordinates with the origin at the corner of the first pixel.

    Returns:
        (2, 3), the same transform for OpenCV and for ``Device.crop``.
    """
    shifted = dst_from_src.copy()
    shifted[:, 2] += dst_from_src[:, :2] @ (0.5, 0.5) - 0.5
    return shifted


def similarity(src: ArrayLike, dst: ArrayLike) -> F64:
    """Fit the similarity (turn, uniform scale, shift; no mirror) with the least squared error.

    Source: S. Umeyama, "Least-squares estimation of transformation parameters between two point patterns", IEEE
    PAMI 13(4), 1991; in the plane it has the closed form of complex numbers used here.

    Args:
        src: (n, 2), at least two points that are not all the same.
        dst: (n, 2).

    Returns:
        ``dst_from_src``, (2, 3).
    """
    a, b = _complex(src), _complex(dst)
    a0, b0 = complex(a.sum()) / a.size, complex(b.sum()) / b.size
    a, b = a - a0, b - b0
    turn = complex(np.vdot(a, b)) / complex(np.vdot(a, a))
    shift = b0 - turn * a0
    return np.array([[turn.real, -turn.imag, shift.real], [turn.imag, turn.real, shift.imag]])


def _complex(points: ArrayLike) -> NDArray[np.complex128]:
    """The points (n, 2) as n numbers x + iy."""
    return np.ascontiguousarray(points, np.float64).view(np.complex128)[:, 0]


def square_crop(centre: ArrayLike, side_px: float, level: ArrayLike, crop_px: int) -> F64:
    """Describe a square crop that is turned until a given direction is level in it.

    Args:
        centre: (2,) centre of the crop in the frame.
        side_px: side of the square in the frame, > 0.
        level: (2,) direction in the frame that shall point right in the crop, e.g. from the left eye to the right.
        crop_px: width and height of the crop.

    Returns:
        ``frame_from_crop``, (2, 3).
    """
    x, y = (float(v) for v in np.asarray(level, np.float64))
    length = np.hypot(x, y)
    cos, sin = (x / length, y / length) if length > 0 else (1.0, 0.0)
    linear = np.array([[cos, -sin], [sin, cos]]) * (side_px / crop_px)
    return np.column_stack([linear, np.asarray(centre, np.float64) - linear @ (crop_px / 2, crop_px / 2)])


def bounds(points: ArrayLike) -> F32:
    """Return the box around points.

    Args:
        points: (n, 2 or more), n >= 1; only x and y count.

    Returns:
        (4,) float32, left, top, right, bottom.
    """
    columns = np.asarray(points)
    x, y = columns[:, 0], columns[:, 1]  # one axis at a time: five times as fast as min(axis=0)
    return np.array([x.min(), y.min(), x.max(), y.max()], np.float32)


def iou(box: ArrayLike, boxes: ArrayLike) -> F64:
    """Measure how much boxes overlap: the area of the intersection over that of the union.

    Args:
        box: (4,) left, top, right, bottom.
        boxes: (n, 4).

    Returns:
        (n,) in 0..1; 0 for boxes without area.
    """
    one, many = np.asarray(box, np.float64), np.asarray(boxes, np.float64).reshape(-1, 4)
    inner = np.maximum(np.minimum(one[2:], many[:, 2:]) - np.maximum(one[:2], many[:, :2]), 0).prod(axis=1)
    total = (one[2:] - one[:2]).prod() + (many[:, 2:] - many[:, :2]).prod(axis=1) - inner
    return np.asarray(np.divide(inner, total, out=np.zeros_like(inner), where=total > 0))


def groups(boxes: ArrayLike, scores: ArrayLike, overlap_iou: float) -> list[NDArray[np.intp]]:
    """Group boxes that overlap the best of their group (non-maximum suppression that keeps the losers).

    Args:
        boxes: (n, 4) left, top, right, bottom.
        scores: (n,).
        overlap_iou: boxes with at least this IoU to the best of a group belong to it, in (0, 1].

    Returns:
        Indices of each group, best score first, in the group and among groups; every box is in exactly one.
    """
    all_boxes = np.asarray(boxes, np.float64).reshape(-1, 4)
    left = np.argsort(-np.asarray(scores, np.float64), kind="stable")
    found = []
    while left.size:
        same = iou(all_boxes[left[0]], all_boxes[left]) >= overlap_iou
        same[0] = True  # a box without area overlaps nothing, not even itself
        found.append(left[same])
        left = left[~same]
    return found
