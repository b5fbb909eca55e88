"""When pictures are due: the metronome, the timeline of a file and the resampler."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.sources.pace import Metronome
from realtime.sources.timeline import LONGEST_GAP_S, Timeline, resample


def test_a_prompt_reader_gets_every_beat() -> None:
    metronome = Metronome(10)
    now_s = 5.0
    for beat in range(20):
        number, due_s = metronome.next(now_s)
        assert number == beat
        assert due_s == pytest.approx(5 + beat / 10)
        now_s = max(now_s, due_s)


@given(st.lists(st.floats(0, 3), min_size=1, max_size=60), st.floats(1, 120))
def test_beats_rise_and_a_late_reader_is_never_more_than_one_beat_behind(pauses: list[float], fps: float) -> None:
    metronome = Metronome(fps)
    now_s, last = 0.0, -1
    for pause_s in pauses:
        number, due_s = metronome.next(now_s)
        assert number > last
        assert due_s > now_s - 1 / fps - 1e-6
        last, now_s = number, max(now_s, due_s) + pause_s


def test_a_timeline_keeps_the_distances_of_the_file() -> None:
    timeline = Timeline(0.04)
    assert [timeline.place(s) for s in (7.0, 7.04, 7.5, 9.0)] == pytest.approx([0, 0.04, 0.5, 2.0])


def test_pictures_without_a_stamp_follow_at_the_usual_distance() -> None:
    timeline = Timeline(0.04)
    assert [timeline.place(s) for s in (None, None, None)] == pytest.approx([0, 0.04, 0.08])


def test_a_jump_of_the_clock_is_one_interval() -> None:
    timeline = Timeline(0.04)
    assert [timeline.place(s) for s in (0.0, 1000.0, 1000.04, 3.0, 3.04)] == pytest.approx([0, 0.04, 0.08, 0.12, 0.16])


def test_a_loop_goes_on_where_the_last_one_ended_even_when_it_is_shorter_than_an_interval() -> None:
    timeline = Timeline(0.04)
    places = []
    for _ in range(3):
        places += [timeline.place(s) for s in (0.0, 0.03)]
        timeline.rewind()
    assert places == pytest.approx([0, 0.03, 0.07, 0.10, 0.14, 0.17])


@given(st.lists(st.none() | st.floats(-1e6, 1e6), max_size=50))
def test_a_timeline_never_falls_and_never_leaps(stamps: list[float | None]) -> None:
    timeline = Timeline(1 / 30)
    places = [timeline.place(stamp_s) for stamp_s in stamps]
    assert all(0 <= b - a <= LONGEST_GAP_S + 1e-6 for a, b in pairwise(places))
    assert places[:1] in ([], [pytest.approx(0)])


def test_milliseconds_of_matroska_do_not_repeat_or_lose_pictures() -> None:
    rounded = ((round(1000 * n / 30) / 1000, n) for n in range(90))
    assert [n for _, n in resample(rounded, 30, 1 / 30)] == list(range(90))


def test_twice_the_rate_shows_each_picture_twice_and_half_the_rate_every_other() -> None:
    def film() -> list[tuple[float, int]]:
        return [(n / 30, n) for n in range(6)]

    assert [n for _, n in resample(iter(film()), 60, 1 / 30)] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert [n for _, n in resample(iter(film()), 15, 1 / 30)] == [0, 2, 4]


@given(
    gaps=st.lists(st.floats(0, 2), max_size=20),
    fps=st.floats(1, 120),
)
def test_resampling_is_steady_keeps_the_order_and_the_length(gaps: list[float], fps: float) -> None:
    places = [sum(gaps[:n]) for n in range(len(gaps) + 1)]
    out = list(resample(iter([(p, n) for n, p in enumerate(places)]), fps, 1 / 30))
    assert [p for p, _ in out] == pytest.approx([n / fps for n in range(len(out))])
    assert all(a <= b for (_, a), (_, b) in pairwise(out))
    assert len(out) / fps == pytest.approx(places[-1] + 1 / 30, abs=1 / fps)
