"""A number of 40 bits in the corner of a picture, and back after compression and scaling; knows no clock and no peer.

Twenty columns of blocks in four rows: two rows are the number, the two below are its inverse. A block is 16 x 16 pixels
in a picture of 1280 x 720, and grows and shrinks with it. It lies at the bottom on the left, away from every face.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from realtime.types import U8, Size

BITS = 40
COLUMNS, ROWS = 20, 4
BLOCK_PX = 16
PICTURE = Size(1280, 720)
"""The size in which a block has ``BLOCK_PX``."""
DARK, BRIGHT = 32, 224
LEAST_CONTRAST = 48
"""Grey levels between a block and its inverse, below which the number is not believed."""

PLACE = {"columns": COLUMNS, "rows": ROWS, "block": BLOCK_PX, "width": PICTURE.w, "height": PICTURE.h}
"""The same for the page, which reads the number too."""


def write(pixels: U8, number: int) -> None:
    """Paint ``number`` into a picture.

    Args:
        pixels: (H, W, 3) or (H, W) uint8, H and W those of ``PICTURE`` times the same factor; painted into.
        number: only its lowest 40 bits are kept.
    """
    bits = ((number >> np.arange(BITS)) & 1).astype(bool).reshape(2, COLUMNS)
    grid = np.where(np.concatenate([bits, ~bits]), BRIGHT, DARK).astype(np.uint8)
    height, width = pixels.shape[:2]
    patch = cv2.resize(
        grid,
        (COLUMNS * BLOCK_PX * width // PICTURE.w, ROWS * BLOCK_PX * height // PICTURE.h),
        interpolation=cv2.INTER_NEAREST,
    )
    corner = pixels[height - patch.shape[0] :, : patch.shape[1]]
    corner[:] = patch if pixels.ndim == 2 else patch[..., None]


def read(pixels: NDArray[Any]) -> int | None:
    """The number in a picture.

    Args:
        pixels: (H, W, 3) BGR or (H, W) luma, uint8, of any size with the shape of ``PICTURE``; only read.

    Returns:
        ``None`` where a block cannot be told from its inverse.
    """
    means = np.array([pixels[rows, columns].mean() for rows, columns in _middles(*pixels.shape[:2])])
    difference = means[:BITS] - means[BITS:]
    if np.abs(difference).min() < LEAST_CONTRAST:
        return None
    return int(((difference > 0).astype(np.int64) << np.arange(BITS)).sum())


def _middles(height: int, width: int) -> Iterator[tuple[slice, slice]]:
    """The inner half of every block, row by row from the top: what compression smears least."""
    block_w, block_h = BLOCK_PX * width / PICTURE.w, BLOCK_PX * height / PICTURE.h
    top = height - ROWS * block_h
    for row in range(ROWS):
        for column in range(COLUMNS):
            y, x = top + (row + 0.25) * block_h, (column + 0.25) * block_w
            yield (
                slice(int(y), max(int(y) + 1, int(y + block_h / 2))),
                slice(int(x), max(int(x) + 1, int(x + block_w / 2))),
            )
