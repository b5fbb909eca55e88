"""Lends a device to its one reader and takes it back from any thread; knows nothing about the device."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from realtime.errors import SourceError

T = TypeVar("T")

SLICE_S = 0.1
"""Longest sleep in one piece: how late a sleeping reader may notice that its source was closed."""


class Handle(Generic[T]):
    """A thing that one thread uses and any thread may close, without freeing it under the user's hands.

    Libraries for cameras and streams crash when a device is released while another thread reads from it. So a close
    that comes during a use only marks the handle; the user frees the thing on its way out.
    """

    def __init__(self, name: str, thing: T, free: Callable[[T], object]) -> None:
        """Take over ``thing``.

        Args:
            name: of the source, for messages.
            thing: what is lent; ``free`` is called with it exactly once.
            free: gives the thing back; called by whoever is last, the closer or the user.
        """
        self._name = name
        self._thing = thing
        self._free = free
        self._lock = threading.Lock()
        self._busy = False
        self._closed = False

    @contextmanager
    def use(self) -> Iterator[T]:
        """Borrow the thing for one read.

        Raises:
            SourceError: closed (``fatal=False``: opening again may help).
        """
        with self._lock:
            self.check_open()
            self._busy = True
        try:
            yield self._thing
        finally:
            with self._lock:
                self._busy = False
                last = self._closed
            if last:
                self._free(self._thing)

    def check_open(self) -> None:
        """Raise when the handle was closed.

        Raises:
            SourceError: closed (``fatal=False``).
        """
        if self._closed:
            raise SourceError(f"{self._name} was closed", "open it again", fatal=False)

    def sleep_until(self, due_s: float) -> float:
        """Sleep until ``due_s`` on the clock of ``time.perf_counter``, or until the handle is closed.

        Returns:
            The time now, at or after ``due_s``.

        Raises:
            SourceError: closed meanwhile (``fatal=False``).
        """
        while (left_s := due_s - time.perf_counter()) > 0:
            self.check_open()
            time.sleep(min(left_s, SLICE_S))
        self.check_open()
        return time.perf_counter()

    def close(self) -> None:
        """Free the thing now, or mark it to be freed by the use that is under way. Safe to call twice, never waits."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            idle = not self._busy
        if idle:
            self._free(self._thing)
