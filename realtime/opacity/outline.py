"""Where a face lies in the crops of a template, drawn once from the mean face; knows no picture and no frame.

A square with a soft edge is what other programs paste, and it shows: a network makes hair and wall as well, in its own
tone and as coarse as it is. Measured over twenty clips with the template ``arcface_128``: the usual squares paint 0.7
to 0.9 times the area of the face beside the face, the outline of the mean face 0.02 times, and it leaves 2 % of what
lies well inside a face to the person below (7 % in the most turned heads).
"""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np

from realtime import geometry, topology
from realtime.align import picture_from_crop
from realtime.landmarks import points5
from realtime.masks import smoothstep
from realtime.types import F32, U8

EDGE = 0.05
"""Width of the soft edge of the crop, as a share of its side: a face that reaches beyond its crop ends there."""
REACH = 0.05
"""By how much the new face goes beyond the outline of the mean face, in heights of it: faces differ, heads turn."""
FEATHER = 0.14
"""Width of the soft outline, inwards from ``REACH``, in heights of the mean face."""
SKIN_FROM, SKIN_FULL = 0.04, 0.10
"""Depth inside the outline, in heights of the mean face, from which on there is skin for certain."""
FEATURES = 0.03
"""Distance from eyes, brows and lips, in the same unit, up to which it is no skin."""

_BROWS = (
    (*topology.BROW_LEFT_TOP, 55, 65, 52, 53, 46),
    (*topology.BROW_RIGHT_TOP, 276, 283, 282, 295, 285),
)
_FINE = 256  # side of the pictures in which outlines are drawn


def edge(side: int) -> F32:
    """The crop itself with a soft edge, (side, side) float32 0..1, 0 on its outermost pixels."""
    steps = np.arange(side, dtype=np.float32)
    ramp = smoothstep(np.minimum(steps, steps[::-1]), 0, max(EDGE * side, 1.0))
    return np.outer(ramp, ramp)


@lru_cache(maxsize=8)
def face(template: str, side: int) -> F32:
    """The mean face in the crops of a template.

    Args:
        template: in ``align.TEMPLATES``.
        side: of the crop in pixels.

    Returns:
        (side, side) float32 0..1, read-only, 0 on its outermost pixels.
    """
    soft = smoothstep(_depth(template, topology.OVAL), -REACH, FEATHER - REACH)
    return _final(np.minimum(cv2.resize(soft, (side, side)), edge(side)))


@lru_cache(maxsize=8)
def skin(template: str, side: int) -> F32:
    """Where there is skin that tells the tone: not the rim, nor eyes, brows and lips. As :func:`face`."""
    soft = smoothstep(_depth(template, topology.OVAL), SKIN_FROM, SKIN_FULL)
    for loop in (topology.EYE_LEFT, topology.EYE_RIGHT, topology.LIPS_OUTER, *_BROWS):
        soft *= _depth(template, loop) < -FEATURES
    return _final(np.minimum(cv2.resize(soft, (side, side), interpolation=cv2.INTER_AREA), edge(side)))


def filled(points: F32, side: int) -> U8:
    """A polygon in a picture, with smooth borders.

    Args:
        points: (n, 2) in its pixels, origin at the centre of the first one; finite, and may lie outside.
        side: of the picture.

    Returns:
        (side, side) uint8, 255 inside.
    """
    mask = np.zeros((side, side), np.uint8)
    near = np.clip(points, -8 * side, 8 * side)  # OpenCV counts in sixteenths of a pixel, in 32 bits
    cv2.fillPoly(mask, [np.rint(near * 16).astype(np.int32)], 255, cv2.LINE_AA, shift=4)
    return mask


def _depth(template: str, loop: tuple[int, ...]) -> F32:
    """How far inside a loop of the mean face each pixel lies, in heights of the face; negative outside."""
    mean = topology.face_mesh().canonical
    crop_from_mean = geometry.invert(picture_from_crop(points5(mean) + np.float32(0.5), template, _FINE))
    points = geometry.apply(crop_from_mean, mean[list(loop), :2]).astype(np.float32)
    # Drawn with room around it: the distance to a border that lies outside the crop counts too.
    inside = (filled(points + _FINE, 3 * _FINE) > 127).astype(np.uint8)
    within, without = (cv2.distanceTransform(m, cv2.DIST_L2, cv2.DIST_MASK_PRECISE) for m in (inside, 1 - inside))
    height_px = np.float32(np.hypot(*crop_from_mean[:, 0]))  # the mean face has height 1
    return np.asarray((within - without)[_FINE:-_FINE, _FINE:-_FINE] / height_px, np.float32)


def _final(mask: F32) -> F32:
    mask = np.ascontiguousarray(mask, np.float32)
    mask.setflags(write=False)
    return mask
