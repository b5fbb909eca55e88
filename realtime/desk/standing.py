"""How a run stands, in the words of the desk: its figures, faces and settings; changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from realtime import config
from realtime.budget import Budget
from realtime.config import Settings
from realtime.desk.messages import LIVE_KEYS, FaceBox, Figures, Limits
from realtime.meter import Meter
from realtime.pipeline import Pipeline
from realtime.status import quality_text, status_line
from realtime.types import Face

WHICH = ("largest", "all", *(str(count) for count in range(1, 9)))
"""All that ``faces.which`` takes."""


def figures_of(meter: Meter, pipeline: Pipeline, budget: Budget | None) -> Figures:
    """Look at a run. Cheap enough for a few times a second; from any thread.

    Args:
        meter: of the run.
        pipeline: of the run.
        budget: that chooses its quality; ``None`` before it has begun.
    """
    stats = meter.snapshot()
    now = stats.recent
    less = budget is not None and budget.quality != budget.best
    swapped = {face.track_id for face in pipeline.faces}
    return Figures(
        t_s=stats.elapsed_s,
        fps_in=now.fps_in,
        fps_out=now.fps_out,
        latency_ms={name: (one.p50, one.p95) for name, one in now.latency_ms.items()},
        steps_ms={name: one.p50 for name, one in now.steps.items()},
        dropped=dict(stats.drops),
        quality=quality_text(budget.quality, budget.best.steps) if budget and less else "",
        faces=_boxes(pipeline, swapped),
        line=status_line(stats, len(swapped)),
    )


def _boxes(pipeline: Pipeline, swapped: Collection[int]) -> tuple[FaceBox, ...]:
    width, height = pipeline.size
    if not (width and height):
        return ()
    return tuple(
        FaceBox(
            track_id=face.track_id,
            left=float(face.box_xyxy[0]) / width,
            top=float(face.box_xyxy[1]) / height,
            right=float(face.box_xyxy[2]) / width,
            bottom=float(face.box_xyxy[3]) / height,
            swapped=face.track_id in swapped,
        )
        for face in pipeline.in_view
    )


def face_at(pipeline: Pipeline, x: float, y: float) -> Face | None:
    """The face at a place, of several the smallest: it is in front, or inside the box of another.

    Args:
        pipeline: of the run.
        x: share of the picture's width.
        y: share of its height.
    """
    width, height = pipeline.size
    hits = [face for face in pipeline.in_view if _holds(face, x * width, y * height)]
    return min(hits, key=lambda face: float(face.box_xyxy[2] - face.box_xyxy[0]), default=None)


def _holds(face: Face, x: float, y: float) -> bool:
    left, top, right, bottom = face.box_xyxy
    return bool(left <= x <= right and top <= y <= bottom)


def values_of(settings: Settings) -> dict[str, object]:
    """The settings that can be changed while a run goes on, by key."""
    return {
        key: getattr(getattr(settings, section), name) for key in LIVE_KEYS for section, _, name in [key.partition(".")]
    }


def limits(models: Mapping[str, tuple[str, ...]]) -> dict[str, Limits]:
    """What each of them takes.

    Args:
        models: what those that name a model can name, by key.
    """
    named = {**models, "faces.which": WHICH}
    return {key: _limits(key, named.get(key, ())) for key in LIVE_KEYS}


def _limits(key: str, named: tuple[str, ...]) -> Limits:
    low, high, choices = config.bounds(key)
    choices = choices or named
    return Limits(words=config.allowed_text(key), low=low, high=high, choices=choices)
