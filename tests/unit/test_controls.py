"""A run of fakes that is changed while it goes on: outputs, input, card; whatever blocks, fails or comes too late."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from realtime.budget import Budget, ladder
from realtime.capture import OpenSource
from realtime.controls import Controls
from realtime.emitter import Card
from realtime.errors import LiveError, SinkError, SourceError
from realtime.loop import Show, run
from realtime.meter import Meter
from realtime.outputs import OpenSink
from realtime.sinks import Sink
from realtime.sources import SourceInfo
from realtime.types import Size
from tests.fakes import AtOnce, Fail, FakeSink, FakeSource, Freeze, Pictures, picture

CARD_GREY = 250
HIDDEN: Card = ("Back soon", ())
HIDDEN_GREY = 251
PROMPT_S = 5.0  # the promise is one second; a busy machine may be slower, a blocked device would take for ever
GONE = SourceError("unplugged", "plug it in", fatal=False)


class Told:
    """What was said about orders, in their order."""

    def __init__(self) -> None:
        self.said: list[LiveError | None] = []

    def __call__(self, error: LiveError | None) -> None:
        self.said.append(error)


class Rig:
    """A run of fakes in a thread, with its controls."""

    def __init__(self, source: FakeSource | OpenSource, *sinks: FakeSink) -> None:
        self.meter, self.stop, self.events, self.told = Meter(), threading.Event(), list[str](), Told()
        self.begun, self.errors = threading.Event(), list[BaseException]()
        self.controls: Controls
        self._show = Show(
            open_source=(lambda _: source) if isinstance(source, FakeSource) else source,
            open_sinks=[opens(sink) for sink in sinks],
            process=AtOnce(),
            meter=self.meter,
            budget=Budget(ladder((), 15)),
            make_card=lambda size, title, _: picture(HIDDEN_GREY if title == HIDDEN[0] else CARD_GREY, size),
            on_event=self.events.append,
            on_start=self._take,
        )

    def _take(self, controls: Controls) -> None:
        self.controls = controls
        self.begun.set()

    def _play(self) -> None:
        try:
            run(self._show, self.stop)
        except LiveError as error:
            self.errors.append(error)

    @contextmanager
    def running(self) -> Iterator[Controls]:
        thread = threading.Thread(target=self._play, name="main")
        thread.start()
        try:
            assert self.begun.wait(20)
            yield self.controls
        finally:
            self.stop.set()
            thread.join(20)
            assert not thread.is_alive()


def opens(sink: Sink) -> OpenSink:
    return lambda _: sink


def eventually(condition: Callable[[], object]) -> None:
    limit_s = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < limit_s, "did not happen"
        time.sleep(0.002)


def camera() -> FakeSource:
    return FakeSource([Pictures(100_000, every_s=0.002)])


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    eventually(lambda: not set(threading.enumerate()) - before)


@pytest.mark.parametrize("aside", [True, False])
def test_an_output_comes_and_goes_while_the_others_go_on(aside: bool) -> None:
    first, second = FakeSink(), FakeSink(name="recording", live=False)
    rig = Rig(camera(), first)
    with rig.running() as controls:
        controls.add_sink(opens(second), rig.told, aside=aside)
        eventually(lambda: len(second.written) > 20)
        assert controls.sinks() == (("fake sink", ""), ("recording", ""))
        controls.remove_sink("recording", rig.told)
        eventually(lambda: second.closed)
        assert controls.sinks() == (("fake sink", ""),)
        begun = len(first.written)
        eventually(lambda: len(first.written) > begun + 5)
    assert rig.told.said == [None, None]
    assert second.seqs == sorted(set(second.seqs))
    assert (first.closed, second.closed, rig.errors) == (1, 1, [])


def test_what_cannot_be_added_or_removed_is_told_and_nothing_changes() -> None:
    sink, twin = FakeSink(), FakeSink()
    rig = Rig(camera(), sink)

    def broken(_: SourceInfo) -> Sink:
        raise SinkError("the disk is full", "free some space")

    with rig.running() as controls:
        controls.add_sink(broken, rig.told, aside=False)
        eventually(lambda: len(rig.told.said) == 1)
        controls.add_sink(broken, rig.told, aside=True)
        eventually(lambda: len(rig.told.said) == 2)
        controls.add_sink(opens(twin), rig.told, aside=True)
        eventually(lambda: len(rig.told.said) == 3)
        controls.remove_sink("window", rig.told)
        controls.remove_sink("fake sink", rig.told)
        eventually(lambda: len(rig.told.said) == 5)
        begun = len(sink.written)
        eventually(lambda: len(sink.written) > begun)
    words = [error.message if error else "" for error in rig.told.said]
    assert words[:2] == ["the disk is full"] * 2
    assert words[2:] == [
        "fake sink is open already",
        "no output is called window",
        "fake sink is the only output",
    ]
    assert (twin.closed, twin.written, rig.errors) == (1, [], [])


def test_a_server_that_does_not_answer_holds_up_neither_the_pictures_nor_the_end() -> None:
    asked, answer = threading.Event(), threading.Event()
    sink, late, other = FakeSink(), FakeSink(name="server"), FakeSink(name="other")

    def silent(_: SourceInfo) -> Sink:
        asked.set()
        assert answer.wait(20)
        return late

    rig = Rig(camera(), sink)
    with rig.running() as controls:
        controls.add_sink(silent, rig.told, aside=True)
        assert asked.wait(20)
        controls.add_sink(opens(other), rig.told, aside=False)  # other orders go on
        eventually(lambda: other.written)
        start_s = time.monotonic()
        rig.stop.set()
        eventually(lambda: sink.closed and other.closed)
    assert time.monotonic() - start_s < PROMPT_S
    answer.set()
    eventually(lambda: late.closed)
    assert not late.written
    assert rig.errors == []


def test_a_removed_recording_that_cannot_be_finished_ends_no_run() -> None:
    recording = FakeSink(name="recording", live=False, close_error=SinkError("the disk is full", "free some space"))
    sink = FakeSink()
    rig = Rig(camera(), sink)
    with rig.running() as controls:
        controls.add_sink(opens(recording), rig.told, aside=True)
        eventually(lambda: recording.written)
        controls.remove_sink("recording", rig.told)
        eventually(lambda: rig.events)
        begun = len(sink.written)
        eventually(lambda: len(sink.written) > begun + 5)
    assert rig.events == ["recording was not finished: the disk is full; free some space"]
    assert rig.errors == []


def test_a_window_that_is_added_is_opened_written_and_closed_by_the_calling_thread() -> None:
    window = FakeSink(name="window", fps=100, main_thread=True)
    where: list[str] = []

    def open_window(_: SourceInfo) -> Sink:
        where.append(threading.current_thread().name)
        return window

    rig = Rig(camera(), FakeSink())
    with rig.running() as controls:
        controls.add_sink(open_window, rig.told, aside=False)
        eventually(lambda: len(window.written) > 3)
        controls.remove_sink("window", rig.told)
        eventually(lambda: window.closed)
    assert where == ["main"]
    assert window.threads == {"main"}


def test_an_output_that_is_added_at_the_very_end_does_not_keep_the_run_alive() -> None:
    freeze = Freeze()
    sink, late = FakeSink(), FakeSink(name="late")
    source = FakeSource([Pictures(3), freeze], live=True)
    rig = Rig(source, sink)

    def open_late(_: SourceInfo) -> Sink:
        rig.stop.set()
        eventually(lambda: sink.closed)
        return late

    with rig.running() as controls:
        eventually(lambda: len(sink.written) == 1 or sink.seqs[-1:] == [2])
        controls.add_sink(open_late, rig.told, aside=True)
        eventually(lambda: late.closed)


def test_a_card_hides_every_picture_also_those_that_wait_and_those_that_are_repeated() -> None:
    hold = threading.Event()
    steady, slow, every = (
        FakeSink(fps=200),
        FakeSink(name="slow", live=False, hold=hold),
        FakeSink(name="every", live=False),
    )
    rig = Rig(FakeSource([Pictures(5), Freeze(), Pictures(1)]), steady, slow, every)
    with rig.running() as controls:
        eventually(lambda: steady.seqs[-1:] == [4])
        controls.cover(HIDDEN)
        hold.set()  # one is being written; the others wait
        eventually(lambda: steady.written[-1][1] == HIDDEN_GREY)
        begun = len(steady.written)
        eventually(lambda: len(steady.written) > begun + 20)
        assert {grey for _, grey, _ in steady.written[begun:]} == {HIDDEN_GREY}
        eventually(lambda: slow.written)
    assert {grey for _, grey, _ in slow.written[1:]} <= {HIDDEN_GREY}
    assert [grey for _, grey, _ in every.written] == every.seqs, "what was written before is not touched"


def test_a_lost_camera_and_an_added_output_show_nothing_but_the_card_while_it_hides() -> None:
    again = threading.Event()
    openings = [FakeSource([Pictures(3, every_s=0.03), Fail(GONE)]), FakeSource([Pictures(100_000, every_s=0.002)])]

    def open_source(before: SourceInfo | None) -> FakeSource:
        if before is not None and not again.is_set():
            raise GONE
        return openings.pop(0)

    steady, added = FakeSink(fps=200), FakeSink(name="added", fps=200)
    rig = Rig(open_source, steady)
    with rig.running() as controls:
        eventually(lambda: 2 in steady.seqs and steady.written[-1][:2] == (0, CARD_GREY))
        controls.cover(HIDDEN)
        eventually(lambda: steady.written[-1][1] == HIDDEN_GREY)
        begun = len(steady.written)
        controls.add_sink(opens(added), rig.told, aside=True)
        eventually(lambda: len(added.written) > 10)
        again.set()
        eventually(lambda: steady.seqs[-1] > 5)
        eventually(lambda: added.seqs[-1] > 5)
        assert {grey for _, grey, _ in steady.written[begun:]} == {HIDDEN_GREY}
        assert {grey for _, grey, _ in added.written} == {HIDDEN_GREY}
        controls.cover(None)
        eventually(lambda: steady.written[-1][1] != HIDDEN_GREY and added.written[-1][1] != HIDDEN_GREY)


def test_while_the_camera_is_away_the_card_gives_way_to_the_reason() -> None:
    def open_source(before: SourceInfo | None) -> FakeSource:
        if before is not None:
            raise GONE
        return FakeSource([Pictures(3, every_s=0.03), Fail(GONE)])

    steady = FakeSink(fps=200)
    rig = Rig(open_source, steady)
    with rig.running() as controls:
        eventually(lambda: 2 in steady.seqs and steady.written[-1][:2] == (0, CARD_GREY))
        controls.cover(HIDDEN)
        eventually(lambda: steady.written[-1][1] == HIDDEN_GREY)
        begun = len(steady.written)
        controls.cover(None)
        eventually(lambda: steady.written[-1][1] == CARD_GREY)
    assert {grey for _, grey, _ in steady.written[begun:]} <= {HIDDEN_GREY, CARD_GREY}


def test_another_camera_takes_over_and_numbers_go_on() -> None:
    sink = FakeSink()
    rig = Rig(camera(), sink)
    with rig.running() as controls:
        eventually(lambda: len(sink.written) > 5)
        controls.change_source(lambda _: FakeSource([Pictures(100_000, Size(48, 24), every_s=0.002)]), rig.told)
        eventually(lambda: rig.told.said)
        begun = len(sink.written)
        eventually(lambda: len(sink.written) > begun + 5)
    assert rig.told.said == [None]
    assert sink.seqs == sorted(set(sink.seqs))
    assert {size for _, _, size in sink.written} == {Size(32, 24)}, "the outputs keep their size"


def test_stopping_does_not_wait_for_a_camera_that_is_being_opened() -> None:
    asked, answer = threading.Event(), threading.Event()
    second = camera()

    def slow(_: SourceInfo | None) -> FakeSource:
        asked.set()
        assert answer.wait(20)
        return second

    sink = FakeSink()
    rig = Rig(camera(), sink)
    with rig.running() as controls:
        eventually(lambda: sink.written)
        controls.change_source(slow, rig.told)
        assert asked.wait(20)
        start_s = time.monotonic()
        rig.stop.set()
        eventually(lambda: sink.closed)
    assert time.monotonic() - start_s < PROMPT_S
    answer.set()
    eventually(second.closed.is_set)


def test_a_conversion_keeps_its_input() -> None:
    source, sink = FakeSource([Pictures(400, every_s=0.002)], live=False), FakeSink(live=False)
    rig = Rig(source, sink)
    with rig.running() as controls:
        eventually(lambda: sink.written)
        controls.change_source(lambda _: camera(), rig.told)
        eventually(lambda: rig.told.said)
        eventually(lambda: sink.closed)
    assert [error.message for error in rig.told.said if error] == ["a conversion keeps its input"]
    assert sink.seqs == list(range(400))
