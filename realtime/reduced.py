"""Swaps a face on a smaller copy of its surroundings, to save time; knows scales and seams, not how faces are swapped.

Why not shrink the frame: everything but the drawing costs the same at any size, and a frame that went through a smaller
one is soft everywhere. So only what the swapper has changed comes from the smaller copy.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import cv2
import numpy as np

from realtime.swappers import Swapper
from realtime.types import F32, U8, Face

LEAST_FACE_PX = 96
"""No face is worked on at a lower height than this (or its own): lower ones are cheap, and look it."""
MARGIN = 0.25
"""Surroundings on each side, in heights of the box: a swapper may paint a little beyond it."""
SEAM_PX = 3
"""Width of the grown and softened seam, in pixels of the copy."""


def swap(swapper: Swapper, pixels: U8, face: Face, now_s: float, steps: Collection[str], scale: float) -> bool:
    """Paint over one face, at a smaller size where that saves time.

    Args:
        swapper: that paints.
        pixels: (H, W, 3) uint8 BGR; painted into, around the face only.
        face: in these pixels.
        now_s: when the frame was captured.
        steps: the optional steps that run.
        scale: size to work at over the size in the picture, in (0, 1].

    Returns:
        See :class:`realtime.swappers.Swapper`.
    """
    left, top, right, bottom = (float(side) for side in face.box_xyxy)
    scale = max(scale, min(1.0, LEAST_FACE_PX / max(bottom - top, 1.0)))
    if scale >= 1:
        return swapper.swap(pixels, face, now_s, steps)
    margin = MARGIN * (bottom - top)
    x0, y0 = max(int(left - margin), 0), max(int(top - margin), 0)
    part = pixels[y0 : max(int(bottom + margin), 0), x0 : max(int(right + margin), 0)]
    height, width = (round(side * scale) for side in part.shape[:2])
    if min(height, width) < 1:
        return False
    small = cv2.resize(part, (width, height), interpolation=cv2.INTER_AREA)
    before = small.copy()
    factor = np.array([width / part.shape[1], height / part.shape[0]], np.float32)
    if not swapper.swap(small, _moved(face, np.array([x0, y0], np.float32), factor), now_s, steps):
        return False
    _lay_over(part, small, _changed(before, small))
    return True


def _moved(face: Face, corner: F32, factor: F32) -> Face:
    """The face in a part of the picture that begins at ``corner`` (2,) and is ``factor`` (2,) times as large."""
    mesh = face.mesh.copy()
    mesh[:, :2] -= corner
    mesh *= np.append(factor, factor[1])
    return replace(
        face,
        box_xyxy=(face.box_xyxy - np.tile(corner, 2)) * np.tile(factor, 2),
        points5=(face.points5 - corner) * factor,
        mesh=mesh,
    )


def _changed(before: U8, after: U8) -> F32:
    """Where a picture was painted into: 1 there and close by, then falling softly to 0."""
    same = cv2.inRange(cv2.absdiff(before, after), (0, 0, 0), (0, 0, 0))
    kept = cv2.erode(same, np.ones((2 * SEAM_PX + 1, 2 * SEAM_PX + 1), np.uint8))
    return cv2.blur((kept == 0).astype(np.float32), (SEAM_PX, SEAM_PX))


def _lay_over(part: U8, small: U8, opacity: F32) -> None:
    """Enlarge a picture and its opacity over a part of the frame, in place."""
    size = (part.shape[1], part.shape[0])
    over = cv2.resize(small, size, interpolation=cv2.INTER_LINEAR)
    alpha = cv2.resize(opacity, size, interpolation=cv2.INTER_LINEAR)
    part[:] = cv2.blendLinear(over, np.ascontiguousarray(part), alpha, 1 - alpha)
