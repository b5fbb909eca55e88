"""Threads with an owner; knows how they start, fail and end, not what they do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from realtime.sinks import SinkClosed


class Crew:
    """Threads with an owner: named, started and joined here. The first error in any of them ends the run.

    Attributes:
        error: the first exception of any thread.
    """

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self.error: BaseException | None = None

    def start(self, name: str, body: Callable[[], None]) -> threading.Thread:
        """Start a daemon thread, from any: one that a device blocks for good must not keep the program alive."""
        thread = threading.Thread(target=self.guard, args=(body,), name=name, daemon=True)
        with self._lock:
            thread.start()
            self._threads = [other for other in self._threads if other.is_alive()] + [thread]
        return thread

    def guard(self, body: Callable[[], None]) -> None:
        """Do something whose failure ends the run."""
        try:
            body()
        except SinkClosed:
            self._stop.set()
        except BaseException as error:  # noqa: BLE001 - the edge of a thread: carried to the caller and raised there
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """End the run because of an error; only the first one counts."""
        with self._lock:
            self.error = self.error or error
        self._stop.set()

    def join(self, seconds: float) -> list[str]:
        """Wait for all threads, ``seconds`` together; the names of those that did not end."""
        deadline_s = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline_s - time.monotonic()))
        return [thread.name for thread in self._threads if thread.is_alive()]
