"""When the next picture of a source without a clock of its own is due; told the time, never asks for it."""

from __future__ import annotations

import math


class Metronome:
    """Beats at k / fps after the first call. Beats that the reader missed are left out, never made up for."""

    def __init__(self, fps: float) -> None:
        """Set the rate.

        Args:
            fps: beats per second, greater than 0.
        """
        self.fps = fps
        self._start_s: float | None = None
        self._beat = -1

    def next(self, now_s: float) -> tuple[int, float]:
        """Choose the next beat.

        Args:
            now_s: the caller's clock; never runs backwards.

        Returns:
            Number of the beat (from 0, always rising; a gap is a missed beat) and when it is due, on the same clock.
            It may be up to one beat ago: a reader that is a little late still gets it.
        """
        if self._start_s is None:
            self._start_s = now_s
        passed = math.floor((now_s - self._start_s) * self.fps)
        self._beat = max(self._beat + 1, passed)
        return self._beat, self._start_s + self._beat / self.fps
