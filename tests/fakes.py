"""Scripted stand-ins for time, cameras and outputs; know the contracts they stand in for, and misbehave on request."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from realtime.types import U8, Size

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
