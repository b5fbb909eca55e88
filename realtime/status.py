"""Puts the figures of a run into words for one line of a terminal; knows no terminal and no clock."""

from __future__ import annotations

from collections.abc import Collection

from realtime.meter import Percentiles, Stats
from realtime.swappers import OPTIONAL_STEPS
from realtime.types import Quality

NONE = Percentiles(0.0, 0.0, 0.0, 0)


def status_line(stats: Stats, faces: int) -> str:
    """Say how the run goes at this moment.

    Args:
        stats: a snapshot; the recent window is shown, except for drops, which are those of the whole run.
        faces: faces that are swapped at this moment.

    Returns:
        One line such as ``30 fps in, 30 out | latency 8 ms, p95 11 | compute 4.1 ms | 1 face | 0 dropped``. Why
        pictures were dropped is left to the closing line, so that this one fits 80 columns.
    """
    now = stats.recent
    latency = slowest(now.latency_ms)
    parts = [
        f"{now.fps_in:.0f} fps in, {now.fps_out:.0f} out",
        f"latency {_ms(latency.p50)} ms, p95 {_ms(latency.p95)}" if latency.count else "latency not known yet",
        f"compute {_ms(now.steps.get('compute', NONE).p50)} ms",
        "1 face" if faces == 1 else f"{faces} faces" if faces else "no face",
        f"{sum(stats.drops.values())} dropped",
    ]
    if stats.quality_changes:
        parts.append(quality_text(stats.quality_changes[-1].new, stats.quality_changes[0].old.steps))
    return " | ".join(parts)


def progress_text(stats: Stats, total: int) -> str:
    """Say how far a conversion is.

    Args:
        stats: a snapshot.
        total: pictures until the end, 0 when nobody knows.
    """
    of_all = f" of {total} ({stats.frames / total:.0%})" if total else ""
    return f"{stats.frames}{of_all} pictures, {stats.recent.fps_out:.0f} fps"


def closing_line(stats: Stats, live: bool) -> str:
    """Say how the whole run went, in one line.

    Args:
        stats: of the whole run.
        live: the delay from capture to output counts; that of a conversion says nothing.
    """
    latency, compute = slowest(stats.latency_ms), stats.steps.get("compute", NONE)
    seconds = stats.frames / stats.fps_out if stats.fps_out else 0.0
    parts = [
        f"{stats.frames} pictures in {clock_text(seconds)} ({stats.fps_out:.1f} fps)",
        f"compute p50 {_ms(compute.p50)}, p95 {_ms(compute.p95)} ms",
    ]
    if live and latency.count:
        parts.append(f"capture to output p50 {_ms(latency.p50)}, p95 {_ms(latency.p95)} ms")
    return "; ".join([*parts, drops_text(stats.drops)])


def slowest(latency_ms: dict[str, Percentiles]) -> Percentiles:
    """Of several outputs, the figures of the one with the highest p95: what the slowest viewer sees."""
    return max(latency_ms.values(), key=lambda figures: figures.p95, default=NONE)


def quality_text(quality: Quality, steps: Collection[str]) -> str:
    """Say a quality in words, with those optional steps of the run, ``steps``, that it leaves out."""
    left_out = "".join(f", without {step}" for step in OPTIONAL_STEPS if step in steps and step not in quality.steps)
    flight = f", {quality.in_flight} frames in flight" if quality.in_flight > 1 else ""
    looks = f"a look for new faces every {quality.detect_every_n} frames"
    return f"quality {quality.scale:.0%} size{left_out}{flight}, {looks}"


def drops_text(drops: dict[str, int]) -> str:
    """Say how many pictures were dropped and why, the most frequent cause first."""
    causes = sorted(drops.items(), key=lambda item: -item[1])
    if not causes:
        return "0 dropped"
    return f"{sum(drops.values())} dropped ({', '.join(f'{cause} {count}' for cause, count in causes)})"


def clock_text(seconds: float) -> str:
    """Say a duration: ``9.5 s``, ``2:05``, ``1:00:00``."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _ms(value: float) -> str:
    """Two digits are all that a glance can use."""
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"
