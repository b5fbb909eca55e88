"""The newest picture of a stream, judged from scripted networks: no socket, no clock."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from realtime.sources.newest import Newest

INTERVAL_S = 1 / 30
DECODE_S = 0.002


class Network:
    """A sender with scripted arrivals and a reader that fetches in order, as a socket's buffer serves them."""

    def __init__(self, arrivals_s: list[float], stamps_s: Sequence[float | None], now_s: float = 0.0) -> None:
        self.arrivals_s = arrivals_s
        self.stamps_s = stamps_s
        self.now_s = now_s
        self.taken = 0
        self.policy = Newest(INTERVAL_S)

    def read(self) -> tuple[int, int] | None:
        """Number of the picture handed over, and how many had arrived by then."""
        while self.taken < len(self.arrivals_s):
            number = self.taken
            before_s = self.now_s
            self.now_s = max(self.now_s, self.arrivals_s[number]) + 1e-4
            waited_s = self.now_s - before_s
            newest = self.policy.is_newest(self.now_s, waited_s, self.stamps_s[number])
            self.now_s += DECODE_S
            self.taken += 1
            if newest:
                return number, sum(arrival <= self.now_s for arrival in self.arrivals_s)
        return None

    def run(self, pause_s: float) -> list[tuple[int, int]]:
        out = []
        while (got := self.read()) is not None:
            out.append(got)
            self.now_s += pause_s
        return out


def steady(count: int, *, interval_s: float = INTERVAL_S, delay_s: float = 0.02) -> list[float]:
    return [number * interval_s + delay_s for number in range(count)]


def stamps(count: int, origin_s: float = 4000.0) -> list[float | None]:
    return [origin_s + number * INTERVAL_S for number in range(count)]


def test_a_prompt_reader_gets_every_picture() -> None:
    assert [number for number, _ in Network(steady(300), stamps(300)).run(0)] == list(range(300))


def test_a_prompt_reader_gets_every_picture_of_a_stream_without_stamps() -> None:
    assert [number for number, _ in Network(steady(300), [None] * 300).run(0)] == list(range(300))


def test_a_reader_four_times_too_slow_stays_at_the_newest() -> None:
    for stamped in (stamps(600), [None] * 600):
        got = Network(steady(600), stamped).run(4 * INTERVAL_S)
        assert len(got) > 100
        assert max(arrived - 1 - number for number, arrived in got) <= 2


def test_what_piled_up_before_the_first_read_is_skipped() -> None:
    got = Network(steady(300), stamps(300), now_s=1.0).run(4 * INTERVAL_S)
    assert max(arrived - 1 - number for number, arrived in got) <= 2


def test_the_later_pictures_of_a_burst_are_new_too() -> None:
    # Three at a time, as a busy radio channel delivers them.
    arrivals = [INTERVAL_S * (number // 3 * 3 + 2) + 0.02 for number in range(300)]
    got = Network(arrivals, stamps(300)).run(0)
    assert len(got) > 250


def test_a_hiccup_of_the_processor_does_not_make_old_pictures_new() -> None:
    policy = Newest(INTERVAL_S)
    for number in range(30):
        policy.is_newest(number * INTERVAL_S, INTERVAL_S, number * INTERVAL_S)
    for number in range(30, 60):  # half a second behind, and each fetch was held up by something else
        policy.is_newest(number * INTERVAL_S + 0.5, 0.02, number * INTERVAL_S)
    assert not policy.is_newest(60 * INTERVAL_S + 0.5, 0.0, 60 * INTERVAL_S)


def test_a_longer_way_is_the_new_baseline_after_some_seconds() -> None:
    policy = Newest(INTERVAL_S)
    policy.is_newest(0, INTERVAL_S, 0)
    for number in range(1, 400):
        policy.is_newest(number * INTERVAL_S + 0.3, INTERVAL_S, number * INTERVAL_S)
    assert policy.is_newest(400 * INTERVAL_S + 0.3, 0.0, 400 * INTERVAL_S)


def test_a_restarted_sender_clock_is_followed_at_once() -> None:
    policy = Newest(INTERVAL_S)
    policy.is_newest(0, INTERVAL_S, 9000)
    assert policy.is_newest(1, INTERVAL_S, 0)
    assert policy.is_newest(1 + INTERVAL_S, 0.0, INTERVAL_S)


@given(
    jitter=st.lists(st.floats(0, 0.2), min_size=60, max_size=60),
    pauses=st.lists(st.floats(0, 0.3), min_size=5, max_size=5),
    stamped=st.booleans(),
    start_s=st.floats(0, 1),
)
def test_whatever_the_network_and_the_reader_do_nobody_falls_behind(
    jitter: list[float], pauses: list[float], stamped: bool, start_s: float
) -> None:
    sent = [number * INTERVAL_S for number in range(60)]
    arrivals: list[float] = []
    for sent_s, late_s in zip(sent, jitter, strict=True):
        arrivals.append(max(sent_s + late_s, arrivals[-1] if arrivals else 0))
    network = Network(arrivals, [*sent] if stamped else [None] * 60, start_s)
    turn = 0
    while (got := network.read()) is not None:
        number, arrived = got
        # Late by the tolerance, the jitter and what arrived while the last one was decoded; not by the reader.
        assert arrived - 1 - number <= 1.5 + 0.2 / INTERVAL_S + 2
        network.now_s += pauses[turn % 5]
        turn += 1
