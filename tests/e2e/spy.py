"""An output that keeps what it was given, for runs that a test steers; ends the run when the test has seen enough."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from realtime.sinks import SinkClosed, SinkInfo, SinkWish
from realtime.types import U8, Frame


@dataclass
class Seen:
    """What came, and how to wait for it.

    Attributes:
        frames: pictures in their order.
        enough: ends the run when set.
    """

    frames: list[Frame] = field(default_factory=list)
    enough: threading.Event = field(default_factory=threading.Event)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def wait(self, met: Callable[[U8], bool], patience_s: float = 40.0) -> None:
        """Wait for a picture like that; one that came before the call does not count."""
        begun = len(self.frames)
        with self.changed:
            assert self.changed.wait_for(lambda: any(met(f.pixels) for f in self.frames[begun:]), patience_s)

    def next(self, count: int = 1, patience_s: float = 40.0) -> list[U8]:
        """The next pictures."""
        begun = len(self.frames)
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.frames) >= begun + count, patience_s)
        return [frame.pixels for frame in self.frames[begun : begun + count]]


SEEN = Seen()


class Spy:
    """See the module."""

    def __init__(self, target: str, wish: SinkWish) -> None:
        del target
        self._info = SinkInfo("spy", wish.size, wish.fps, live=True)

    @property
    def info(self) -> SinkInfo:
        """A live output."""
        return self._info

    def write(self, frame: Frame) -> None:
        """Keep a picture."""
        if SEEN.enough.is_set():
            raise SinkClosed
        with SEEN.changed:
            SEEN.frames.append(frame)
            SEEN.changed.notify_all()

    def close(self) -> None:
        """Nothing to give back."""
