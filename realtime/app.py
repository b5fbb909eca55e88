"""The only place where names become objects: opens what the settings name, in order, and closes it in reverse."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from engines import registry
from engines.contract import Device
from realtime import loop
from realtime.budget import Budget, Level, ladder
from realtime.cast import Cast, Everyone, NamedPeople, Reference
from realtime.choose import Chooser
from realtime.config import Settings
from realtime.detect import Detector, open_detector
from realtime.facts import face_facts
from realtime.guard import Guard
from realtime.identity import Portrait, read_portrait
from realtime.landmarks import MeshNet
from realtime.meter import Meter
from realtime.models import Models
from realtime.parts import parts_of
from realtime.pipeline import Pipeline
from realtime.placard import placard
from realtime.recognise import embedding_of_photo, open_recogniser
from realtime.sinks import Sink, SinkSpec, SinkWish, open_sink, parse_output
from realtime.sources import Source, SourceInfo, SourceSpec, SourceWish, open_source, parse_input
from realtime.swappers import Kit, Look, Masks, family, optional_steps
from realtime.track import Tracker
from realtime.vectorcache import VectorCache

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
    """The faces to show and the people who get them, made once.

    Attributes:
        identities: what the swapper's family derived from the photos, one for each face that is shown.
        people: who gets which of them, by its index; empty: whoever is in view gets the only one.
        facts: what a person should know about the photos, for the banner.
    """

    identities: tuple[Any, ...]
    people: tuple[Reference, ...]
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


def make_kit(settings: Settings, networks: Networks, meter: Meter, tell: Callable[[str], None] = lambda _: None) -> Kit:
    """Make what a swapper's family works with; ``tell`` see :class:`realtime.swappers.Kit`."""
    look = Look(
        likeness=settings.swap.likeness,
        colour=settings.swap.colour,
        opacity=settings.swap.opacity,
        boost=settings.swap.boost,
        morph=settings.swap.morph,
        blend=settings.swap.blend,
    )
    return Kit(
        networks.device,
        networks.models,
        settings.swap.engine,
        look,
        meter,
        masks=make_masks(settings),
        cache=VectorCache(cache_folder()),
        tell=tell,
    )


def make_masks(settings: Settings) -> Masks:
    """Say what is kept of the person in view."""
    return Masks(
        occlusion=settings.masks.occlusion,
        regions=settings.masks.regions,
        every_n=settings.masks.every_n,
        obstacles=settings.swap.obstacles,
        own_mouth=settings.swap.own_mouth,
    )


def cache_folder() -> Path:
    """Where what was found out about photos is kept, for the next start; it may be deleted at any time."""
    return user_cache_path("doppelcam", appauthor=False) / "faces"


def load_faces(settings: Settings, networks: Networks) -> SourceFaces:
    """Read the photos of the faces to show (the built-in one where none is named) and of the people who get them.

    Raises:
        ConfigError: somebody was named twice.
        IdentityError: a photo cannot be used.
        ModelError: a model that this takes is missing or wrong.
        EngineError: no runtime can serve it, or it failed on a photo.
    """
    kin = family(settings.swap.engine, networks.models)
    facts = face_facts(settings, kin.TAKES_PHOTOS)
    kit = make_kit(settings, networks, Meter(), lambda text: facts.append(("face", text)))

    def read(path: str) -> Portrait:
        portrait = read_portrait(path, networks.detector, networks.mesh_net)
        if portrait.faces > 1:
            kit.tell(f"{Path(path).name} shows {portrait.faces} faces; the largest, most central one is used")
        return portrait

    parts = parts_of(settings)
    shown = [[read(photo) for photo in part.photos] if kin.TAKES_PHOTOS else [] for part in parts]
    named = [(read(photo), role) for role, part in enumerate(parts) for photo in part.people]
    identities = tuple(kin.identify(portraits, kit) for portraits in shown)
    people = tuple(
        Reference(embedding_of_photo(portrait, settings.faces.recogniser, kit.models, kit.device, kit.cache), role)
        for portrait, role in named
    )
    return SourceFaces(identities, people, tuple(facts))


def build_pipeline(
    settings: Settings,
    networks: Networks,
    faces: SourceFaces,
    meter: Meter,
    on_event: Callable[[str], None] = lambda _: None,
) -> Pipeline:
    """Make the path of a frame; ``on_event`` is told in words when frames cannot be swapped."""
    kit = make_kit(settings, networks, meter)
    kin = family(kit.name, kit.models)
    return Pipeline(
        Tracker(networks.detector, networks.mesh_net, settings.tracking.min_presence, meter),
        build_cast(settings, networks, faces, meter),
        build_chooser(settings),
        [kin.open_swapper(identity, kit) for identity in faces.identities],
        Guard(settings.faces.on_lost, settings.faces.hold_s, lambda size: placard(size, "No face in view").copy()),
        meter,
        on_event,
    )


def build_cast(settings: Settings, networks: Networks, faces: SourceFaces, meter: Meter) -> Cast:
    """Make what decides who may be swapped; the recogniser is opened only where people were named."""
    if not faces.people:
        return Everyone()
    recogniser = open_recogniser(settings.faces.recogniser, networks.models, networks.device)
    return NamedPeople(recogniser, faces.people, settings.faces.match, meter)


def build_chooser(settings: Settings) -> Chooser:
    """Make what decides how many are swapped. "largest" is for people without names: whoever was named is wanted."""
    which = settings.faces.which
    named = settings.faces.only or settings.faces.map
    return Chooser("all" if named and which == "largest" else which)


def build_budget(settings: Settings) -> Budget:
    """Make what decides how much work a frame gets; with one level only where quality may not adapt."""
    steps = optional_steps(settings.swap.engine, make_masks(settings), bool(settings.enhance.model))
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
