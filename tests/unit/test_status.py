"""The words of the status line and the closing line, from real meters on a fake clock."""

from __future__ import annotations

import pytest

from realtime.meter import Meter, Stats
from realtime.status import clock_text, closing_line, drops_text, quality_text, status_line
from realtime.swappers import OPTIONAL_STEPS
from realtime.types import Quality
from tests.fakes import FakeClock

FULL = Quality(1.0, 15, frozenset())
HALF = Quality(0.5, 30, frozenset())


def run(seconds: int, sinks: dict[str, float], drops: dict[str, int]) -> Stats:
    clock = FakeClock()
    meter = Meter(clock)
    for _ in range(seconds * 30):
        clock.advance(1 / 30)
        meter.captured(clock.now_s)
        meter.processed(clock.now_s, 4.2)
        for sink, latency_ms in sinks.items():
            meter.delivered(sink, latency_ms)
    for cause, count in drops.items():
        meter.drop(cause, count)
    return meter.snapshot()


def test_the_status_line_shows_rates_the_slowest_output_work_faces_and_drops() -> None:
    stats = run(4, {"virtual camera": 7.0, "preview": 21.3}, {})
    line = status_line(stats, faces=1)
    assert line == "30 fps in, 30 out | latency 21 ms, p95 21 | compute 4.2 ms | 1 face | 0 dropped"


def test_the_status_line_fits_a_narrow_terminal_and_leaves_reasons_to_the_closing_line() -> None:
    line = status_line(run(4, {"preview window 'doppelcam' (mirrored)": 70.0}, {"capture": 7, "preview": 2}), faces=0)
    assert line.endswith("no face | 9 dropped")
    assert len(line) <= 80


def test_before_the_first_picture_nothing_is_invented() -> None:
    line = status_line(run(0, {}, {}), faces=0)
    assert line == "0 fps in, 0 out | latency not known yet | compute 0.0 ms | no face | 0 dropped"


def test_a_change_of_quality_stays_visible() -> None:
    clock = FakeClock()
    meter = Meter(clock)
    meter.quality_changed(clock.now_s, FULL, HALF, "too slow")
    assert "quality 50% size" in status_line(meter.snapshot(), faces=2)


def test_a_quality_names_the_steps_that_it_leaves_out() -> None:
    assert "without obstacles" in quality_text(FULL, OPTIONAL_STEPS)
    assert "without" not in quality_text(Quality(1.0, 5, frozenset(OPTIONAL_STEPS)), OPTIONAL_STEPS)


def test_a_quality_does_not_name_steps_that_the_run_never_had() -> None:
    assert "without" not in quality_text(FULL, ())
    assert quality_text(FULL, ["enhance"]).count("without") == 1


def test_drops_are_told_by_cause_the_most_frequent_first() -> None:
    assert drops_text({"busy": 1, "late": 4}) == "5 dropped (late 4, busy 1)"


def test_the_closing_line_sums_the_run_up() -> None:
    line = closing_line(run(60, {"recording": 8.0}, {"late": 2}), live=True)
    assert line.startswith("1800 pictures in 1:00 (30.0 fps); compute p50 4.2, p95 4.2 ms; capture to output p50 8")
    assert line.endswith("2 dropped (late 2)")
    assert "capture" not in closing_line(run(60, {"recording": 8.0}, {}), live=False)


@pytest.mark.parametrize(("seconds", "text"), [(0.04, "0.0 s"), (9.5, "9.5 s"), (125, "2:05"), (3600, "1:00:00")])
def test_durations_are_told_as_a_clock_shows_them(seconds: float, text: str) -> None:
    assert clock_text(seconds) == text
