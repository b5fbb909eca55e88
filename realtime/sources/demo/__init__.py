"""The built-in demo as a source: a drawn person before a drawn room, at the wanted size and rate; knows pacing only.

The folder draws it: ``motion`` says how she moves, ``face`` and ``head`` move the portrait, ``scene`` lays it over the
room.
"""

from __future__ import annotations

import time

from realtime.errors import SourceError
from realtime.sources import SourceInfo, SourceWish
from realtime.sources.demo.motion import PERIOD_S
from realtime.sources.demo.scene import Scene
from realtime.sources.handle import Handle
from realtime.sources.pace import Metronome
from realtime.types import Frame, Size

DEFAULT_SIZE = Size(1280, 720)
DEFAULT_FPS = 30.0
SMALLEST = Size(64, 64)
"""Below this nothing of a face is left to draw."""


class DemoSource:
    """A person who talks, nods, blinks and holds up a book; a loop of ``PERIOD_S`` seconds that never ends.

    Picture number ``seq`` shows the loop at ``seq / fps`` seconds, however late it is read. Paced (``wish.paced``) it
    is live like a camera: a late reader skips. Not paced, it draws the next picture at once and none is skipped.
    """

    def __init__(self, target: str, wish: SourceWish) -> None:
        """Prepare the scene.

        Args:
            target: empty; there is one scene.
            wish: ``size`` (1280x720), ``fps`` (30) and ``paced`` are used.

        Raises:
            SourceError: there is a target, or the size is too small to draw.
        """
        if target:
            raise SourceError(f"the demo has no scene called {target!r}", "give demo alone")
        size = wish.size or DEFAULT_SIZE
        if size.w < SMALLEST.w or size.h < SMALLEST.h:
            raise SourceError(f"the demo cannot be drawn at {size}", f"ask for {SMALLEST} or more")
        self._metronome = Metronome(wish.fps or DEFAULT_FPS)
        self._seq = -1
        facts = (f"built-in demo, a loop of {PERIOD_S:g} s",)
        self._info = SourceInfo("demo", size, self._metronome.fps, live=wish.paced, facts=facts)
        self._handle: Handle[Scene] = Handle("demo", Scene(size), lambda _: None)

    @property
    def info(self) -> SourceInfo:
        """The size that is drawn and the rate that is kept."""
        return self._info

    def read(self) -> Frame:
        """Wait for the next beat where paced, and draw its picture.

        Raises:
            SourceError: closed.
        """
        with self._handle.use() as scene:
            if not self._info.live:
                self._seq += 1
                film_s = self._seq / self._info.fps
                return Frame(self._seq, time.perf_counter(), scene.draw(film_s), film_s)
            # A camera's picture is ready when it is handed over: the time it takes to draw one is not part of its age.
            self._seq, due_s = self._metronome.next(time.perf_counter())
            pixels = scene.draw(self._seq / self._info.fps)
            return Frame(self._seq, self._handle.sleep_until(due_s), pixels)

    def close(self) -> None:
        """Stop; a sleeping reader gets an error within 0.1 s."""
        self._handle.close()
