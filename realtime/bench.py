"""Measures the real loop on prepared pictures: free running and paced; knows how to measure, not how to show it.

Every figure comes from the same loop, pipeline and settings as a live run, only the ends are replaced: pictures that
are decoded already come in, and nothing takes what goes out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from realtime import app, loop
from realtime.config import Settings
from realtime.errors import ConfigError
from realtime.machine import describe, peak_rss_mb
from realtime.meter import Meter, Percentiles, Stats
from realtime.pipeline import Begun, Pipeline
from realtime.placard import placard
from realtime.rehearsal import Rehearsal, close_up, stock_from, tile_size
from realtime.sinks import SinkSpec
from realtime.sources import Source, SourceInfo, SourceWish, open_source
from realtime.types import F32, U8, Frame, Quality, Size

RATES = (30.0, 60.0)
"""Pictures per second of the paced runs: the two rates of webcams."""
WARM_FRAMES = 30
"""Pictures before the measurement: kernels are loaded, buffers allocated, the face is found."""
LOOK_FRAMES = 60
"""Pictures in which a face is looked for, to know its height."""

Stock = tuple[U8, ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """What is measured on.

    Attributes:
        size: of the pictures.
        frames: in each of the runs.
        face_height_px: height at which the face is shown, forehead to chin; 0 leaves it as it is.
        copies: how many times the picture is shown side by side: 1, 4 or 9.
    """

    size: Size
    frames: int
    face_height_px: float = 0.0
    copies: int = 1


@dataclass(frozen=True, slots=True)
class Stage:
    """What every run is made of."""

    settings: Settings
    networks: app.Networks
    faces: app.SourceFaces

    def pipeline(self, meter: Meter) -> Pipeline:
        """Make a pipeline that has seen nothing yet."""
        return app.build_pipeline(self.settings, self.networks, self.faces, meter)


def measure(settings: Settings, scene: Scene, tell: Callable[[str], None]) -> dict[str, Any]:
    """Run the benchmark.

    Args:
        settings: as for a live run; ``input.what`` is where the pictures are taken from.
        scene: what is measured on.
        tell: told what is being done.

    Returns:
        The figures, ready for JSON: ``steps`` {name: {p50, p95, p99}} and ``compute_ms`` of the free run, ``fps_free``,
        ``compute_paced_ms`` and ``latency_ms`` {rate: {p50, p95, p99}}, ``drops`` {run: {cause: count}},
        ``peak_rss_mb``, ``faces`` (mean of the free run), ``frames``, ``engine``, ``device``, ``size``, ``machine``.

    Raises:
        LiveError: the input, a photo or a model cannot be used.
    """
    with app.open_networks(settings) as networks:
        tell(f"preparing pictures of {scene.size}")
        stage = Stage(settings, networks, app.load_faces(settings, networks))
        stock = _stock(stage, scene)
        runs: dict[str, Stats] = {}
        swapped = 0.0
        _one_run(stage, stock, 0, WARM_FRAMES)
        for fps in (0.0, *RATES):
            name = f"{fps:g}" if fps else "free"
            tell(f"{scene.frames} pictures, " + (f"paced at {name} fps" if fps else "as fast as possible"))
            runs[name], seen = _one_run(stage, stock, fps, scene.frames)
            swapped = swapped or seen
        device = dict(networks.facts)["device"]
    return {
        "size": str(scene.size),
        "frames": scene.frames,
        "faces": round(swapped, 2),
        **_figures(runs),
        "peak_rss_mb": round(peak_rss_mb(), 1),
        "engine": settings.swap.engine,
        "device": device,
        "machine": describe(),
    }


def _figures(runs: dict[str, Stats]) -> dict[str, Any]:
    """Put the figures of the runs in the form of the report."""
    free = runs["free"]
    paced = {name: stats for name, stats in runs.items() if name != "free"}
    return {
        "steps": {name: _plain(figures) for name, figures in free.steps.items() if name != "compute"},
        "compute_ms": _plain(free.steps["compute"]),
        "fps_free": round(free.fps_out, 1),
        "compute_paced_ms": {name: _plain(stats.steps["compute"]) for name, stats in paced.items()},
        "latency_ms": {name: _plain(next(iter(stats.latency_ms.values()))) for name, stats in paced.items()},
        "drops": {name: stats.drops for name, stats in runs.items()},
    }


def _one_run(stage: Stage, stock: Stock, fps: float, frames: int) -> tuple[Stats, float]:
    """Run the loop once over the stock; the figures, and the mean number of faces."""
    meter = Meter()
    pipeline = stage.pipeline(meter)
    seen: list[int] = []
    counted = _Counted(pipeline, seen.append)

    def rehearse(_: SourceInfo | None) -> Rehearsal:
        return Rehearsal(stock, fps, frames)

    show = loop.Show(
        open_source=rehearse,
        open_sinks=[partial(app.open_one_sink, SinkSpec("null"), stage.settings, None)],
        process=counted,
        meter=meter,
        budget=app.build_budget(stage.settings, works_ahead=stage.networks.device.works_ahead),
        make_card=placard,
        attached=stage.networks.device.attached,
    )
    loop.run(show, threading.Event())
    return meter.snapshot(), sum(seen) / max(1, len(seen))


@dataclass(frozen=True, slots=True)
class _Counted:
    """A pipeline that tells of each frame how many faces were to be swapped in it."""

    pipeline: Pipeline
    tell: Callable[[int], None]

    def begin(self, frame: Frame, quality: Quality) -> Begun:
        begun = self.pipeline.begin(frame, quality)
        self.tell(len(begun.faces))
        return begun

    def finish(self, begun: Begun, now_s: float) -> Frame:
        return self.pipeline.finish(begun, now_s)


def _stock(stage: Stage, scene: Scene) -> Stock:
    """Prepare the pictures."""
    ends = app.name_ends(stage.settings)
    # A demo is drawn at the size that is measured; a close-up is cut from the source's own pixels.
    own_size = scene.face_height_px or scene.copies > 1
    wish = SourceWish(size=None if own_size else scene.size, paced=False, loop=True)
    source = open_source(ends.source, wish)
    try:
        tile_from_source = None
        if scene.face_height_px:
            box = _face_box(stage.pipeline(Meter()), source)
            tile_from_source = close_up(box, scene.face_height_px, tile_size(scene.size, scene.copies))
        return stock_from(source, scene.size, tile_from_source, scene.copies)
    finally:
        source.close()


def _face_box(pipeline: Pipeline, source: Source) -> F32:
    """Find the face of the input: left, top, right, bottom in its pixels."""
    for _ in range(LOOK_FRAMES):
        frame = source.read()
        if frame is None:
            break
        pipeline.process(frame, Quality(1.0, 1, frozenset()), frame.t_capture_s)
        if pipeline.faces:
            return pipeline.faces[0].box_xyxy
    raise ConfigError(f"no face in the first {LOOK_FRAMES} pictures of {source.info.name}", "give another --input")


def _plain(figures: Percentiles) -> dict[str, float]:
    return {name: round(getattr(figures, name), 3) for name in ("p50", "p95", "p99")}
