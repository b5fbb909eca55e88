"""Measures one run: laps, latency, rates, drops; knows numbers and names, never what they are the numbers of.

Memory is bounded for any length of run. Each series keeps its latest samples exactly (a ring, for the status line) and
the whole run in a histogram of fixed logarithmic bins. A reservoir sample was the other choice: it forgets exactly the
rare slow frames that p99 is about, while a bin 2.3 % wide never does.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any

import numpy as np

from realtime.types import Quality

RECENT_SAMPLES = 300
"""Samples in the sliding window: ten seconds at 30 pictures/s."""
RECENT_S = 2.0
"""Seconds over which the recent rates are taken; a stream that was silent for longer has the rate 0."""
BINS_PER_DECADE = 100
"""Bins of ratio 10^(1/100): a percentile read at a bin's centre is off by at most 1.2 %."""
LOWEST_MS = 1e-3
DECADES = 9
"""Bins from 1 us to 1000 s; what lies outside counts in the first or last."""


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Three percentiles, in milliseconds, of ``count`` samples; all 0 without samples."""

    p50: float
    p95: float
    p99: float
    count: int


@dataclass(frozen=True, slots=True)
class QualityChange:
    """One decision of the budget: when (seconds since the start of the run), from and to what, and why."""

    t_s: float
    old: Quality
    new: Quality
    why: str


@dataclass(frozen=True, slots=True)
class Window:
    """The last moments of a run, for a status line: times over the last samples, rates over the last two seconds."""

    steps: dict[str, Percentiles]
    latency_ms: dict[str, Percentiles]
    fps_in: float
    fps_out: float


@dataclass(frozen=True, slots=True)
class Stats:
    """Everything that was measured, as of one moment.

    Attributes:
        elapsed_s: seconds since the meter was made.
        frames: pictures that came out of the pipeline.
        steps: time of each lap by its name, over the whole run.
        latency_ms: from capture to the end of the sink's write, by sink, of new pictures only (repeats, held pictures
            and cards are not new), over the whole run.
        drops: pictures never shown, by cause.
        counters: anything else that was counted.
        quality_changes: every decision of the budget, oldest first.
        fps_in: pictures per second that the source gave, over the whole run.
        fps_out: new pictures per second that the pipeline gave, over the whole run.
        recent: the same over the last moments.
    """

    elapsed_s: float
    frames: int
    steps: dict[str, Percentiles]
    latency_ms: dict[str, Percentiles]
    drops: dict[str, int]
    counters: dict[str, int]
    quality_changes: tuple[QualityChange, ...]
    fps_in: float
    fps_out: float
    recent: Window

    def to_dict(self) -> dict[str, Any]:
        """Only dicts, lists, strings and finite numbers: what ``json.dumps`` takes."""
        plain = asdict(self)
        plain["quality_changes"] = [
            {"t_s": change.t_s, "from": _plain(change.old), "to": _plain(change.new), "why": change.why}
            for change in self.quality_changes
        ]
        return plain


def _plain(quality: Quality) -> dict[str, Any]:
    return {
        "scale": quality.scale,
        "detect_every_n": quality.detect_every_n,
        "steps": sorted(quality.steps),
        "in_flight": quality.in_flight,
    }


class Series:
    """Durations of one kind in milliseconds. One writer; readers may look at any time and miss the newest sample."""

    def __init__(self) -> None:
        self._recent = np.zeros(RECENT_SAMPLES)
        self._bins = np.zeros(DECADES * BINS_PER_DECADE, np.int64)
        self.count = 0

    def note(self, value_ms: float) -> None:
        """Add a sample."""
        self._recent[self.count % RECENT_SAMPLES] = value_ms
        self._bins[_bin_of(value_ms)] += 1
        self.count += 1

    def recent(self) -> Percentiles:
        """Exact percentiles of the latest samples."""
        filled = min(self.count, RECENT_SAMPLES)
        if not filled:
            return Percentiles(0.0, 0.0, 0.0, 0)
        p50, p95, p99 = np.percentile(self._recent[:filled], (50, 95, 99))
        return Percentiles(float(p50), float(p95), float(p99), filled)

    def whole(self) -> Percentiles:
        """Percentiles of every sample ever, each within 1.2 % of a sample of that rank."""
        total = np.cumsum(self._bins)
        count = int(total[-1])
        if not count:
            return Percentiles(0.0, 0.0, 0.0, 0)
        bins = np.searchsorted(total, np.ceil(np.array([0.50, 0.95, 0.99]) * count))
        p50, p95, p99 = LOWEST_MS * 10 ** ((bins + 0.5) / BINS_PER_DECADE)
        return Percentiles(float(p50), float(p95), float(p99), count)


def _bin_of(value_ms: float) -> int:
    if value_ms <= LOWEST_MS:
        return 0
    return min(int(math.log10(value_ms / LOWEST_MS) * BINS_PER_DECADE), DECADES * BINS_PER_DECADE - 1)


class Rate:
    """Events per second of one kind. One writer; readers may look at any time."""

    def __init__(self) -> None:
        self._times_s = np.zeros(256)
        self._first_s = 0.0
        self.count = 0

    def note(self, now_s: float) -> None:
        """Note one event at a time that is not before the last one."""
        if not self.count:
            self._first_s = now_s
        self._times_s[self.count % self._times_s.size] = now_s
        self.count += 1

    def recent(self, now_s: float) -> float:
        """Rate of the events of the last ``RECENT_S`` seconds; 0 for fewer than two."""
        times = self._times_s[: min(self.count, self._times_s.size)]
        times = times[times > now_s - RECENT_S]
        span = float(np.ptp(times)) if times.size > 1 else 0.0
        return (times.size - 1) / span if span > 0 else 0.0

    def whole(self) -> float:
        """Rate from the first event to the last; 0 for fewer than two."""
        if self.count < 2:
            return 0.0
        span = float(self._times_s[(self.count - 1) % self._times_s.size]) - self._first_s
        return (self.count - 1) / span if span > 0 else 0.0


class Lap:
    """Context manager that times its block into one series; made once per name, so a lap allocates nothing.

    Not for two threads at once, and not inside itself.
    """

    __slots__ = ("_clock", "_series", "_start_s")

    def __init__(self, series: Series, clock: Callable[[], float]) -> None:
        self._series = series
        self._clock = clock
        self._start_s = 0.0

    def __enter__(self) -> None:
        self._start_s = self._clock()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._series.note((self._clock() - self._start_s) * 1e3)


class Meter:
    """Collects the figures of one run from all its threads.

    Args:
        clock: seconds, monotonic; the clock of ``Frame.t_capture_s``.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._start_s = clock()
        self._lock = threading.Lock()  # for names seen the first time and for counting, never held over work
        self._laps: dict[str, Lap] = {}
        self._steps: dict[str, Series] = {}
        self._latency: dict[str, Series] = {}
        self._removed: set[str] = set()
        self._drops: dict[str, int] = {}
        self._counters: dict[str, int] = {}
        self._changes: list[QualityChange] = []
        self._in = Rate()
        self._out = Rate()

    def lap(self, name: str) -> Lap:
        """Time a block as one sample of the step ``name``: ``with meter.lap("detect"): ...``."""
        lap = self._laps.get(name)
        if lap is None:
            with self._lock:
                lap = self._laps.setdefault(name, Lap(self._steps.setdefault(name, Series()), self._clock))
        return lap

    def note_lap(self, name: str, cost_ms: float) -> None:
        """Note one sample of the step ``name`` that something else has timed."""
        self._series(self._steps, name).note(cost_ms)

    def captured(self, now_s: float) -> None:
        """The source gave a picture at ``now_s``."""
        self._in.note(now_s)

    def processed(self, now_s: float, cost_ms: float) -> None:
        """The pipeline gave a picture at ``now_s`` after ``cost_ms`` of work (the step ``compute``)."""
        self._out.note(now_s)
        self._series(self._steps, "compute").note(cost_ms)

    def delivered(self, sink: str, latency_ms: float) -> None:
        """A new picture was written to ``sink``, ``latency_ms`` after it was captured."""
        self._series(self._latency, sink).note(latency_ms)

    def removed(self, sink: str) -> None:
        """A sink is there no more: its latest figures are no longer those of this moment."""
        with self._lock:
            self._removed.add(sink)

    def drop(self, cause: str, count: int = 1) -> None:
        """``count`` pictures will never be shown because of ``cause``."""
        self._add(self._drops, cause, count)

    def count(self, name: str, count: int = 1) -> None:
        """Count something that has no field of its own."""
        self._add(self._counters, name, count)

    def quality_changed(self, now_s: float, old: Quality, new: Quality, why: str) -> None:
        """The budget decided."""
        with self._lock:
            self._changes.append(QualityChange(now_s - self._start_s, old, new, why))

    def fps_in(self, now_s: float) -> float:
        """Pictures per second that the source gave in the last two seconds; 0 when unknown."""
        return self._in.recent(now_s)

    @property
    def frames(self) -> int:
        """Pictures that came out of the pipeline so far. Any thread."""
        return self._out.count

    def snapshot(self) -> Stats:
        """Everything measured so far. Cheap enough for a few times a second; safe from any thread."""
        now_s = self._clock()
        with self._lock:
            steps, latency = dict(self._steps), dict(self._latency)
            drops, counters, changes = dict(self._drops), dict(self._counters), tuple(self._changes)
        return Stats(
            elapsed_s=now_s - self._start_s,
            frames=self._out.count,
            steps={name: series.whole() for name, series in steps.items()},
            latency_ms={name: series.whole() for name, series in latency.items()},
            drops=drops,
            counters=counters,
            quality_changes=changes,
            fps_in=self._in.whole(),
            fps_out=self._out.whole(),
            recent=Window(
                steps={name: series.recent() for name, series in steps.items()},
                latency_ms={name: series.recent() for name, series in latency.items() if name not in self._removed},
                fps_in=self._in.recent(now_s),
                fps_out=self._out.recent(now_s),
            ),
        )

    def _series(self, table: dict[str, Series], name: str) -> Series:
        series = table.get(name)
        if series is None:
            with self._lock:
                series = table.setdefault(name, Series())
        return series

    def _add(self, table: dict[str, int], name: str, count: int) -> None:
        if count:
            with self._lock:
                table[name] = table.get(name, 0) + count
