"""Pictures out of packets: let go at the last packet, in order, whole or not at all, whatever the network does."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

pytest.importorskip("aiortc")

from aiortc.rtp import RtpPacket
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.web.jitter import ASK_AGAIN_S, PATIENCE_S, Burst, MarkerJitterBuffer, starts_key

KEY, DELTA = b"\x10", b"\x11"  # how the first byte of a VP8 picture begins
FIRST, LATER = b"\x10", b"\x00"  # payload descriptors: the start of the first partition, and what follows


@dataclass
class Clock:
    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class Line:
    """A sender of VP8 pictures, and the buffer that they come to."""

    first_seq: int = 100
    marks: bool = True
    clock: Clock = field(default_factory=Clock)
    out: list[bytes] = field(default_factory=list)
    asked: int = 0

    def __post_init__(self) -> None:
        self.buffer = MarkerJitterBuffer(starts_key, self.clock)
        self.seq = self.first_seq
        self.stamp = 0

    def picture(self, name: int, packets: int, *, key: bool = False) -> list[RtpPacket]:
        self.stamp += 3000
        made = []
        for number in range(packets):
            packet: Any = RtpPacket(payload_type=97, sequence_number=self.seq % 65536, timestamp=self.stamp)
            data = (KEY if key else DELTA) + name.to_bytes(2, "big") if number == 0 else bytes([number])
            packet.payload = (FIRST if number == 0 else LATER) + data
            packet._data = data
            packet.marker = int(self.marks and number == packets - 1)
            made.append(packet)
            self.seq += 1
        return made

    def take(self, packet: RtpPacket) -> None:
        ask, frame = self.buffer.add(packet)
        self.asked += ask
        if frame is not None:
            rest = frame.rest if isinstance(frame, Burst) else ()
            self.out += [one.data for one in (frame, *rest)]


def whole(name: int, packets: int, *, key: bool = False) -> bytes:
    return (KEY if key else DELTA) + name.to_bytes(2, "big") + bytes(range(1, packets))


@pytest.mark.parametrize("first_seq", [100, 65530])
def test_a_picture_comes_with_its_last_packet(first_seq: int) -> None:
    line = Line(first_seq)
    for name in range(20):
        *others, last = line.picture(name, 4, key=name == 0)
        for packet in others:
            line.take(packet)
        assert len(line.out) == name
        line.take(last)
        assert line.out[-1] == whole(name, 4, key=name == 0)
    assert not line.asked


def test_where_nothing_is_marked_the_next_picture_lets_it_go() -> None:
    line = Line(marks=False)
    for name in range(5):
        for packet in line.picture(name, 3):
            line.take(packet)
    assert line.out == [whole(name, 3) for name in range(4)]


def test_those_that_waited_for_a_late_packet_come_with_it_all_at_once() -> None:
    line = Line()
    pictures = [line.picture(name, 3, key=name == 0) for name in range(4)]
    late = pictures[1].pop(1)
    for packets in pictures:
        for packet in packets:
            line.take(packet)
    assert line.out == [whole(0, 3, key=True)]
    line.take(late)
    assert line.out == [whole(0, 3, key=True), *(whole(name, 3) for name in range(1, 4))]


def test_a_gap_that_stays_is_given_up_at_the_next_key_picture_and_one_is_asked_for() -> None:
    line = Line()
    for packet in line.picture(0, 2, key=True):
        line.take(packet)
    lost, *rest = line.picture(1, 3)
    assert lost
    for packet in rest:
        line.take(packet)
    assert not line.asked
    for name in range(2, 40):
        line.clock.now_s += 1 / 30
        for packet in line.picture(name, 3, key=name == 30):
            line.take(packet)
        assert line.clock.now_s < PATIENCE_S or line.asked
    assert line.out == [whole(0, 2, key=True), *(whole(name, 3, key=name == 30) for name in range(30, 40))]
    assert 2 <= line.asked <= 2 + 1.0 / ASK_AGAIN_S


@settings(max_examples=150, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 6), min_size=3, max_size=40),
    seed=st.integers(0, 2**16),
    reach=st.integers(0, 12),
    doubles=st.booleans(),
    first_seq=st.integers(0, 65535),
)
def test_reordered_and_doubled_packets_lose_nothing(
    sizes: list[int], seed: int, reach: int, doubles: bool, first_seq: int
) -> None:
    line, dice = Line(first_seq), random.Random(seed)
    packets = [packet for name, size in enumerate(sizes) for packet in line.picture(name, size, key=name == 0)]
    order = sorted(range(1, len(packets)), key=lambda place: place + dice.uniform(0, reach))
    for place in [0, *order]:  # the first packet tells where the numbers begin
        line.take(packets[place])
        if doubles and dice.random() < 0.3:
            line.take(packets[place])
    assert line.out == [whole(name, size, key=name == 0) for name, size in enumerate(sizes)]


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**16), loss=st.floats(0.0, 0.3), keys=st.integers(2, 15))
def test_whatever_is_lost_only_whole_pictures_come_in_order_and_they_go_on_with_a_key_picture(
    seed: int, loss: float, keys: int
) -> None:
    line, dice = Line(), random.Random(seed)
    for name in range(120):
        line.clock.now_s += 1 / 30
        for packet in line.picture(name, 3, key=name % keys == 0):
            if name == 0 or dice.random() >= loss:
                line.take(packet)
    names = [int.from_bytes(data[1:3], "big") for data in line.out]
    assert line.out == [whole(name, 3, key=name % keys == 0) for name in names]
    assert names == sorted(set(names))
    for before, after in itertools.pairwise(names):
        assert after == before + 1 or after % keys == 0
