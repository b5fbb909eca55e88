from __future__ import annotations

import gc
import json
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.meter import RECENT_SAMPLES, Meter, Series
from realtime.types import Quality
from tests.fakes import FakeClock


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(1e-2, 1e5), min_size=1, max_size=400))
def test_whole_run_percentiles_are_within_a_bin_of_the_sample_of_that_rank(samples: list[float]) -> None:
    series = Series()
    for sample in samples:
        series.note(sample)
    whole = series.whole()
    exact = np.percentile(samples, (50, 95, 99), method="inverted_cdf")
    assert np.allclose((whole.p50, whole.p95, whole.p99), exact, rtol=0.0121)
    assert whole.count == len(samples)


def test_recent_percentiles_forget_what_left_the_window() -> None:
    series = Series()
    for _ in range(1000):
        series.note(500.0)
    for _ in range(RECENT_SAMPLES):
        series.note(2.0)
    assert series.recent().p99 == 2.0
    assert series.whole().p50 == pytest.approx(500.0, rel=0.0121)


@pytest.mark.parametrize("value_ms", [0.0, -1.0, 1e9])
def test_a_sample_outside_the_histogram_counts_in_its_last_bin(value_ms: float) -> None:
    series = Series()
    series.note(value_ms)
    assert series.whole().count == 1


def test_no_samples_read_as_zero() -> None:
    series = Series()
    assert series.whole() == series.recent()
    assert series.whole().count == 0


def test_laps_are_timed_by_the_injected_clock_also_when_the_block_raises() -> None:
    clock = FakeClock()
    meter = Meter(clock)
    for cost_s in (0.010, 0.010, 0.030):
        with meter.lap("detect"):
            clock.advance(cost_s)

    def failing_step() -> None:
        with meter.lap("blend"):
            clock.advance(0.004)
            raise ValueError("blend")

    with pytest.raises(ValueError, match="blend"):
        failing_step()
    recent = meter.snapshot().recent.steps
    assert recent["detect"].p50 == pytest.approx(10)
    assert recent["blend"].p50 == pytest.approx(4)


def test_a_lap_allocates_nothing_that_stays() -> None:
    meter = Meter()

    def laps(count: int) -> None:
        for _ in range(count):
            with meter.lap("swap"):
                pass

    laps(RECENT_SAMPLES + 1)
    gc.collect()
    tracemalloc.start()
    try:
        laps(10)
        before, _ = tracemalloc.get_traced_memory()
        laps(5000)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 2000


def test_rates_of_the_whole_run_and_of_the_last_moments() -> None:
    clock = FakeClock()
    meter = Meter(clock)
    for _ in range(300):
        meter.captured(clock())
        clock.advance(1 / 30)
    for _ in range(60):
        meter.captured(clock())
        clock.advance(1 / 10)
    stats = meter.snapshot()
    assert stats.recent.fps_in == pytest.approx(10)
    assert stats.fps_in == pytest.approx(359 / (300 / 30 + 59 / 10))
    clock.advance(3)
    assert meter.snapshot().recent.fps_in == 0


def test_the_snapshot_becomes_json_with_the_promised_keys() -> None:
    clock = FakeClock()
    meter = Meter(clock)
    meter.processed(clock(), 5.0)
    meter.delivered("null", 7.0)
    meter.drop("capture", 3)
    meter.drop("capture")
    meter.drop("never", 0)
    meter.count("reopened")
    clock.advance(2)
    meter.quality_changed(clock(), Quality(1.0, 15, frozenset({"b", "a"})), Quality(0.5, 30, frozenset()), "too slow")
    plain = json.loads(json.dumps(meter.snapshot().to_dict(), allow_nan=False))
    assert {"steps", "latency_ms", "drops", "quality_changes", "fps_in", "fps_out", "frames"} <= plain.keys()
    assert plain["steps"]["compute"]["p50"] == pytest.approx(5, rel=0.0121)
    assert plain["latency_ms"]["null"]["p99"] == pytest.approx(7, rel=0.0121)
    assert plain["drops"] == {"capture": 4}
    assert plain["counters"] == {"reopened": 1}
    assert plain["frames"] == 1
    assert plain["quality_changes"] == [
        {
            "t_s": 2.0,
            "from": {"scale": 1.0, "detect_every_n": 15, "steps": ["a", "b"], "in_flight": 1},
            "to": {"scale": 0.5, "detect_every_n": 30, "steps": [], "in_flight": 1},
            "why": "too slow",
        }
    ]


def test_drops_of_several_threads_are_all_counted() -> None:
    meter = Meter()

    def drop_many() -> None:
        for _ in range(2000):
            meter.drop("sink")

    threads = [threading.Thread(target=drop_many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert meter.snapshot().drops == {"sink": 8000}
