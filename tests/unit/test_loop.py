from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pytest

from realtime.budget import Budget, ladder
from realtime.capture import OpenSource
from realtime.crew import Crew
from realtime.emitter import Emitter
from realtime.errors import LiveError, SinkError, SourceError
from realtime.loop import Limits, Show, run
from realtime.meter import Meter
from realtime.outputs import OpenSink
from realtime.sinks import Sink, SinkClosed, SinkInfo
from realtime.sources import SourceInfo
from realtime.types import U8, Frame, Quality, Size
from tests.fakes import SMALL, AtOnce, Fail, FakeSink, FakeSource, Freeze, Pictures, picture

CARD_GREY = 250
PROMPT_S = 5.0  # the promise is one second; a busy machine may be slower, a blocked device would take for ever
PASSING = SinkError("device busy", "wait", fatal=False)
FULL = SinkError("the disk is full", "free some space")


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    limit_s = time.monotonic() + 5
    while set(threading.enumerate()) - before and time.monotonic() < limit_s:
        time.sleep(0.01)
    assert not set(threading.enumerate()) - before


@dataclass
class Rig:
    """A run made of fakes, with everything it told."""

    source: FakeSource | OpenSource
    sinks: Sequence[FakeSink | OpenSink]
    process: Callable[[Frame, Quality, float], Frame] = lambda frame, _quality, _now_s: frame
    meter: Meter = field(default_factory=Meter)
    budget: Budget = field(default_factory=lambda: Budget(ladder((), 15)))
    stop: threading.Event = field(default_factory=threading.Event)
    events: list[str] = field(default_factory=list)
    ready: list[tuple[SourceInfo, tuple[SinkInfo, ...]]] = field(default_factory=list)

    def run(self, limits: Limits | None = None) -> None:
        source = self.source
        show = Show(
            open_source=(lambda _: source) if isinstance(source, FakeSource) else source,
            open_sinks=[returns(sink) if isinstance(sink, FakeSink) else sink for sink in self.sinks],
            process=AtOnce(self.process),
            meter=self.meter,
            budget=self.budget,
            make_card=lambda size, _title, _lines: picture(CARD_GREY, size),
            on_event=self.events.append,
            on_quality=self.events.append,
            on_ready=lambda info, sinks: self.ready.append((info, sinks)),
        )
        run(show, self.stop, limits)

    def start(self, limits: Limits | None = None) -> threading.Thread:
        thread = threading.Thread(target=self.run, args=(limits,), name="main")
        thread.start()
        return thread


def returns(sink: Sink) -> OpenSink:
    return lambda _info: sink


def eventually(condition: Callable[[], object]) -> None:
    limit_s = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < limit_s, "did not happen"
        time.sleep(0.002)


def test_lockstep_writes_every_picture_once_in_order_to_every_sink() -> None:
    sinks = [FakeSink(live=False), FakeSink(live=False, fps=30)]
    rig = Rig(FakeSource([Pictures(300)], live=False), sinks)
    rig.run()
    for sink in sinks:
        assert sink.seqs == list(range(300))
        assert sink.closed == 1
    stats = rig.meter.snapshot()
    assert stats.frames == 300
    assert not stats.drops
    assert not stats.quality_changes
    assert stats.latency_ms["fake sink"].count == 600
    assert rig.stop.is_set()


def test_reading_working_and_writing_overlap_in_lockstep() -> None:
    together: list[int] = []
    source = FakeSource([Pictures(20)], live=False)
    sink = FakeSink(live=False)

    def process(frame: Frame, _quality: Quality, _now_s: float) -> Frame:
        eventually(lambda: len(source.given) > min(frame.seq + 1, 19))  # the next one is being read meanwhile
        together.append(frame.seq)
        return frame

    Rig(source, [sink], process).run()
    assert together == sink.seqs == list(range(20))


def test_live_pictures_that_come_too_fast_are_dropped_and_counted_and_the_last_one_arrives() -> None:
    sink = FakeSink(live=True)
    rig = Rig(FakeSource([Pictures(200, every_s=0.001)]), [sink], slow(0.005))
    rig.run()
    stats = rig.meter.snapshot()
    assert sink.seqs == sorted(set(sink.seqs))
    assert sink.seqs[-1] == 199
    assert stats.frames + stats.drops["capture"] == 200
    assert stats.drops["capture"] > 20


def slow(cost_s: float) -> Callable[[Frame, Quality, float], Frame]:
    def process(frame: Frame, _quality: Quality, _now_s: float) -> Frame:
        time.sleep(cost_s)
        return frame

    return process


def test_a_slow_live_recording_gets_every_picture_and_a_slow_camera_sink_the_newest() -> None:
    hold, done = threading.Event(), threading.Event()
    recording, camera = FakeSink(live=False, hold=hold), FakeSink(live=True, hold=hold)

    def process(frame: Frame, _quality: Quality, _now_s: float) -> Frame:
        if frame.seq == 5:
            done.set()
        return frame

    rig = Rig(FakeSource([Pictures(6, every_s=0.02), Freeze()]), [recording, camera], process)
    thread = rig.start()
    assert done.wait(20)
    hold.set()
    eventually(lambda: camera.seqs and camera.seqs[-1] == recording.seqs[-1] == rig.meter.snapshot().frames - 1)
    rig.stop.set()
    thread.join(20)
    assert recording.seqs == list(range(6))
    assert len(camera.seqs) <= 2
    assert sum(rig.meter.snapshot().drops.values()) == 6 - len(camera.seqs)


def test_what_a_failed_sink_can_no_longer_write_is_counted() -> None:
    sink, meter = FakeSink(live=False, fail_at=0, error=FULL), Meter()
    emitter = Emitter(
        sink,
        lambda: sink,
        meter,
        lockstep=False,
        make_card=lambda size, _title, _lines: picture(CARD_GREY, size),
        on_event=lambda _: None,
    )
    for seq in range(3):
        emitter.inbox.put(Frame(seq, 1.0, picture(seq)))
    emitter.step(0)
    assert emitter.error is FULL
    assert emitter.ended
    assert meter.snapshot().drops == {"fake sink": 2}
    assert sink.closed == 1


def test_of_errors_in_several_threads_the_first_counts() -> None:
    stop = threading.Event()
    crew = Crew(stop)
    first, second = ZeroDivisionError("first"), ZeroDivisionError("second")

    def fail(error: Exception) -> None:
        raise error

    for error in (first, second):
        crew.start("failing", partial(fail, error))
        assert crew.join(20) == []
    assert crew.error is first
    assert stop.is_set()


def test_a_card_is_shown_until_the_first_picture_and_never_counts_as_one() -> None:
    camera, recording, window = FakeSink(fps=60), FakeSink(live=False), FakeSink(fps=0)
    release = threading.Event()

    def process(frame: Frame, _quality: Quality, _now_s: float) -> Frame:
        release.wait(20)
        return frame

    rig = Rig(FakeSource([Pictures(1), freeze := Freeze()]), [camera, recording, window], process)
    thread = rig.start()
    eventually(lambda: len(camera.written) > 3)
    assert {grey for _, grey, _ in camera.written} == {CARD_GREY}
    assert not recording.written
    assert not window.written
    assert not rig.meter.snapshot().latency_ms
    release.set()
    eventually(lambda: camera.written[-1][1] == 0 and recording.written and window.written)
    assert freeze.reached.is_set()
    rig.stop.set()
    thread.join(20)
    assert rig.meter.snapshot().latency_ms["fake sink"].count == 3


def test_a_steady_sink_repeats_the_last_picture_and_repeats_are_not_new() -> None:
    camera = FakeSink(fps=100)
    rig = Rig(FakeSource([Pictures(1), Freeze()]), [camera])
    thread = rig.start()
    eventually(lambda: camera.seqs.count(0) > 5 and camera.written[-1][1] == 0)
    rig.stop.set()
    thread.join(20)
    stats = rig.meter.snapshot()
    assert stats.latency_ms["fake sink"].count == 1
    assert stats.counters["repeated: fake sink"] > 3


def test_a_held_picture_is_written_but_is_no_new_picture() -> None:
    first: list[Frame] = []

    def hold(frame: Frame, _quality: Quality, _now_s: float) -> Frame:
        first.append(frame)
        return replace(first[0], seq=frame.seq)

    sink = FakeSink(live=False)
    rig = Rig(FakeSource([Pictures(5)], live=False), [sink], hold)
    rig.run()
    assert [grey for _, grey, _ in sink.written] == [0] * 5
    assert rig.meter.snapshot().latency_ms["fake sink"].count == 1


@pytest.mark.parametrize(
    ("picture_size", "sink_size", "bars"),
    [(Size(64, 48), Size(64, 48), False), (Size(40, 40), Size(64, 48), True), (Size(65, 49), Size(64, 48), False)],
)
def test_pictures_are_fitted_to_the_sink_and_never_stretched(picture_size: Size, sink_size: Size, bars: bool) -> None:
    kept: list[U8] = []

    class Keeping(FakeSink):
        def write(self, frame: Frame) -> None:
            super().write(frame)
            kept.append(frame.pixels)

    def paint(frame: Frame, _quality: Quality, _now_s: float) -> Frame:
        frame.pixels[:] = 200
        return frame

    rig = Rig(FakeSource([Pictures(2, picture_size)], live=False), [Keeping(size=sink_size, live=False)], paint)
    rig.run()
    for pixels in kept:
        assert pixels.shape == (sink_size.h, sink_size.w, 3)
        assert pixels.flags.c_contiguous
        assert bool((pixels == 0).any()) == bars
        assert (pixels[sink_size.h // 2, sink_size.w // 2] == 200).all()
    assert not np.shares_memory(kept[0], kept[1]), "a sink may keep what it was given"


def test_a_source_that_changes_size_is_no_trouble() -> None:
    sink = FakeSink(live=False)
    sizes = [Pictures(3, Size(32, 24)), Pictures(3, Size(50, 20)), Pictures(3, Size(7, 9))]
    Rig(FakeSource(sizes, live=False), [sink]).run()
    assert [size for _, _, size in sink.written] == [SMALL] * 9


@pytest.mark.parametrize("polite", [True, False])
def test_stopping_does_not_wait_for_a_source_that_blocks(polite: bool) -> None:
    freeze = Freeze(polite=polite)
    sink = FakeSink(fps=30)
    rig = Rig(FakeSource([Pictures(1), freeze]), [sink])
    thread = rig.start()
    eventually(lambda: freeze.reached.is_set() and sink.written)
    rig.stop.set()
    thread.join(PROMPT_S)
    ended = not thread.is_alive()
    freeze.thaw.set()
    thread.join(20)
    assert ended
    assert sink.closed == 1


def test_stopping_does_not_wait_for_an_opening_a_step_or_a_sink_that_blocks() -> None:
    for blocked in ("open", "process", "sink"):
        hold, reached = threading.Event(), threading.Event()

        def block(frame: Frame | None = None, *_: object, hold: threading.Event = hold) -> Frame:
            hold.wait()
            return frame or Frame(0, 0.0, picture(0))

        def open_source(_: SourceInfo | None, blocked: str = blocked, wait: Callable[[], Frame] = block) -> FakeSource:
            if blocked == "open":
                wait()
            return FakeSource([Pictures(1000, every_s=0.005)])

        rig = Rig(open_source, [FakeSink(hold=hold if blocked == "sink" else None)])
        if blocked == "process":
            rig.process = block
        thread = rig.start()
        reached.wait(0.1)
        rig.stop.set()
        thread.join(PROMPT_S)
        ended = not thread.is_alive()
        hold.set()
        thread.join(20)
        assert ended, blocked


def test_a_limit_ends_the_run() -> None:
    rig = Rig(FakeSource([Pictures(50)], live=False), [sink := FakeSink(live=False)])
    rig.run(Limits(frames=7))
    assert sink.seqs == list(range(7))
    assert not rig.meter.snapshot().drops
    timed = Rig(FakeSource([Pictures(10_000, every_s=0.01)]), [FakeSink()])
    timed.run(Limits(duration_s=0.1))
    assert timed.meter.snapshot().frames < 1000


@pytest.mark.parametrize("where", ["source", "process", "sink", "bug in a sink", "opening a sink", "closing a sink"])
def test_the_first_error_is_raised_and_everything_is_closed(where: str) -> None:
    wrong: dict[str, Exception] = {
        "source": SourceError("damaged", "another file"),
        "process": ZeroDivisionError("bug"),
        "sink": FULL,
        "bug in a sink": ZeroDivisionError("bug"),
        "opening a sink": SinkError("no device", "install one"),
        "closing a sink": FULL,
    }
    error = wrong[where]

    def process(frame: Frame, _quality: Quality, _now_s: float) -> Frame:
        if where == "process" and frame.seq == 2:
            raise error
        return frame

    def refuse(_info: SourceInfo) -> Sink:
        raise error

    source = FakeSource([Pictures(5), *([Fail(error)] if where == "source" else []), Pictures(5)], live=False)
    first = FakeSink(live=False, close_error=error if where == "closing a sink" else None)
    if where in {"sink", "bug in a sink"}:
        first = FakeSink(live=False, fail_at=3, error=error)
    sinks: list[OpenSink] = [returns(first)]
    if where == "opening a sink":
        sinks.append(refuse)
    rig = Rig(lambda _: source, sinks, process)
    with pytest.raises(type(error)) as caught:
        rig.run()
    assert caught.value is error
    assert source.closed.is_set()
    assert first.closed == 1


def test_the_error_that_came_first_counts() -> None:
    first = SinkError("first", "hint")
    rig = Rig(
        FakeSource([Pictures(50)], live=False),
        [FakeSink(live=False, fail_at=3, error=first, close_error=SinkError("second", "hint"))],
    )
    with pytest.raises(LiveError) as caught:
        rig.run()
    assert caught.value is first


def test_one_sink_given_up_leaves_the_others_and_says_so() -> None:
    broken, well = FakeSink(live=False, fail_at=5, error=FULL), FakeSink(live=False)
    rig = Rig(FakeSource([Pictures(40, every_s=0.005)], live=False), [broken, well])
    rig.run()
    assert len(broken.written) == 5
    assert broken.closed == 1
    assert well.seqs == list(range(40))
    assert any("the disk is full" in event and "free some space" in event for event in rig.events)


def test_a_sink_that_may_come_back_is_opened_again_while_the_others_go_on() -> None:
    second = FakeSink(size=Size(20, 20))
    openings: list[FakeSink | SinkError] = [FakeSink(fail_at=3, error=PASSING), PASSING, second]
    well = FakeSink(live=False)

    def open_again(_info: SourceInfo) -> Sink:
        opening = openings.pop(0)
        if isinstance(opening, Exception):
            raise opening
        return opening

    worked_on: list[int] = []

    def process(frame: Frame, _quality: Quality, _now_s: float) -> Frame:
        worked_on.append(frame.seq)
        return frame

    sinks: list[OpenSink] = [open_again, returns(well)]
    rig = Rig(lambda _: FakeSource([Pictures(10_000, every_s=0.005)]), sinks, process)
    thread = rig.start()
    eventually(lambda: len(second.written) > 3)
    rig.stop.set()
    thread.join(20)
    assert second.written[-1][2] == Size(20, 20)
    assert len(well.seqs) > 5
    assert well.seqs == worked_on[: len(well.seqs)]
    assert [event.split(";")[0] for event in rig.events] == [
        "fake sink lost: device busy",
        "fake sink lost: device busy",
        "fake sink is back",
    ]


def test_a_window_is_served_by_the_calling_thread_and_closing_it_ends_the_run() -> None:
    window = FakeSink(fps=100, main_thread=True, fail_at=5, error=SinkClosed())
    other = FakeSink(fps=100)
    rig = Rig(FakeSource([Pictures(10_000, every_s=0.005)]), [other, window])
    thread = rig.start()
    thread.join(20)
    assert not thread.is_alive()
    assert window.threads == {"main"}
    assert other.threads == {"emit-0"}
    assert (window.closed, other.closed) == (1, 1)


def test_a_lost_camera_is_told_on_a_card_and_comes_back() -> None:
    again = threading.Event()
    gone = SourceError("unplugged", "plug it in", fatal=False)
    freeze = Freeze()
    openings = [FakeSource([Pictures(2), Fail(gone)]), FakeSource([Pictures(2), freeze])]

    def open_source(last: SourceInfo | None) -> FakeSource:
        if last is not None and not again.is_set():
            raise gone
        return openings.pop(0)

    camera = FakeSink(fps=100)
    rig = Rig(open_source, [camera])
    thread = rig.start()
    eventually(lambda: rig.events)
    eventually(lambda: camera.written and camera.written[-1][1] == CARD_GREY)
    again.set()
    eventually(lambda: camera.seqs[-1] == 3 and rig.events[-1] == "fake camera is back")
    rig.stop.set()
    thread.join(20)


def test_the_budget_is_asked_live_and_its_decisions_arrive_and_are_told() -> None:
    seen: list[Quality] = []

    def process(frame: Frame, quality: Quality, _now_s: float) -> Frame:
        seen.append(quality)
        time.sleep(0.02 * quality.scale**2)
        return frame

    rig = Rig(FakeSource([Pictures(10_000, every_s=0.01)]), [FakeSink()], process)
    thread = rig.start()
    eventually(lambda: seen and seen[-1].scale < 1)
    rig.stop.set()
    thread.join(20)
    change = rig.meter.snapshot().quality_changes[0]
    assert (change.old.scale, change.new) == (1.0, rig.budget.quality)
    assert "too much" in change.why
    assert any(event.startswith("quality ") and event.endswith(change.why) for event in rig.events)


def test_an_interrupt_in_the_calling_thread_closes_everything_and_goes_on_up() -> None:
    source, sink = FakeSource([Pictures(10_000, every_s=0.005)]), FakeSink()

    def interrupt() -> None:
        raise KeyboardInterrupt

    show = Show(
        open_source=lambda _: source,
        open_sinks=[returns(sink)],
        process=AtOnce(),
        meter=Meter(),
        budget=Budget(ladder((), 15)),
        make_card=lambda size, _title, _lines: picture(CARD_GREY, size),
        on_tick=interrupt,
    )
    with pytest.raises(KeyboardInterrupt):
        run(show, threading.Event())
    assert source.closed.is_set()
    assert sink.closed == 1


def test_seconds_of_a_film_are_counted_in_its_pictures() -> None:
    rig = Rig(FakeSource([Pictures(200)], live=False, fps=25), [sink := FakeSink(live=False)])
    rig.run(Limits(duration_s=2))
    assert sink.seqs == list(range(50))


def test_what_was_opened_is_told_before_the_first_picture() -> None:
    source, sink = FakeSource([Pictures(1)], live=False), FakeSink(live=False)
    rig = Rig(source, [sink])
    rig.run()
    assert rig.ready == [(source.info, (sink.info,))]


def test_seconds_of_everything_at_once_leave_no_frame_and_never_two_unread_ones() -> None:
    given: list[list[weakref.ref[object]]] = []
    alive: list[int] = []
    sinks = [FakeSink(fps=60), FakeSink(fps=0), FakeSink(live=False)]

    def process(frame: Frame, _quality: Quality, _now_s: float) -> Frame:
        time.sleep(0.004)
        alive.append(sum(ref() is not None for refs in given for ref in refs))
        return frame

    def open_source(_: SourceInfo | None) -> FakeSource:
        gone = SourceError("unplugged", "plug it in", fatal=False)
        source = FakeSource([Pictures(150, every_s=0.002), Fail(gone)])
        given.append(source.given)
        return source

    rig = Rig(open_source, [*map(returns, sinks)], process)
    rig.run(Limits(duration_s=3))
    # One being made, one unread, one in work, one that the lost source's error remembers; for each sink one unread
    # and one shown, and for the recording up to eight unread.
    assert max(alive) <= 4 + 2 + 2 + 9
    assert len(given) >= 3
    assert sum(map(len, given)) > 10 * max(alive)
    assert sinks[2].seqs == sorted(set(sinks[2].seqs))
    del rig
    gc.collect()
    assert not [ref for refs in given for ref in refs if ref() is not None]


class InTwoHalves:
    """A process that notes how many frames have begun and are not finished."""

    def __init__(self, on_begin: Callable[[int], None] = lambda _: None) -> None:
        self.open: list[int] = []
        self.most = 0
        self._on_begin = on_begin

    def begin(self, frame: Frame, quality: Quality) -> Frame:
        self.open.append(frame.seq)
        self.most = max(self.most, len(self.open))
        self._on_begin(frame.seq)
        return frame

    def finish(self, begun: Frame, now_s: float) -> Frame:
        assert self.open.pop(0) == begun.seq
        return begun


def overlapped(source: FakeSource, sink: FakeSink, process: InTwoHalves) -> Show:
    return Show(
        open_source=lambda _: source,
        open_sinks=[returns(sink)],
        process=process,
        meter=Meter(),
        budget=Budget(ladder((), 15, overlaps=True)),
        make_card=lambda size, _title, _lines: picture(CARD_GREY, size),
    )


def test_a_film_has_two_frames_in_flight_and_loses_none() -> None:
    process, sink = InTwoHalves(lambda _: time.sleep(0.002)), FakeSink(live=False)
    run(overlapped(FakeSource([Pictures(30)], live=False), sink, process), threading.Event())
    assert sink.seqs == list(range(30))
    assert (process.most, process.open) == (2, [])


def test_what_is_in_flight_is_finished_when_the_run_is_stopped() -> None:
    stop = threading.Event()

    def end(seq: int) -> None:
        if seq == 5:
            stop.set()

    process = InTwoHalves(end)
    run(overlapped(FakeSource([Pictures(10_000)], live=False), FakeSink(live=False), process), stop)
    assert process.open == []
