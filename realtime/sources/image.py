"""A still picture as a camera: the same pixels at a steady rate; knows clocks, leaves reading to ``photos``."""

from __future__ import annotations

import time
from pathlib import Path

from realtime.errors import IdentityError, SourceError
from realtime.photos import read_photo
from realtime.sources import SourceInfo, SourceWish
from realtime.sources.fit import letterbox, shrink
from realtime.sources.handle import Handle
from realtime.sources.pace import Metronome
from realtime.types import U8, Frame, Size

DEFAULT_FPS = 30.0

LARGEST = Size(1920, 1080)
"""A still without a wanted size is shrunk to fit in here: no camera sends the 12 megapixels of a phone's photo."""


class ImageSource:
    """A still picture, handed out ``wish.fps`` times a second until it is closed. Live: a late reader skips."""

    def __init__(self, target: str, wish: SourceWish) -> None:
        """Read the picture.

        Args:
            target: path of the file.
            wish: ``size`` and ``fps`` (30) are used.

        Raises:
            SourceError: missing, empty, damaged, no picture, or above 50 megapixels.
        """
        try:
            picture = read_photo(target)
        except IdentityError as error:
            raise SourceError(error.message, error.hint) from error
        pixels = letterbox(picture, wish.size) if wish.size else shrink(picture, LARGEST)
        have, size = Size(picture.shape[1], picture.shape[0]), Size(pixels.shape[1], pixels.shape[0])
        facts = (f"still picture {have}" + (f", shown as {size}" if have != size else ""),)
        self._metronome = Metronome(wish.fps or DEFAULT_FPS)
        self._info = SourceInfo(Path(target).name, size, self._metronome.fps, live=True, facts=facts)
        self._handle: Handle[U8] = Handle(self._info.name, pixels, lambda _: None)

    @property
    def info(self) -> SourceInfo:
        """The size that is handed out and the rate that is kept."""
        return self._info

    def read(self) -> Frame:
        """Wait for the next beat and hand over a copy of the picture.

        Raises:
            SourceError: closed.
        """
        with self._handle.use() as pixels:
            copy = pixels.copy()
            seq, due_s = self._metronome.next(time.perf_counter())
            return Frame(seq, self._handle.sleep_until(due_s), copy)

    def close(self) -> None:
        """Stop; a sleeping reader gets an error within 0.1 s."""
        self._handle.close()
