"""When the pictures of a file are due, whatever its time stamps say; pure arithmetic, knows no clock and no file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T")

LONGEST_GAP_S = 10.0
"""Two pictures further apart than this are a jump in the clock (an edited or damaged file), not a pause."""

EARLY = 0.25
"""How much of an output interval a picture may come too early: Matroska rounds its stamps to milliseconds."""


class Timeline:
    """Places pictures on one line that starts at 0 and never runs backwards, also over the loops of a file."""

    def __init__(self, interval_s: float) -> None:
        """Start at 0.

        Args:
            interval_s: usual distance of two pictures, for those without a usable stamp.
        """
        self._interval_s = interval_s
        self._shift_s: float | None = None
        self._last_s = -interval_s

    def place(self, stamp_s: float | None) -> float:
        """Give the place of the next picture.

        Args:
            stamp_s: what the file says, any origin; ``None`` when it says nothing.

        Returns:
            Seconds, 0 for the first picture, never less than the place before.
        """
        place_s = self._last_s + self._interval_s
        if stamp_s is not None:
            ahead_s = None if self._shift_s is None else stamp_s + self._shift_s - self._last_s
            if ahead_s is None or not -self._interval_s <= ahead_s <= LONGEST_GAP_S:
                self._shift_s = place_s - stamp_s
            else:
                place_s = self._last_s + max(0.0, ahead_s)
        self._last_s = place_s
        return place_s

    def rewind(self) -> None:
        """Let the next picture follow the last one, whatever its stamp: the file starts again."""
        self._shift_s = None


def resample(pictures: Iterator[tuple[float, T]], fps: float, interval_s: float) -> Iterator[tuple[float, T]]:
    """Repeat and leave out pictures so that they come ``fps`` times a second at the same speed.

    Args:
        pictures: (place in seconds from 0 and rising, picture).
        fps: pictures per second that come out.
        interval_s: how long the last picture lasts.

    Yields:
        (k / fps, the newest picture that is due by then).
    """
    beat = 0
    end_s = 0.0
    held: list[T] = []
    for place_s, picture in pictures:
        while held and (beat + EARLY) / fps < place_s:
            yield beat / fps, held[0]
            beat += 1
        held = [picture]
        end_s = place_s + interval_s
    while held and (beat + EARLY) / fps < end_s:
        yield beat / fps, held[0]
        beat += 1
