"""The threads of one run: who reads, who works, who writes, and how it ends; knows no device, face or setting.

Live, the newest picture goes from edge to edge and late ones are dropped and counted::

    capture-N --Mailbox--> process --Mailbox--> emit-K   (one for each sink, at the sink's own pace)

In lockstep (the source waits for its reader, and so does the sink) the same threads are joined by short hand-offs that
hold the writer back, so that decoding, computing and encoding overlap and not one picture is lost. A live sink beside
them (a window on a conversion) shows the newest picture and holds nobody back.

One thread works, so pictures are worked on in order and one at a time. A second one that located the faces of the next
picture while this one is drawn gains nothing as long as a picture costs less than the camera's interval, because the
next one is not there yet. Where it costs more, the budget lowers the quality; only conversions would be faster for it.

The calling thread looks after the others and serves the sinks that belong to it (windows).
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

from realtime.budget import Budget
from realtime.capture import STALL_S, Capture, OpenSource
from realtime.controls import Controls, Told
from realtime.crew import Crew
from realtime.emitter import Card, MakeCard
from realtime.errors import LiveError
from realtime.mailbox import POLL_S
from realtime.meter import Meter
from realtime.outputs import OpenSink, Outputs
from realtime.sinks import SinkInfo
from realtime.sources import SourceInfo
from realtime.status import quality_text
from realtime.types import Quality
from realtime.works import Done, Process, Works

TICK_S = 0.05
"""How often the calling thread looks around while it has nothing else to do."""
STOP_S = 0.7
"""Longest wait for threads that may be blocked in a device or a long step; then they are left behind as daemons."""
UNKNOWN_FPS = 30.0
"""Rate of a live source that names none, until it was measured."""


@dataclass(frozen=True, slots=True)
class Show:
    """What runs, as functions: the loop makes nothing of it itself.

    Attributes:
        open_source: called in a capture thread; see ``capture.OpenSource``.
        open_sinks: one for each sink, called in the calling thread with what the source delivers; called again in the
            sink's own thread when the sink has to be opened again.
        process: the pipeline. Called by one thread.
        meter: gets the figures of the run.
        budget: chooses the quality while the source is live.
        make_card: draws the card that is shown before the first picture and while the source is lost.
        on_event: told in words what a person should know. From several threads.
        on_quality: told in words how much work frames get from now on, and why.
        on_ready: told what was opened, once, before the first picture.
        attached: entered by the thread that calls ``process``, for as long as it does.
        on_start: given what may be changed, once, before anything is opened.
        on_tick: called by the calling thread every ``TICK_S`` or so while the run goes on; must be quick.
    """

    open_source: OpenSource
    open_sinks: Sequence[OpenSink]
    process: Process
    meter: Meter
    budget: Budget
    make_card: MakeCard
    on_event: Callable[[str], None] = lambda _: None
    on_quality: Callable[[str], None] = lambda _: None
    on_ready: Callable[[SourceInfo, tuple[SinkInfo, ...]], None] = lambda _source, _sinks: None
    on_start: Callable[[Controls], None] = lambda _: None
    on_tick: Callable[[], None] = lambda: None
    attached: Callable[[], AbstractContextManager[None]] = nullcontext


@dataclass(frozen=True, slots=True)
class Limits:
    """When a run ends by itself, and when a source counts as frozen.

    Attributes:
        duration_s: seconds from the first picture's readiness on; 0 for no limit. In lockstep they are seconds of the
            film, not of the wait for it.
        frames: pictures that are worked on; 0 for no limit.
        stall_s: silence of a live source that means frozen.
    """

    duration_s: float = 0.0
    frames: int = 0
    stall_s: float = STALL_S

    def most_frames(self, info: SourceInfo) -> int:
        """Pictures of this source that are worked on at most; 0 for no limit."""
        film = 0 if info.live else math.ceil(self.duration_s * (info.fps or UNKNOWN_FPS))
        return min(self.frames, film) if self.frames and film else self.frames or film


def run(
    show: Show, stop: threading.Event, limits: Limits | None = None, clock: Callable[[], float] = time.perf_counter
) -> None:
    """Run until the source ends, a limit is reached, ``stop`` is set or the person closes a sink.

    Returns in less than a second after ``stop`` was set, also when a device blocks; only the finishing of a recording
    is waited for. Every thread started here has ended by then, except one that a device still blocks.

    Args:
        show: what runs.
        stop: set to end the run, from any thread or signal handler; it is set when this returns.
        limits: when the run ends by itself.
        clock: seconds; that of ``Frame.t_capture_s``.

    Raises:
        LiveError: the first error that the run could not go on after. Whatever was recorded is finished before.
        BaseException: a bug or ``KeyboardInterrupt``, from whichever thread it came.
    """
    crew = Crew(stop)
    production = _Production(show, crew, stop, limits or Limits(), clock)
    crew.guard(production.play)
    stop.set()
    crew.guard(production.finish)
    if crew.error is not None:
        raise crew.error


class _Production:
    """One run from the first thread to the last. ``play`` and ``finish`` are called by one thread, once each."""

    def __init__(
        self, show: Show, crew: Crew, stop: threading.Event, limits: Limits, clock: Callable[[], float]
    ) -> None:
        self._show = show
        self._crew = crew
        self._stop = stop
        self._limits = limits
        self._clock = clock
        self._capture = Capture(
            show.open_source, crew.start, show.meter, on_event=show.on_event, stall_s=limits.stall_s, clock=clock
        )
        self.budget = show.budget
        self._orders: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._outputs = Outputs(crew, show.meter, show.make_card, show.on_event, clock)
        self._worker: threading.Thread | None = None
        self._carded = ("", 0)  # why the source is lost, as the cards say it, and the pictures that came before

    def play(self) -> None:
        """Open everything, start the threads and look after them until the end."""
        self._show.on_start(self)
        info = self._wait_for_source()
        if info is None:
            return
        outputs = self._outputs
        emitters = [outputs.open(open_sink, info) for open_sink in self._show.open_sinks]
        self._show.on_ready(info, outputs.infos)
        outputs.show_card(("Starting", (info.name,)))
        for emitter in emitters:
            outputs.start(emitter)
        self._worker = self._crew.start("process", partial(self._work, info))
        end_s = self._clock() + self._limits.duration_s if self._limits.duration_s and info.live else math.inf
        while not self._stop.is_set() and self._clock() < end_s and outputs.goes_on:
            self._capture.tend(self._clock())
            self._tell_if_lost()
            outputs.tell_of_failures()
            while not self._orders.empty():
                self._orders.get()()
            self._show.on_tick()
            outputs.serve_own(TICK_S, self._stop)

    def finish(self) -> None:
        """End all threads and close what is open, in the reverse order of opening."""
        deadline_s = time.monotonic() + STOP_S
        self._capture.close()
        if self._worker is not None:
            self._worker.join(STOP_S / 2)
        self._outputs.finish(deadline_s)
        left = self._crew.join(max(0.0, deadline_s - time.monotonic()))
        if left:
            self._show.on_event(f"left behind, still busy: {', '.join(left)}")
        self._outputs.fail_if_all_did()

    def _wait_for_source(self) -> SourceInfo | None:
        while not self._stop.is_set():
            self._capture.tend(self._clock())
            if self._capture.info is not None:
                return self._capture.info
            self._stop.wait(TICK_S)
        return None

    def add_sink(self, open_sink: OpenSink, told: Told, *, aside: bool) -> None:
        """See :class:`Controls`."""

        def add() -> None:
            info = self._capture.info
            assert info is not None  # orders are carried out once it is open
            self._outputs.add(open_sink, info)

        def begin() -> None:
            self._crew.start("open output", partial(_carry_out, add, told))

        self._orders.put(begin if aside else partial(_carry_out, add, told))

    def remove_sink(self, name: str, told: Told) -> None:
        """See :class:`Controls`."""
        self._orders.put(partial(_carry_out, partial(self._outputs.remove, name), told))

    def change_source(self, open_source: OpenSource, told: Told) -> None:
        """See :class:`Controls`."""
        self._orders.put(lambda: self._capture.change(open_source, told))

    def change_budget(self, budget: Budget) -> None:
        """See :class:`Controls`."""
        self.budget = budget

    def cover(self, card: Card | None) -> None:
        """See :class:`Controls`."""
        self._outputs.cover(card)
        if card is None:
            self._orders.put(self._tell_lost_again)

    def sinks(self) -> tuple[tuple[str, str], ...]:
        """See :class:`Controls`."""
        return self._outputs.standing

    def _work(self, info: SourceInfo) -> None:
        """Body of the process thread."""
        try:
            with self._show.attached():
                self._work_through(info, Works(self._show.process, self._clock))
        finally:
            self._capture.close()
            self._outputs.take_no_more()

    def _work_through(self, info: SourceInfo, works: Works) -> None:
        """Put frame after frame through the pipeline, and hand on what comes out of it."""
        budget, left = self.budget, self._limits.most_frames(info) or math.inf
        quality, frames = budget.quality if info.live else budget.unhurried, self._capture.out
        while not self._stop.is_set():
            if budget is not self.budget:
                budget = self.budget
                quality = budget.quality if info.live else budget.unhurried
            # A frame in flight is finished at once where no other has come yet.
            frame = frames.get(0 if works.busy else POLL_S) if left else None
            if frame is None and not works.busy and (frames.ended or not left):
                break
            left -= frame is not None
            for done in works.flush() if frame is None else works.put(frame, quality):
                self._show.meter.processed(done.end_s, done.cost_ms)
                self._outputs.hand_out(done.frame)
                if info.live:
                    quality = self._decide(info, budget, quality, done)
        for done in works.flush():  # after a stop: what a device still works on must not be closed under it
            self._outputs.hand_out(done.frame)

    def _decide(self, info: SourceInfo, budget: Budget, old: Quality, done: Done) -> Quality:
        now_s = done.end_s
        fps = self._show.meter.fps_in(now_s) or info.fps or UNKNOWN_FPS
        new = budget.update(now_s, done.cost_ms, 1 / fps)
        if new is not old:
            self._show.meter.quality_changed(now_s, old, new, budget.reason)
            self._show.on_quality(f"{quality_text(new, budget.best.steps)}: {budget.reason}")
        return new

    def _tell_lost_again(self) -> None:
        self._carded = ("", 0)

    def _tell_if_lost(self) -> None:
        """Show why there is no picture, where the last one would stand for ever."""
        why = (self._capture.lost, self._show.meter.frames)  # one that was on its way would hide the card
        if why[0] and why != self._carded:
            self._outputs.show_card(("No picture", (why[0], "Trying again")))
        self._carded = why


def _carry_out(order: Callable[[], None], told: Told) -> None:
    """Do something that was asked for; what cannot be done ends no run."""
    try:
        order()
    except LiveError as error:
        told(error)
    else:
        told(None)
