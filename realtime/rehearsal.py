"""Pictures prepared for a measurement and the source that plays them; knows their size and pace, not what is measured.

What a bench must not count (decoding, scaling) is done before: a bounded stock of pictures is kept in memory and played
forwards and backwards, so that motion stays continuous for any length.
"""

from __future__ import annotations

import itertools
import time

import cv2
import numpy as np

from realtime.errors import SourceError
from realtime.sources import Source, SourceInfo
from realtime.sources.fit import letterbox
from realtime.sources.pace import Metronome
from realtime.types import F32, U8, Frame, Size

STOCK_BYTES = 64 * 2**20
"""Memory for the stock: 24 pictures of 1280x720, so that the bench hardly shows in the peak memory that it reports."""


class Rehearsal:
    """A source that plays a stock of pictures: at a rate as a camera does, or each one as soon as it is asked for.

    Args:
        stock: (H, W, 3) uint8 BGR pictures of one size. Copied before they are handed over, since the pipeline paints
            into what it gets; like a driver's copy this happens in the capture thread and before the time stamp.
        fps: pictures per second; 0 plays in lockstep with the reader.
        frames: pictures until the end.
    """

    def __init__(self, stock: tuple[U8, ...], fps: float, frames: int) -> None:
        self._stock, self._frames = stock, frames
        self._metronome = Metronome(fps) if fps else None
        self._seq = -1
        height, width = stock[0].shape[:2]
        self._info = SourceInfo("rehearsal", Size(width, height), fps, live=fps > 0)

    @property
    def info(self) -> SourceInfo:
        """Live when it has a rate of its own."""
        return self._info

    def read(self) -> Frame | None:
        """Give the next picture, or ``None`` after the last."""
        due_s = 0.0
        self._seq += 1
        if self._metronome:
            self._seq, due_s = self._metronome.next(time.perf_counter())
        if self._seq >= self._frames:
            return None
        pixels = self._stock[there_and_back(self._seq, len(self._stock))].copy()
        if self._metronome:
            time.sleep(max(0.0, due_s - time.perf_counter()))
        return Frame(self._seq, time.perf_counter(), pixels)

    def close(self) -> None:
        """Nothing to give back."""


def there_and_back(number: int, length: int) -> int:
    """Place in a stock that is played forwards, backwards, forwards: 0 1 2 1 0 1 2 ... for a length of 3."""
    if length == 1:
        return 0
    place = number % (2 * length - 2)
    return place if place < length else 2 * length - 2 - place


def stock_from(source: Source, size: Size, frame_from_source: F32 | None, copies: int) -> tuple[U8, ...]:
    """Read, cut out, scale and repeat pictures until the memory for them is full or the source ends.

    Args:
        source: not paced; stays open.
        size: of the pictures wanted.
        frame_from_source: (2, 3) transform from the source's pixels into a tile (pixel centres at integers), or
            ``None`` to fit the whole picture in.
        copies: the picture is repeated in a grid of so many equal tiles, 1, 4 or 9, to have so many times the faces.

    Raises:
        SourceError: the source has no picture.
    """
    tile = tile_size(size, copies)
    per_side = round(copies**0.5)
    most = max(2, STOCK_BYTES // (size.w * size.h * 3))
    stock: list[U8] = []
    for _ in itertools.repeat(None, most):
        frame = source.read()
        if frame is None:
            break
        if frame_from_source is None:
            fitted = letterbox(frame.pixels, tile)
        else:
            fitted = np.asarray(cv2.warpAffine(frame.pixels, frame_from_source, tile))
        stock.append(letterbox(np.tile(fitted, (per_side, per_side, 1)), size))
    if not stock:
        raise SourceError(f"{source.info.name} has no picture", "give a longer file, or --input demo")
    return tuple(stock)


def tile_size(size: Size, copies: int) -> Size:
    """Size of one of ``copies`` equal tiles of a picture."""
    per_side = round(copies**0.5)
    return Size(size.w // per_side, size.h // per_side)


def close_up(face_box_xyxy: F32, height_px: float, tile: Size) -> F32:
    """Make the transform that shows a face at a wanted height in the middle of a tile.

    Args:
        face_box_xyxy: (4,) of the face, from the forehead to the chin, in the source's pixels.
        height_px: wanted in the tile.
        tile: size of the tile.

    Returns:
        (2, 3) float32, for ``stock_from``. Where the tile reaches beyond the source there is black.
    """
    left, top, right, bottom = (float(side) for side in face_box_xyxy)
    scale = height_px / (bottom - top)
    shift_x, shift_y = tile.w / 2 - scale * (left + right) / 2, tile.h / 2 - scale * (top + bottom) / 2
    return np.array([[scale, 0, shift_x], [0, scale, shift_y]], np.float32)
