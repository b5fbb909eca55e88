"""Puts frames through the two halves of a pipeline, one or two in flight, in order; knows no thread and no device.

A second frame is begun only when it is already there: where the camera is the bottleneck nothing waits for a
frame that is yet to come, and the latency is that of one in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from realtime.types import Frame, Quality


class Process(Protocol):
    """The path of a frame in two halves. Both are called by one thread, and frames are finished as they were begun."""

    def begin(self, frame: Frame, quality: Quality) -> Any:
        """Start the work on a frame; what is returned is given to ``finish``."""

    def finish(self, begun: Any, now_s: float) -> Frame:
        """Wait for the work and return the frame that may be shown."""


@dataclass(frozen=True, slots=True)
class Done:
    """A frame that may be shown.

    Attributes:
        frame: it.
        end_s: when it was finished.
        cost_ms: work that the frames after it have to wait for: from its beginning, or from the end of the frame
            before where that came later.
    """

    frame: Frame
    end_s: float
    cost_ms: float


class Works:
    """Frames on their way through a pipeline. Used by one thread.

    Args:
        process: the pipeline.
        clock: seconds.
    """

    def __init__(self, process: Process, clock: Callable[[], float]) -> None:
        self._process, self._clock = process, clock
        self._begun: list[tuple[Any, float]] = []
        self._last_end_s = 0.0

    @property
    def busy(self) -> bool:
        """Whether a frame has begun and is not finished."""
        return bool(self._begun)

    def put(self, frame: Frame, quality: Quality) -> Iterator[Done]:
        """Begin a frame; yields those that are finished by it, in order."""
        start_s = self._clock()
        self._begun.append((self._process.begin(frame, quality), start_s))
        while len(self._begun) >= max(1, quality.in_flight):
            yield self._finish_first()

    def flush(self) -> Iterator[Done]:
        """Finish all frames that have begun, in order."""
        while self._begun:
            yield self._finish_first()

    def _finish_first(self) -> Done:
        begun, start_s = self._begun.pop(0)
        frame = self._process.finish(begun, self._clock())
        end_s = self._clock()
        cost_ms = (end_s - max(start_s, self._last_end_s)) * 1e3
        self._last_end_s = end_s
        return Done(frame, end_s, cost_ms)
