"""When a sink with a steady rate gets its next picture; pure in time, knows no picture.

A fixed grid of deadlines would make a picture that just missed one wait for nearly a whole interval: 17 ms on average
at 30 pictures/s, and for ever when camera and grid have the same rate. So a fresh picture goes out at once unless it
comes much too early, and the last one is repeated, on a grid that does not drift, only while none comes.
"""

from __future__ import annotations

import math

AFTER_FRESH = 0.8
"""Shortest time from a fresh picture to the next, in intervals: a camera's jitter passes, and a picture that had to
wait does not make all later ones wait as much."""
AFTER_REPEAT = 0.25
"""Shortest time from a repeat to a fresh picture, in intervals: a picture that was only late is not held up."""
LATE = 0.25
"""How late a fresh picture may be before the last one is repeated, in intervals."""


class Cadence:
    """Beats of one sink: exactly ``fps`` a second in silence, at most a third more with a camera that is out of step.

    Args:
        fps: beats per second, > 0.
    """

    def __init__(self, fps: float) -> None:
        self._interval_s = 1 / fps
        self._fresh_s = -math.inf  # earliest time for a fresh picture
        self._repeat_s = -math.inf  # when the last one is repeated

    def due_s(self, *, fresh: bool) -> float:
        """When a write is due: the earliest time for a fresh picture, or that at which the last one is repeated."""
        return self._fresh_s if fresh else self._repeat_s

    def beat(self, now_s: float, *, fresh: bool) -> None:
        """A picture goes out at ``now_s``. Repeats that were missed are left out and never made up for."""
        if fresh:
            self._fresh_s = now_s + AFTER_FRESH * self._interval_s
            self._repeat_s = now_s + (1 + LATE) * self._interval_s
        else:  # from the time it was due, not from now: repeats do not drift
            self._fresh_s = now_s + AFTER_REPEAT * self._interval_s
            self._repeat_s += self._interval_s
            if self._repeat_s <= now_s:
                self._repeat_s = now_s + self._interval_s
