"""Says when to look again at whom: at newcomers at once, at everyone else seldom and one at a time; pure in time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

AFTER_S = (0.3, 1.0)
"""Seconds from a look to the next one, for the first looks at a person: the first one may have met a bad moment."""
EVERY_S = 3.0
"""Seconds between two looks from then on. Recognising costs tens of milliseconds on a processor."""


@dataclass(slots=True)
class _Looks:
    """What has been seen of one person so far."""

    count: int
    last_s: float
    next_s: float


class Beat:
    """A timetable of looks."""

    def __init__(self) -> None:
        self._looks: dict[int, _Looks] = {}
        self._repeated_s: float | None = None

    def is_due(self, track_id: int, now_s: float) -> bool:
        """Whether to look at somebody in this frame.

        Args:
            track_id: of the person.
            now_s: when the frame was captured; the same for everyone in it.

        Returns:
            ``True`` for whoever was never looked at, and for at most one other person in each frame. A clock that has
            gone back makes a look due.
        """
        looks = self._looks.get(track_id)
        if looks is None:
            return True
        return self._repeated_s != now_s and not looks.last_s <= now_s < looks.next_s

    def looked(self, track_id: int, now_s: float) -> None:
        """Note a look."""
        before = self._looks.get(track_id)
        count = before.count if before else 0
        if before:
            self._repeated_s = now_s
        wait_s = AFTER_S[count] if count < len(AFTER_S) else EVERY_S
        self._looks[track_id] = _Looks(count + 1, now_s, now_s + wait_s)

    def hurry(self, track_id: int, at_s: float) -> None:
        """Look at somebody again at this time, if no earlier look is planned."""
        if looks := self._looks.get(track_id):
            looks.next_s = min(looks.next_s, at_s)

    def forget(self, followed: Collection[int]) -> None:
        """Drop everyone but these."""
        for track_id in [track_id for track_id in self._looks if track_id not in followed]:
            del self._looks[track_id]
