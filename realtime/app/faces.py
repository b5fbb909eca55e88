"""Reads the photos that the settings name and derives from them what a swapper shows; opens no camera."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from realtime.app.needs import demand_models
from realtime.app.networks import Networks
from realtime.config import Settings
from realtime.facts import face_facts
from realtime.identity import Portrait, read_portrait
from realtime.meter import Meter
from realtime.people.cast import Reference
from realtime.people.parts import parts_of
from realtime.people.recognise import embedding_of_photo
from realtime.people.vectorcache import VectorCache
from realtime.swappers import Kit, Look, Masks, family


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


def make_kit(settings: Settings, networks: Networks, meter: Meter, tell: Callable[[str], None] = lambda _: None) -> Kit:
    """Make what a swapper's family works with; ``tell`` see :class:`realtime.swappers.Kit`."""
    return Kit(
        networks.device,
        networks.models,
        settings.swap.engine,
        make_look(settings),
        meter,
        masks=make_masks(settings),
        cache=VectorCache(cache_folder()),
        tell=tell,
    )


def make_look(settings: Settings) -> Look:
    """Say how the new face looks."""
    swap = settings.swap
    return Look(
        likeness=swap.likeness,
        colour=swap.colour,
        opacity=swap.opacity,
        boost=swap.boost,
        morph=swap.morph,
        blend=swap.blend,
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
    demand_models(settings)  # after the photos: what is wrong with them is mended sooner
    identities = tuple(kin.identify(portraits, kit) for portraits in shown)
    people = tuple(
        Reference(embedding_of_photo(portrait, settings.faces.recogniser, kit.models, kit.device, kit.cache), role)
        for portrait, role in named
    )
    return SourceFaces(identities, people, tuple(facts))
