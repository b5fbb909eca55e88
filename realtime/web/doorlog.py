"""What is logged of strangers: who, in plain characters and in measure; judges nobody.

A stranger chooses the path, the host and half of every message, and so may write to this terminal: no character that
moves a cursor or begins a line gets there, and no flood of lines.
"""

from __future__ import annotations

import logging

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

_FROM_ONE = RateLimitItemPerMinute(10)
_FROM_ALL = RateLimitItemPerMinute(200)
_LONGEST = 200
"""Characters of a line."""


class DoorLog:
    """Writes warnings to a logger.

    Args:
        log: of the module that says them.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    def say(self, who: str, text: str) -> None:
        """Write one line, unless there were too many in the last minute.

        Args:
            who: whom it is about, by whom lines are counted.
            text: of it; may hold what they sent.
        """
        if self._limiter.hit(_FROM_ONE, who) and self._limiter.hit(_FROM_ALL):
            left = self._limiter.get_window_stats(_FROM_ONE, who).remaining
            self._log.warning("%s", plain(f"{who} {text}") + ("" if left else " (no more of these for a minute)"))


def plain(text: str) -> str:
    """The text on one line, without control characters."""
    short = text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in short)
