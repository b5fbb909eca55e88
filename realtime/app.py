"""The only place where names become objects: opens what the settings name, in order, and closes it in reverse."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from engines import registry
from engines.contract import Device
from realtime import loop
from realtime.assets import sample_source
from realtime.budget import Budget, Level, ladder
from realtime.choose import Chooser
from realtime.config import Settings
from realtime.detect import Detector, open_detector
from realtime.guard import Guard
from realtime.identity import read_portrait
from realtime.landmarks import MeshNet
from realtime.meter import Meter
from realtime.models import Models
from realtime.pipeline import Pipeline
from realtime.placard import placard
from realtime.sinks import Sink, SinkSpec, SinkWish, open_sink, parse_output
from realtime.sources import Source, SourceInfo, SourceSpec, SourceWish, open_source, parse_input
from realtime.swappers import OPTIONAL_STEPS, Kit, Look, family
from realtime.track import Tracker

DETECTOR_CARD = "face_detection_short_range"
MESH_CARD = "face_landmark"
UNPACED_KINDS = ("video", "demo")
"""Sources without a time of their own, which can be read as fast as they are worked on."""


@dataclass(frozen=True, slots=True)
class Networks:
    """What finds faces, opened.

    Attributes:
        device: where pictures are cut and drawn.
        detector: finds faces.
        mesh_net: finds the mesh of one face.
        models: opens further ones.
    """

    device: Device
    detector: Detector
    mesh_net: MeshNet
    models: Models

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """What really runs, for the banner: the device, then each network with its runtime."""
        return (("device", self.device.name), *(("networks", f"{name} on {runs}") for name, runs in self.models.facts))


@dataclass(frozen=True, slots=True)
class SourceFaces:
    """The faces to show, made once.

    Attributes:
        identity: what the swapper's family derived from the photos.
        facts: what a person should know about the photos, for the banner.
    """

    identity: Any
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Ends:
    """What the names of input and outputs mean.

    Attributes:
        source: to open.
        wish: how.
        sinks: to open, in order.
    """

    source: SourceSpec
    wish: SourceWish
    sinks: tuple[SinkSpec, ...]


@contextmanager
def open_networks(settings: Settings) -> Iterator[Networks]:
    """Open the device and the networks; frees them at the end.

    Raises:
        ModelError: a model file is missing or damaged.
        EngineError: a runtime cannot be used.
        DeviceError: the device cannot be used.
    """
    device = registry.open_device("cpu" if settings.engine.device == "auto" else settings.engine.device)
    with Models(settings.engine.runtime, max(1, settings.engine.threads)) as models:
        detector = open_detector(models.card(DETECTOR_CARD), models.open(DETECTOR_CARD), device)
        mesh_net = MeshNet(models.card(MESH_CARD), models.open(MESH_CARD), device)
        yield Networks(device, detector, mesh_net, models)


def make_kit(settings: Settings, networks: Networks, meter: Meter) -> Kit:
    """Make what a swapper's family works with."""
    look = Look(
        likeness=settings.swap.likeness,
        colour=settings.swap.colour,
        opacity=settings.swap.opacity,
        boost=settings.swap.boost,
    )
    return Kit(networks.device, networks.models, settings.swap.engine, look, meter)


def load_faces(settings: Settings, networks: Networks) -> SourceFaces:
    """Read the source photos, or the built-in one where none is named.

    Raises:
        IdentityError: a photo cannot be used.
    """
    photos = settings.source.photos or (str(sample_source()),)
    portraits = [read_portrait(path, networks.detector, networks.mesh_net) for path in photos]
    return SourceFaces(
        family(settings.swap.engine, networks.models).identify(portraits, make_kit(settings, networks, Meter())),
        tuple(
            ("face", f"{Path(portrait.path).name} shows {portrait.faces} faces; the largest, most central one is used")
            for portrait in portraits
            if portrait.faces > 1
        ),
    )


def build_pipeline(
    settings: Settings,
    networks: Networks,
    faces: SourceFaces,
    meter: Meter,
    on_event: Callable[[str], None] = lambda _: None,
) -> Pipeline:
    """Make the path of a frame; ``on_event`` is told in words when frames cannot be swapped."""
    kit = make_kit(settings, networks, meter)
    return Pipeline(
        Tracker(networks.detector, networks.mesh_net, settings.tracking.min_presence, meter),
        Chooser(settings.faces.which),
        family(kit.name, kit.models).open_swapper(faces.identity, kit),
        Guard(settings.faces.on_lost, settings.faces.hold_s, lambda size: placard(size, "No face in view").copy()),
        meter,
        on_event,
    )


def build_budget(settings: Settings) -> Budget:
    """Make what decides how much work a frame gets; with one level only where quality may not adapt."""
    steps = OPTIONAL_STEPS if settings.swap.obstacles else ()
    levels: Sequence[Level] = ladder(steps, settings.tracking.detect_every_n, settings.quality.min_scale)
    return Budget(levels if settings.quality.adaptive else levels[:1], settings.quality.target_fps)


def name_ends(settings: Settings) -> Ends:
    """Read what input and outputs are called; opens nothing.

    Raises:
        ConfigError: a name cannot be understood.
    """
    source = parse_input(settings.input.what)
    sinks = tuple(parse_output(text) for text in settings.output.to)
    paced = settings.input.pace == "live"
    if settings.input.pace == "auto":
        paced = source.kind not in UNPACED_KINDS or any(sink.kind not in ("recording", "null") for sink in sinks)
    wish = SourceWish(
        size=settings.input.size,
        fps=settings.input.fps or None,
        loop=settings.input.loop,
        paced=paced,
        fourcc=settings.input.fourcc,
    )
    return Ends(source, wish, sinks)


def open_again(ends: Ends, before: SourceInfo | None) -> Source:
    """Open the source: as it was named, or, the second time, the same device as before."""
    return open_source(before.reopen if before and before.reopen else ends.source, ends.wish)


def open_one_sink(spec: SinkSpec, settings: Settings, source: SourceInfo) -> Sink:
    """Open one output for pictures of this source."""
    wish = SinkWish(
        size=source.size,
        fps=settings.output.fps or source.fps,
        live=source.live,
        mirror=settings.output.mirror_preview,
        audio_path=source.audio_path,
        audio_rate=source.audio_rate,
        overwrite=settings.output.overwrite,
    )
    return open_sink(spec, wish)


def build_show(settings: Settings, ends: Ends, pipeline: Pipeline, meter: Meter) -> loop.Show:
    """Make what the loop runs; nothing is opened before it does."""
    return loop.Show(
        open_source=partial(open_again, ends),
        open_sinks=[partial(open_one_sink, spec, settings) for spec in ends.sinks],
        process=pipeline.process,
        meter=meter,
        budget=build_budget(settings),
        make_card=placard,
    )
