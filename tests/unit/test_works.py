"""Frames in flight: order, overlap, and what a frame is said to have cost."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from realtime.types import Frame, Quality
from realtime.works import Works
from tests.fakes import SMALL, FakeClock, picture


def quality(in_flight: int) -> Quality:
    return Quality(1.0, 1, frozenset(), in_flight)


def frame(seq: int) -> Frame:
    return Frame(seq, 0.0, picture(seq % 256, SMALL))


@dataclass
class Machine:
    """A process whose halves take time, and which notes what it was asked for."""

    clock: FakeClock
    begin_s: float = 0.0
    finish_s: float = 0.0
    asked: list[str] = field(default_factory=list)

    def begin(self, frame: Frame, quality: Quality) -> Frame:
        self.clock.advance(self.begin_s)
        self.asked.append(f"begin {frame.seq}")
        return frame

    def finish(self, begun: Frame, now_s: float) -> Frame:
        assert now_s == self.clock()
        self.clock.advance(self.finish_s)
        self.asked.append(f"finish {begun.seq}")
        return begun


def test_one_in_flight_is_finished_before_the_next_begins() -> None:
    machine = Machine(FakeClock())
    works = Works(machine, machine.clock)
    for seq in range(2):
        assert [done.frame.seq for done in works.put(frame(seq), quality(1))] == [seq]
        assert not works.busy
    assert machine.asked == ["begin 0", "finish 0", "begin 1", "finish 1"]


def test_with_two_in_flight_a_frame_begins_before_the_one_before_is_finished() -> None:
    machine = Machine(FakeClock())
    works = Works(machine, machine.clock)
    assert not list(works.put(frame(0), quality(2)))
    assert works.busy
    assert [done.frame.seq for done in works.put(frame(1), quality(2))] == [0]
    assert [done.frame.seq for done in works.flush()] == [1]
    assert not works.busy
    assert machine.asked == ["begin 0", "begin 1", "finish 0", "finish 1"]


def test_a_frame_costs_what_the_next_has_to_wait_for() -> None:
    machine = Machine(FakeClock(), begin_s=0.002, finish_s=0.010)
    works = Works(machine, machine.clock)
    (alone,) = works.put(frame(0), quality(1))
    np.testing.assert_allclose(alone.cost_ms, 12)
    machine.clock.advance(1)  # nothing to do: no cost of any frame
    assert not list(works.put(frame(1), quality(2)))
    (first,) = works.put(frame(2), quality(2))
    np.testing.assert_allclose(first.cost_ms, 14)
    (second,) = works.flush()
    np.testing.assert_allclose(second.cost_ms, 10)
    assert second.end_s == machine.clock()


@given(st.lists(st.tuples(st.sampled_from(["put", "flush"]), st.sampled_from([1, 2])), max_size=40))
def test_every_frame_comes_out_once_and_in_order(steps: list[tuple[str, int]]) -> None:
    machine = Machine(FakeClock())
    works, out, seq = Works(machine, machine.clock), list[int](), 0
    for step, in_flight in steps:
        if step == "flush":
            out += [done.frame.seq for done in works.flush()]
            continue
        out += [done.frame.seq for done in works.put(frame(seq), quality(in_flight))]
        seq += 1
        assert seq - len(out) <= 1  # never more than two are worked on at a time
    out += [done.frame.seq for done in works.flush()]
    assert out == list(range(seq))
