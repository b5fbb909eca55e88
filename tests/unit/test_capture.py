from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from realtime.capture import FIRST_PICTURE_S, Capture
from realtime.errors import LiveError, SourceError
from realtime.meter import Meter
from realtime.sources import SourceInfo
from tests.fakes import Fail, FakeClock, FakeSource, Freeze, Pictures, drain

GONE = SourceError("unplugged", "plug it in", fatal=False)
BROKEN = SourceError("damaged", "use another file")


def eventually(condition: Callable[[], object]) -> None:
    """Wait for another thread; a generous limit so that a failure ends instead of hanging."""
    limit_s = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < limit_s, "did not happen"
        time.sleep(0.002)


class Rig:
    """A capture on a fake clock, with the openings of its source scripted."""

    def __init__(self, *openings: FakeSource | Exception) -> None:
        self.openings = list(openings)
        self.asked: list[SourceInfo | None] = []
        self.clock = FakeClock()
        self.events: list[str] = []
        self.threads: list[threading.Thread] = []
        self.meter = Meter(self.clock)
        self.capture = Capture(
            self.open, self.start, self.meter, on_event=self.events.append, stall_s=2.0, clock=self.clock
        )

    def open(self, last: SourceInfo | None) -> FakeSource:
        self.asked.append(last)
        opening = self.openings.pop(0)
        if isinstance(opening, Exception):
            raise opening
        return opening

    def start(self, name: str, body: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=body, name=name, daemon=True)
        self.threads.append(thread)
        thread.start()
        return thread

    def tend(self, advance_s: float = 0.0) -> None:
        self.clock.advance(advance_s)
        self.capture.tend(self.clock())

    def tend_until(self, condition: Callable[[], object]) -> None:
        def met() -> object:
            self.tend()
            return condition()

        eventually(met)

    def join(self) -> None:
        for thread in self.threads:
            thread.join(20)
            assert not thread.is_alive()

    def next_seq(self) -> int:
        frame = self.capture.out.get(20)
        assert frame is not None
        return frame.seq


def test_a_live_source_gives_the_newest_picture_and_counts_the_rest_as_dropped() -> None:
    freeze = Freeze()
    rig = Rig(FakeSource([Pictures(5), freeze]))
    assert freeze.reached.wait(20)
    assert rig.next_seq() == 4
    assert rig.meter.snapshot().drops == {"capture": 4}
    rig.capture.close()
    rig.join()


def test_a_source_that_waits_loses_nothing_and_ends() -> None:
    source = FakeSource([Pictures(100)], live=False)
    rig = Rig(source)
    eventually(lambda: rig.capture.info)
    seqs: list[int] = []
    reader = threading.Thread(target=lambda: seqs.extend(frame.seq for frame in drain(rig.capture.out)))
    reader.start()
    rig.join()
    rig.tend()
    reader.join(20)
    assert seqs == list(range(100))
    assert source.closed.is_set()
    assert not rig.meter.snapshot().drops


def test_an_unplugged_camera_is_opened_again_with_its_own_facts_and_numbers_go_on() -> None:
    freeze = Freeze()
    rig = Rig(FakeSource([Pictures(3), Fail(GONE)]), GONE, BROKEN, FakeSource([Pictures(2), freeze]))
    rig.join()
    rig.tend()
    assert rig.capture.lost == "unplugged"
    assert len(rig.asked) == 1
    rig.tend(0.26)  # the first try fails in the same words, the second in others
    rig.join()
    rig.tend()
    rig.tend(0.51)
    rig.join()
    rig.tend()
    rig.tend(1.01)
    assert freeze.reached.wait(20)
    rig.tend()
    assert rig.capture.lost == ""
    assert [info.name if info else None for info in rig.asked] == [None, "fake camera", "fake camera", "fake camera"]
    assert rig.next_seq() == 4
    assert rig.events == [
        "fake camera lost: unplugged; trying again in 0.25 s",
        "fake camera lost: damaged; trying again in 1 s",
        "fake camera is back",
    ]
    rig.capture.close()
    rig.join()


@pytest.mark.parametrize("polite", [True, False])
@pytest.mark.parametrize("wakes", [True, False])
def test_a_frozen_camera_is_given_up_and_its_late_pictures_never_arrive(polite: bool, wakes: bool) -> None:
    stuck, idle = Freeze(polite=polite, wakes=wakes), Freeze()
    frozen = FakeSource([Pictures(2), stuck, Pictures(5)])
    rig = Rig(frozen, FakeSource([Pictures(1), idle]))
    assert stuck.reached.wait(20)
    rig.tend(1.9)
    assert not frozen.closed.is_set()
    rig.tend(0.2)
    assert frozen.closed.is_set()
    assert rig.events == ["fake camera lost: nothing came for 2 s; trying again in 0.25 s"]
    assert rig.next_seq() == 1
    rig.tend(0.3)
    assert idle.reached.wait(20)
    rig.tend()
    assert rig.events[-1] == "fake camera is back"
    assert rig.next_seq() == 2
    stuck.thaw.set()
    rig.threads[0].join(20)
    assert rig.capture.out.get(0) is None
    rig.capture.close()
    rig.join()


def test_the_first_picture_may_take_longer_but_not_for_ever() -> None:
    stuck = Freeze()
    rig = Rig(FakeSource([stuck]))
    assert stuck.reached.wait(20)
    rig.tend(FIRST_PICTURE_S - 1)
    assert not rig.events
    rig.tend(2)
    assert "lost" in rig.events[0]
    rig.capture.close()
    rig.join()


def test_waits_grow_while_it_stays_away_and_start_short_again_after_good_times() -> None:
    idle = Freeze()
    good = FakeSource([Pictures(1), idle])
    rig = Rig(FakeSource([Pictures(1), Fail(GONE)]), *[GONE] * 4, good, FakeSource([Fail(GONE)]))
    for _ in range(5):
        rig.join()
        rig.tend()
        rig.tend(6)
    assert idle.reached.wait(20)
    rig.tend(0)
    rig.tend(1.9)
    rig.capture._reader.heard_s = rig.clock() + 10  # it keeps giving pictures for a while
    rig.tend(10)
    good.close()
    rig.join()
    rig.tend()
    assert rig.events[-1].endswith("trying again in 0.25 s")
    rig.capture.close()


@pytest.mark.parametrize(
    "openings",
    [
        (GONE,),
        (BROKEN,),
        (FakeSource([Pictures(2), Fail(BROKEN)]),),
        (FakeSource([Pictures(2), Fail(GONE)], live=False),),
    ],
    ids=["never there", "cannot be opened", "damaged on the way", "file that goes away"],
)
def test_what_opening_again_cannot_help_is_raised(openings: tuple[FakeSource | Exception, ...]) -> None:
    rig = Rig(*openings)
    rig.join()
    with pytest.raises(SourceError):
        rig.tend()


def test_closing_frees_a_reader_that_waits_for_room() -> None:
    source = FakeSource([Pictures(100)], live=False)
    rig = Rig(source)
    eventually(lambda: len(source.given) > 2)
    rig.capture.close()
    rig.join()
    assert source.closed.is_set()
    assert not rig.meter.snapshot().drops


def test_a_source_that_opens_after_the_end_is_closed_at_once() -> None:
    opening, source = threading.Event(), FakeSource([Pictures(1)])
    meter = Meter()
    threads: list[threading.Thread] = []

    def open_slowly(_: SourceInfo | None) -> FakeSource:
        opening.wait()
        return source

    def start(name: str, body: Callable[[], None]) -> None:
        threads.append(threading.Thread(target=body, name=name, daemon=True))
        threads[-1].start()

    capture = Capture(open_slowly, start, meter, on_event=lambda _: None)
    capture.close()
    opening.set()
    threads[0].join(20)
    assert source.closed.is_set()
    assert not source.given


def test_another_source_is_opened_and_where_it_is_not_the_one_before_is_again() -> None:
    said: list[LiveError | None] = []
    rig = Rig(FakeSource([Pictures(3), Freeze()]), FakeSource([Pictures(3), Freeze()]))
    eventually(lambda: rig.capture.info)
    first = rig.capture.info
    rig.capture.change(raises(GONE), said.append)
    rig.tend_until(lambda: said)
    assert said == [GONE]
    eventually(lambda: len(rig.asked) == 2)
    assert rig.asked[1] is first, "the same device as before"
    other = FakeSource([Pictures(2), Freeze()])
    rig.capture.change(lambda _: other, said.append)
    rig.tend_until(lambda: len(said) == 2)
    assert said[1] is None
    assert rig.capture.info is other.info
    rig.capture.close()
    rig.join()


def test_of_two_changes_the_later_one_counts_and_nothing_is_opened_twice() -> None:
    opened: list[str] = []
    said: list[tuple[str, LiveError | None]] = []
    gate = threading.Event()

    def opens(name: str, wait: bool) -> Callable[[SourceInfo | None], FakeSource]:
        def open_source(_: SourceInfo | None) -> FakeSource:
            assert not wait or gate.wait(20)
            opened.append(name)
            return FakeSource([Pictures(1), Freeze()])

        return open_source

    rig = Rig(FakeSource([Pictures(3), Freeze()]))
    eventually(lambda: rig.capture.info)
    rig.capture.change(opens("first", wait=True), lambda error: said.append(("first", error)))
    rig.capture.change(opens("second", wait=False), lambda error: said.append(("second", error)))
    rig.tend_until(lambda: len(said) == 2)
    assert [name for name, _ in said] == ["first", "second"]
    assert said[0][1] is not None
    assert said[1][1] is None
    gate.set()
    rig.capture.close()
    rig.join()
    assert sorted(opened) == ["first", "second"]


def test_a_reader_that_is_given_up_before_it_begins_does_not_open_what_its_successor_opens() -> None:
    rig = Rig(FakeSource([Pictures(1), Freeze()]))
    eventually(lambda: rig.capture.info)
    bodies: list[Callable[[], None]] = []
    opened: list[str] = []
    rig.capture._start_thread = lambda _name, body: bodies.append(body)
    for name in ("first", "second"):
        rig.capture.change(notes(opened, name), lambda _: None)
    for body in bodies:  # the threads get their turn only now
        threading.Thread(target=body, daemon=True).start()
    eventually(lambda: len(opened) == 2)
    assert sorted(opened) == ["first", "second"]
    rig.capture.close()


def test_what_was_lost_is_not_said_to_be_back_when_another_takes_over() -> None:
    said: list[LiveError | None] = []
    rig = Rig(FakeSource([Pictures(3), Fail(GONE)]))
    rig.tend_until(lambda: rig.capture.lost)
    rig.capture.change(lambda _: FakeSource([Pictures(1), Freeze()]), said.append)
    rig.tend_until(lambda: said)
    for _ in range(3):
        rig.tend(0.1)
    assert rig.capture.lost == ""
    assert not any("is back" in event for event in rig.events)
    rig.capture.close()
    rig.join()


def raises(error: LiveError) -> Callable[[SourceInfo | None], FakeSource]:
    def open_source(_: SourceInfo | None) -> FakeSource:
        raise error

    return open_source


def notes(opened: list[str], name: str) -> Callable[[SourceInfo | None], FakeSource]:
    def open_source(_: SourceInfo | None) -> FakeSource:
        opened.append(name)
        return FakeSource([Freeze()])

    return open_source
