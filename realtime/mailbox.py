"""Hands items from one thread to another, latest wins or every one in order; knows nothing of what it hands over."""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")

POLL_S = 0.1
"""Longest wait between two looks at whether a channel was closed; closing wakes a waiting thread at once anyway."""


class Channel(Protocol[T]):
    """One edge between two threads. One writer and one reader; ``close`` may come from any thread."""

    @property
    def ended(self) -> bool:
        """Closed and read to the end: nothing will ever come again."""

    def put(self, item: T) -> int:
        """Hand an item over.

        Returns:
            How many items (this one or an unread older one) will never be read because of it: what to count as drops.
        """

    def get(self, timeout_s: float) -> T | None:
        """Take the next item; ``None`` when none came in time or the channel has ended."""

    def close(self) -> None:
        """Take nothing more and wake both ends; what was put before can still be read. Safe to call twice."""


class Mailbox(Generic[T]):
    """A slot for one item: an unread item is replaced by a newer one. The edge of a live path.

    A queue in a live path is latency with a name, so there is never more than one unread item here. The lock is held
    only while references change hands, never over work.

    Attributes:
        put_count: items ever put.
        taken: items ever read.
        dropped: items that were replaced unread, or put after the end. ``put_count == taken + dropped + pending``.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._slot: list[T] = []  # empty, or the one unread item
        self._closed = False
        self.put_count = 0
        self.taken = 0
        self.dropped = 0

    @property
    def pending(self) -> int:
        """Unread items: 0 or 1."""
        return len(self._slot)

    @property
    def ended(self) -> bool:
        """Closed and read to the end."""
        return self._closed and not self._slot

    def put(self, item: T) -> int:
        """Leave an item, in place of an unread one; never waits.

        Returns:
            1 when an item was lost by it (the unread one, or this one after ``close``), else 0.
        """
        with self._changed:
            lost = 1 if self._slot or self._closed else 0
            self.put_count += 1
            self.dropped += lost
            if not self._closed:
                self._slot[:] = [item]
                self._changed.notify()
        return lost

    def get(self, timeout_s: float) -> T | None:
        """Take the item; waits for one up to ``timeout_s`` seconds.

        Returns:
            The newest item, or ``None`` when none came in time or the mailbox has ended.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._slot or self._closed, timeout_s)
            if not self._slot:
                return None
            self.taken += 1
            return self._slot.pop()

    def close(self) -> None:
        """Take nothing more and wake the reader."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class Handoff(Generic[T]):
    """A short first-in-first-out edge of fixed depth, for paths where every item counts.

    Args:
        depth: unread items that it can keep, >= 1.
        wait: ``True`` holds the writer back while it is full (a file is read as fast as it can be worked on);
            ``False`` refuses the new item instead (the writer is live and must not wait for a slow disk).
    """

    def __init__(self, depth: int, *, wait: bool) -> None:
        if depth < 1:
            raise ValueError(f"a hand-off needs a depth of 1 or more, not {depth}")
        self._changed = threading.Condition()
        self._items: deque[T] = deque()
        self._depth = depth
        self._wait = wait
        self._closed = False

    @property
    def pending(self) -> int:
        """Unread items, at most the depth."""
        return len(self._items)

    @property
    def ended(self) -> bool:
        """Closed and read to the end."""
        return self._closed and not self._items

    def put(self, item: T) -> int:
        """Append an item; waits for room, or refuses (see ``wait``).

        Returns:
            1 when the item was refused (full, or closed, also while waiting), else 0.
        """
        with self._changed:
            if self._wait:
                self._changed.wait_for(lambda: self._closed or len(self._items) < self._depth)
            if self._closed or len(self._items) >= self._depth:
                return 1
            self._items.append(item)
            self._changed.notify_all()
        return 0

    def get(self, timeout_s: float) -> T | None:
        """Take the oldest item; waits for one up to ``timeout_s`` seconds.

        Returns:
            The oldest item, or ``None`` when none came in time or the hand-off has ended.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._closed, timeout_s)
            if not self._items:
                return None
            item = self._items.popleft()
            self._changed.notify_all()
            return item

    def close(self) -> None:
        """Take nothing more and wake both ends."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
