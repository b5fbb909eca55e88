from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.backoff import FIRST_S, LONGEST_S, wait_s
from realtime.cadence import Cadence


def beats(fps: float, arrivals_s: list[float], end_s: float) -> list[tuple[float, bool]]:
    """Play a sink with a one-slot mailbox: when a picture goes out, and whether it is fresh."""
    cadence = Cadence(fps)
    out: list[tuple[float, bool]] = []
    waiting: float | None = None
    arrivals = iter([*sorted(arrivals_s), end_s])
    now_s, upcoming = 0.0, next(arrivals)
    while now_s < end_s:
        if waiting is not None and now_s >= cadence.due_s(fresh=True):
            cadence.beat(now_s, fresh=True)
            out.append((now_s, True))
            waiting = None
            continue
        if out and now_s >= cadence.due_s(fresh=False):
            cadence.beat(now_s, fresh=False)
            out.append((now_s, False))
            continue
        own_s = cadence.due_s(fresh=waiting is not None) if waiting is not None or out else upcoming
        if upcoming <= own_s:
            now_s = waiting = upcoming
            upcoming = next(arrivals, end_s)
        else:
            now_s = own_s
    return out


def test_a_silent_camera_is_repeated_at_exactly_the_rate_without_drift() -> None:
    out = beats(30, [0.0], 100)
    assert abs(len(out) - 3000) <= 1
    assert sum(fresh for _, fresh in out) == 1
    assert abs(out[-1][0] - out[1][0] - (len(out) - 2) / 30) < 1e-6


def test_a_camera_at_the_sinks_rate_waits_for_nothing_and_is_never_repeated() -> None:
    arrivals = [k / 30 + 0.003 * (k % 3) for k in range(300)]
    assert [now_s for now_s, _ in beats(30, arrivals, 10)] == arrivals


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 20), min_size=1, max_size=400), st.sampled_from([15.0, 30.0, 60.0]))
def test_the_rate_is_at_most_a_third_higher_and_a_fresh_picture_never_waits_a_whole_interval(
    arrivals: list[float], fps: float
) -> None:
    out = beats(fps, arrivals, 20)
    times = [now_s for now_s, _ in out]
    for start in range(0, len(times), 7):
        for stop in range(start + 1, min(len(times), start + 60)):
            assert (stop - start) <= (times[stop] - times[start]) * fps * 4 / 3 + 1.01
    fresh_s = [now_s for now_s, fresh in out if fresh]
    for arrival in arrivals:
        if arrival < 19:
            assert any(arrival <= now_s <= arrival + 1.0 / fps + 1e-9 for now_s in fresh_s)


def test_a_picture_that_had_to_wait_does_not_make_all_later_ones_wait() -> None:
    arrivals = [0.0, *(0.010 + k / 30 for k in range(200))]
    late = [now_s - arrival for (now_s, _), arrival in zip(beats(30, arrivals, 6)[1:], arrivals[1:], strict=False)]
    assert late[0] > 0.01
    assert max(late[5:]) < 1e-9


def test_a_late_sink_leaves_missed_beats_out() -> None:
    cadence = Cadence(10)
    cadence.beat(0.0, fresh=True)
    cadence.beat(5.0, fresh=False)
    assert cadence.due_s(fresh=False) > 5.0


def test_waits_before_opening_again_double_up_to_a_limit() -> None:
    waits = [wait_s(attempt) for attempt in range(2000)]
    assert waits[0] == FIRST_S
    assert waits[1] == 2 * FIRST_S
    assert waits == sorted(waits)
    assert waits[-1] == LONGEST_S
