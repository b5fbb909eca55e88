"""Takes one picture as it came, before anything is painted, where somebody asks for it; shows it to nobody."""

from __future__ import annotations

import threading

from realtime.pipeline import Pipeline
from realtime.types import U8, Frame

WAIT_S = 0.2
"""How long a frame is waited for."""


class Tap:
    """Copies a picture for whoever asks, one at a time; while nobody asks, nothing is copied."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._asking = threading.Lock()

    def take(self) -> U8 | None:
        """See :meth:`realtime.desk.desk.Desk.before`."""
        came = threading.Event()
        taken: list[U8] = []

        def look(frame: Frame) -> None:
            if not taken:
                taken.append(frame.pixels.copy())
                came.set()

        with self._asking:
            self._pipeline.on_begin = look
            came.wait(WAIT_S)
            self._pipeline.on_begin = None
        return taken[0] if taken else None
