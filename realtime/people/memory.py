"""Keeps something for each followed person, and the time since they were last in view; knows nobody."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Generic, TypeVar

T = TypeVar("T")


class Memory(Generic[T]):
    """What is remembered of people. Used by one thread.

    Args:
        make: makes what is kept of somebody who is new.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._kept: dict[int, tuple[T, float]] = {}

    def meet(self, track_id: int, now_s: float) -> tuple[T, float]:
        """Recall somebody who is in view.

        Args:
            track_id: of the person.
            now_s: when the frame was captured.

        Returns:
            What is kept of them, and the seconds since the last call for them; 0 the first time, and for a clock that
            has gone back.
        """
        kept = self._kept.get(track_id)
        what, last_s = (self._make(), now_s) if kept is None else kept
        self._kept[track_id] = what, now_s
        return what, max(0.0, now_s - last_s)

    def drop(self, track_id: int) -> None:
        """Begin anew with somebody whose memory is spoilt."""
        self._kept.pop(track_id, None)

    def forget(self, followed: Collection[int]) -> None:
        """Drop everyone but these track ids."""
        for track_id in [track_id for track_id in self._kept if track_id not in followed]:
            del self._kept[track_id]
