"""The outputs of one run and their emitters: opened, served, given up, added, removed, finished; knows no picture."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

from realtime.crew import Crew
from realtime.emitter import Card, Emitter, MakeCard
from realtime.errors import SinkError
from realtime.meter import Meter
from realtime.sinks import Sink, SinkInfo
from realtime.sources import SourceInfo
from realtime.types import Frame

FINISH_S = 60.0
"""Longest wait for a recording to be finished: what was recorded is never lost to haste."""

OpenSink = Callable[[SourceInfo], Sink]


class Outputs:
    """All emitters. Used by the calling thread of a run, but for what says that it may be used by any.

    Args:
        crew: starts the threads.
        meter: gets drops and latencies.
        make_card: see ``loop.Show``.
        on_event: told in words of an output that is lost, back, or given up.
        clock: seconds, that of ``Frame.t_capture_s``.
    """

    def __init__(
        self,
        crew: Crew,
        meter: Meter,
        make_card: MakeCard,
        on_event: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self._crew, self._meter, self._make_card = crew, meter, make_card
        self._on_event, self._clock = on_event, clock
        self._lock = threading.Lock()  # around the lists, never around a device
        self._emitters: tuple[Emitter, ...] = ()  # in the order of opening; replaced, so that any thread may look
        self._leaving: list[Emitter] = []  # removed, and perhaps not yet finished
        self._threads: dict[Emitter, threading.Thread] = {}  # those that do not belong to the calling thread
        self._started = 0
        self._told: set[Emitter] = set()  # that they were given up
        self._cover: Card | None = None
        self._ended = False  # there will be no further pictures

    @property
    def infos(self) -> tuple[SinkInfo, ...]:
        """What each really takes. Any thread."""
        return tuple(emitter.info for emitter in self._emitters)

    @property
    def standing(self) -> tuple[tuple[str, str], ...]:
        """The name of each, and why it was given up, empty while it works. Any thread."""
        return tuple((one.info.name, one.error.message if one.error else "") for one in self._emitters)

    @property
    def goes_on(self) -> bool:
        """Whether any of them still takes pictures."""
        return not all(emitter.ended for emitter in self._emitters)

    def open(self, open_sink: OpenSink, info: SourceInfo) -> Emitter:
        """Open one for pictures of this source; it takes none before ``start``."""
        emitter = self._make(open_sink, info)
        self._emitters = (*self._emitters, emitter)
        return emitter

    def start(self, emitter: Emitter) -> None:
        """Let it write, in a thread of its own unless it belongs to the calling one. Any thread."""
        with self._lock:
            name = f"emit-{self._started}"
            self._started += 1
            if not emitter.info.main_thread:
                self._threads[emitter] = self._crew.start(name, partial(self._write_all, emitter))

    def add(self, open_sink: OpenSink, info: SourceInfo) -> None:
        """Open and start one more. Any thread, unless it belongs to the calling one.

        Raises:
            SinkError: it cannot be opened, or one of its name is open.
        """
        emitter = self._make(open_sink, info)
        with self._lock:
            twice = any(one.info.name == emitter.info.name for one in self._emitters)
            if not twice:
                self._emitters = (*self._emitters, emitter)
                emitter.cover(self._cover)
                if self._ended:
                    emitter.inbox.close()
        if twice:
            emitter.close()
            raise SinkError(f"{emitter.info.name} is open already", "remove it first")
        self.start(emitter)

    def _make(self, open_sink: OpenSink, info: SourceInfo) -> Emitter:
        sink = open_sink(info)
        return Emitter(
            sink,
            partial(open_sink, info),
            self._meter,
            lockstep=not info.live and not sink.info.live,
            make_card=self._make_card,
            on_event=self._on_event,
            clock=self._clock,
        )

    def _write_all(self, emitter: Emitter) -> None:
        """Body of an emitter's thread. An output that was removed, and cannot be finished, ends no run."""
        try:
            emitter.run()
        except SinkError as error:
            if emitter not in self._leaving:
                raise
            self._on_event(f"{emitter.info.name} was not finished: {error.message}; {error.hint}")

    def remove(self, name: str) -> None:
        """Close one; what was handed to it is still written.

        Raises:
            SinkError: there is none of this name, or no other.
        """
        with self._lock:
            emitter = next((one for one in self._emitters if one.info.name == name), None)
            if emitter is None:
                raise SinkError(f"no output is called {name}", "it may have been removed already")
            if len(self._emitters) == 1:
                raise SinkError(f"{name} is the only output", "end the run instead, or add another output first")
            self._emitters = tuple(one for one in self._emitters if one is not emitter)
            self._leaving = [one for one in self._leaving if self._writes(one)] + [emitter]
            self._threads = {one: thread for one, thread in self._threads.items() if thread.is_alive()}
        self._meter.removed(name)
        emitter.inbox.close()
        if emitter.info.main_thread:
            emitter.close()

    def _writes(self, emitter: Emitter) -> bool:
        return emitter in self._threads and self._threads[emitter].is_alive()

    def hand_out(self, frame: Frame) -> None:
        """Give each a picture. For the thread that makes them."""
        for emitter in self._emitters:
            if emitter.error is None:
                self._meter.drop(emitter.info.name, emitter.inbox.put(frame))

    def show_card(self, card: Card) -> None:
        """Show a card on each that takes one until the next picture comes, at once."""
        for emitter in self._emitters:
            emitter.show_card(card)

    def cover(self, card: Card | None) -> None:
        """Show a card instead of every picture on each, those that are added later too, until ``None``. Any thread."""
        with self._lock:
            self._cover = card
            for emitter in (*self._emitters, *self._leaving):
                emitter.cover(card)

    def take_no_more(self) -> None:
        """There will be no further pictures. Any thread."""
        with self._lock:
            self._ended = True
            for emitter in self._emitters:
                emitter.inbox.close()

    def serve_own(self, seconds: float, stop: threading.Event) -> None:
        """Write what is due on those that belong to this thread; wait where there are none."""
        own = [emitter for emitter in self._emitters if emitter.info.main_thread and not emitter.ended]
        for emitter in own:
            emitter.step(seconds / len(own))
        if not own:
            stop.wait(seconds)

    def tell_of_failures(self) -> None:
        """Tell of each that was given up while others go on, once."""
        failed = [emitter for emitter in self._emitters if emitter.error]
        for emitter in failed if len(failed) < len(self._emitters) else ():
            if emitter.error and emitter not in self._told:
                self._told.add(emitter)
                error = emitter.error
                self._on_event(f"{emitter.info.name} has failed, the others go on: {error.message}; {error.hint}")

    def finish(self, deadline_s: float) -> None:
        """Close all, the last one first, and wait: for a recording as long as it takes.

        Args:
            deadline_s: by ``time.monotonic``; for those that may be blocked in a device.
        """
        self.take_no_more()
        for emitter in (*reversed(self._emitters), *self._leaving):
            thread = self._threads.get(emitter)
            if thread is None:
                self._crew.guard(emitter.close)
            else:
                thread.join(max(0.0, deadline_s - time.monotonic()) if emitter.info.live else FINISH_S)

    def fail_if_all_did(self) -> None:
        """End the run with the first one's error where none was left."""
        errors = [emitter.error for emitter in self._emitters]
        if errors and errors[0] is not None and all(errors):
            self._crew.fail(errors[0])
