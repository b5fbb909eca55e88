"""The sink that takes every picture and keeps none; knows how many came."""

from __future__ import annotations

from realtime.sinks import SinkInfo, SinkWish
from realtime.types import Frame


class Null:
    """Takes all and counts, for measuring the rest of the program.

    Attributes:
        frames: pictures taken so far.
    """

    def __init__(self, target: str, wish: SinkWish) -> None:
        del target  # nothing to choose
        self.frames = 0
        self._info = SinkInfo("null", wish.size, fps=0.0, live=wish.live, facts=wish.notes)

    @property
    def info(self) -> SinkInfo:
        """The wished size, odd or even; every picture once, at no cadence of its own."""
        return self._info

    def write(self, frame: Frame) -> None:
        """Count one picture."""
        del frame
        self.frames += 1

    def close(self) -> None:
        """Nothing to give back."""
