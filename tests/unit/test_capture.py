from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from realtime.capture import FIRST_PICTURE_S, Capture
from realtime.errors import SourceError
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
