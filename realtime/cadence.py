"""When a sink with a steady rate gets its next picture; pure in time, knows no picture.

This is the generic cell rate algorithm of ATM networks. A fixed grid of deadlines would make a picture that just
missed one wait for nearly a whole interval, 17 ms on average at 30 pictures/s; here a fresh picture goes out at once
unless that would exceed the rate, and the last one is repeated only when none came in time.
"""

from __future__ import annotations

import math

EARLY = 0.5
"""How much of an interval a fresh picture may come early: a camera's jitter passes without a wait."""
LATE = 0.25
"""How much of an interval a fresh picture may be late before the last one is repeated."""


class Cadence:
    """Beats of one sink. In the long run never more than ``fps`` a second, and exactly that many in silence.

    Args:
        fps: beats per second, > 0.
    """

    def __init__(self, fps: float) -> None:
        self._interval_s = 1 / fps
        self._next_s = -math.inf  # theoretical time of the next beat

    def due_s(self, *, fresh: bool) -> float:
        """When a write is due: the earliest time for a fresh picture, or that at which the last one is repeated."""
        return self._next_s + self._interval_s * (-EARLY if fresh else LATE)

    def beat(self, now_s: float, *, fresh: bool) -> None:
        """A picture goes out at ``now_s``.

        Beats that were missed by more than an interval are left out and never made up for.
        """
        if fresh:
            self._next_s = max(self._next_s, now_s) + self._interval_s
        else:  # from the beat, not from now: repeats do not drift
            self._next_s = max(self._next_s, now_s - self._interval_s) + self._interval_s
