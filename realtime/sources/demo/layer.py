"""Cut-out pictures and how they are laid over a frame; knows alpha, no people."""

from __future__ import annotations

import cv2
import numpy as np

from realtime.types import F64, U8


def premultiply(colour: U8, alpha: U8) -> U8:
    """Join colour and alpha for ``paste``.

    Args:
        colour: (H, W, 3) uint8 BGR.
        alpha: (H, W) uint8.

    Returns:
        (H, W, 4) uint8 BGRA, colour already multiplied by alpha.
    """
    covered = cv2.multiply(colour, cv2.cvtColor(alpha, cv2.COLOR_GRAY2BGR), scale=1 / 255)
    return np.dstack([covered, alpha])


def paste(frame: U8, layer: U8, x: int, y: int) -> None:
    """Lay a cut-out over a frame, in place; what reaches outside is left away.

    Args:
        frame: (H, W, 3) uint8 BGR.
        layer: (h, w, 4) uint8 BGRA from ``premultiply``, warped or not.
        x: column of the frame of the layer's first column; may be negative.
        y: row likewise.
    """
    left, top = max(x, 0), max(y, 0)
    right, bottom = min(x + layer.shape[1], frame.shape[1]), min(y + layer.shape[0], frame.shape[0])
    if left >= right or top >= bottom:
        return
    part = layer[top - y : bottom - y, left - x : right - x]
    under = frame[top:bottom, left:right]
    through = cv2.cvtColor(cv2.bitwise_not(cv2.extractChannel(part, 3)), cv2.COLOR_GRAY2BGR)
    cv2.multiply(under, through, dst=under, scale=1 / 255)
    cv2.add(under, cv2.cvtColor(part, cv2.COLOR_BGRA2BGR), dst=under)


def paste_warped(frame: U8, layer: U8, frame_from_layer: F64) -> None:
    """Lay an affinely moved cut-out over a frame, in place.

    Args:
        frame: (H, W, 3) uint8 BGR.
        layer: (h, w, 4) uint8 BGRA from ``premultiply``.
        frame_from_layer: (2, 3), pixel centres at integers.
    """
    height, width = layer.shape[:2]
    corners = np.array([(0, 0, 1), (width, 0, 1), (width, height, 1), (0, height, 1)]) @ frame_from_layer.T
    left, top = np.maximum(np.floor(corners.min(axis=0)).astype(int) - 1, 0)
    right, bottom = np.minimum(np.ceil(corners.max(axis=0)).astype(int) + 2, (frame.shape[1], frame.shape[0]))
    if left >= right or top >= bottom:
        return
    part_from_layer = frame_from_layer - np.array([[0, 0, left], [0, 0, top]])
    part = cv2.warpAffine(layer, part_from_layer, (int(right - left), int(bottom - top)), flags=cv2.INTER_LINEAR)
    paste(frame, part, int(left), int(top))
