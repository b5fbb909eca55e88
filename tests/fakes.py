"""Scripted stand-ins for time, cameras and outputs; know the contracts they stand in for, and misbehave on request."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from realtime.errors import SourceError
from realtime.mailbox import Channel
from realtime.sinks import SinkInfo
from realtime.sources import SourceInfo
from realtime.types import U8, Frame, Quality, Size

T = TypeVar("T")
SMALL = Size(32, 24)


@dataclass
class FakeClock:
    """A clock that only moves when told to."""

    now_s: float = 100.0

    def __call__(self) -> float:
        return self.now_s

    def advance(self, seconds: float) -> None:
        self.now_s += seconds


def picture(value: int, size: Size = SMALL) -> U8:
    """A picture of one grey value."""
    return np.full((size.h, size.w, 3), value % 256, np.uint8)


@dataclass(frozen=True)
class Pictures:
    """Gives so many pictures, ``every_s`` apart; their grey value is their number."""

    count: int
    size: Size = SMALL
    every_s: float = 0.0


@dataclass(frozen=True)
class Fail:
    """Raises."""

    error: Exception


class Freeze:
    """Blocks as a dead device does: until ``thaw``, or (a polite driver) until the source is closed.

    Then the read fails, or (``wakes``) goes on with the script as if nothing had happened.
    """

    def __init__(self, *, polite: bool = True, wakes: bool = False) -> None:
        self.polite = polite
        self.wakes = wakes
        self.reached = threading.Event()
        self.thaw = threading.Event()


class FakeSource:
    """A source that follows a script and then ends."""

    def __init__(self, script: Sequence[Pictures | Fail | Freeze], *, live: bool = True, fps: float = 30.0) -> None:
        self._steps = iter(script)
        self._left = 0
        self._step: Pictures | None = None
        self._seq = -1
        self._freeze: Freeze | None = None
        self.closed = threading.Event()
        self.given: list[weakref.ref[object]] = []
        self.info = SourceInfo("fake camera", SMALL, fps, live)

    def read(self) -> Frame | None:
        while True:
            if self._step and self._left:
                return self._picture(self._step)
            step = next(self._steps, None)
            if step is None:
                return None
            if isinstance(step, Fail):
                raise step.error
            if isinstance(step, Freeze):
                self._freeze = step
                if self.closed.is_set() and step.polite:
                    step.thaw.set()
                step.reached.set()
                step.thaw.wait()
                if step.wakes:
                    continue
                raise SourceError("closed", "open it again", fatal=False)
            self._step, self._left = step, step.count

    def close(self) -> None:
        self.closed.set()
        if self._freeze and self._freeze.polite:
            self._freeze.thaw.set()

    def _picture(self, step: Pictures) -> Frame:
        if step.every_s:
            time.sleep(step.every_s)
        self._left -= 1
        self._seq += 1
        pixels = picture(self._seq, step.size)
        self.given.append(weakref.ref(pixels))
        return Frame(self._seq, time.perf_counter(), pixels)


class FakeSink:
    """A sink that notes what it is given, and fails or blocks when told to.

    Attributes:
        written: (number, grey value, size) of each picture.
    """

    def __init__(
        self,
        *,
        size: Size = SMALL,
        fps: float = 0.0,
        live: bool = True,
        main_thread: bool = False,
        fail_at: int | None = None,
        error: Exception | None = None,
        hold: threading.Event | None = None,
        close_error: Exception | None = None,
        name: str = "fake sink",
    ) -> None:
        self.info = SinkInfo(name, size, fps, live, main_thread=main_thread)
        self.written: list[tuple[int, int, Size]] = []
        self.threads: set[str] = set()
        self.closed = 0
        self._fail_at, self._error, self._hold, self._close_error = fail_at, error, hold, close_error

    def write(self, frame: Frame) -> None:
        assert not self.closed, "written after it was closed"
        self.threads.add(threading.current_thread().name)
        if self._hold is not None:
            self._hold.wait()
        if self._error is not None and self._fail_at == len(self.written):
            raise self._error
        self.written.append((frame.seq, int(frame.pixels[frame.size.h // 2, frame.size.w // 2, 0]), frame.size))

    def close(self) -> None:
        self.closed += 1
        if self._close_error is not None:
            raise self._close_error

    @property
    def seqs(self) -> list[int]:
        return [seq for seq, _, _ in self.written]


@dataclass(frozen=True)
class AtOnce:
    """A ``Process`` that does all of its work in the second half."""

    work: Callable[[Frame, Quality, float], Frame] = lambda frame, _quality, _now_s: frame

    def begin(self, frame: Frame, quality: Quality) -> tuple[Frame, Quality]:
        return frame, quality

    def finish(self, begun: tuple[Frame, Quality], now_s: float) -> Frame:
        return self.work(*begun, now_s)


def drain(channel: Channel[T]) -> Iterator[T]:
    """Read a channel until it has ended."""
    while not channel.ended:
        item = channel.get(0.1)
        if item is not None:
            yield item
