"""How long the steps of a frame take on the device, by events in its streams; knows names, no work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from engines.cuda.driver import Driver, Event, Stream

MOST_PIECES = 64
"""Pieces of work that are timed in a frame: six for each of eight faces, and the copies. Others go untimed."""


class Laps:
    """The pieces of work of one frame. What a stream waits for others is none of it.

    Args:
        driver: makes the events.
    """

    def __init__(self, driver: Driver) -> None:
        self._pairs = [(driver.event(timing=True), driver.event(timing=True)) for _ in range(MOST_PIECES)]
        self._timed: list[tuple[str, Event, Event]] = []

    @contextmanager
    def lap(self, stream: Stream) -> Iterator[None]:
        """Time what the stream is given within the context, after it was told what to wait for."""
        if len(self._timed) == MOST_PIECES:
            yield
            return
        begin, end = self._pairs[len(self._timed)]
        stream.record(begin)
        yield
        stream.record(end)
        self._timed.append((stream.name, begin, end))

    def clear(self) -> None:
        """Begin another frame."""
        self._timed.clear()

    def total_ms(self) -> Mapping[str, float]:
        """Time by the name of the stream; everything must have happened."""
        totals: defaultdict[str, float] = defaultdict(float)
        for name, begin, end in self._timed:
            totals[name] += end.ms_since(begin)
        return dict(totals)
