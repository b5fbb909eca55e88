"""What replaces a face: the ``Swapper`` contract and the table of families; knows no model."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from engines.contract import Device
from engines.errors import ModelError
from realtime.identity import Portrait
from realtime.meter import Meter
from realtime.models import Models
from realtime.people.vectorcache import VectorCache
from realtime.types import F64, U8, Face

FAMILIES: dict[str, str] = {
    "mesh": "realtime.swappers.mesh",
    "latent": "realtime.swappers.latent",
    "image": "realtime.swappers.image",
    "dfm": "realtime.swappers.dfm",
}
"""Ways to make the new face, by the family that a model card states: a module that is a ``Family``."""

MESH = "mesh"
"""The family that needs no model card: the settings name it as they name a card."""

LEAST_FACE_PX = 12
"""Faces lower than this are left to the policy for lost faces: there is nothing to recognise in them."""

ENHANCE = "enhance"
"""Optional step: make the new face finer with a network."""
REGIONS = "regions"
"""Optional step: keep hair and glasses, by a network that tells the regions of a face."""
OCCLUSION = "occlusion"
"""Optional step: keep what is in front of the face in front, by a network that sees it."""
OBSTACLES = "obstacles"
"""Optional step: the same by a memory of the face, which needs no network."""

OPTIONAL_STEPS: tuple[str, ...] = (ENHANCE, REGIONS, OCCLUSION, OBSTACLES)
"""Steps that the budget may leave out, the most dispensable first. A run has those of its settings only."""


@dataclass(frozen=True, slots=True)
class Look:
    """How the new face looks.

    Attributes:
        likeness: how far the face goes from the person in view to the source, 0..1: the mesh swapper moves the
            features, a network that takes a vector is given one between the two.
        colour: how far the face takes the tone and light of the scene, 0..1.
        opacity: of the new face, 0..1.
        boost: how many times the side of its own crop a network works at.
        morph: how far a network that can be told goes from the person in view to its own face, 0..1.
        blend: how the face meets what is around it: "feather" or "poisson".
    """

    likeness: float = 1.0
    colour: float = 1.0
    opacity: float = 1.0
    boost: int = 1
    morph: float = 1.0
    blend: str = "feather"


@dataclass(frozen=True, slots=True)
class Masks:
    """What is kept of the person in view.

    Attributes:
        occlusion: card of the network that sees what is in front of the face; empty for none.
        regions: card of the network that tells the regions of the face; empty for none.
        every_n: frames between two runs of these networks for one face.
        obstacles: keep what is in front of the face, with the memory of the face where no network is named for it.
        own_mouth: keep the mouth.
    """

    occlusion: str = ""
    regions: str = ""
    every_n: int = 2
    obstacles: bool = True
    own_mouth: bool = False


@dataclass(frozen=True, slots=True)
class Kit:
    """What a family works with.

    Attributes:
        device: cuts and paints.
        models: opens networks by the names of their cards; they are closed when the run ends.
        name: card of the swapper; "mesh" where it needs none.
        look: how the new face looks.
        meter: gets the laps.
        masks: what is kept of the person in view.
        cache: keeps what took a network to find out about a photo.
        tell: told in words what a person should know about the photos.
    """

    device: Device
    models: Models
    name: str
    look: Look
    meter: Meter
    masks: Masks = field(default_factory=Masks)
    cache: VectorCache = field(default_factory=VectorCache)
    tell: Callable[[str], None] = lambda _: None


def optional_steps(engine: str, masks: Masks, enhances: bool) -> tuple[str, ...]:
    """Say which of ``OPTIONAL_STEPS`` a run has, in their order.

    Args:
        engine: the setting ``swap.engine``.
        masks: what is kept of the person in view.
        enhances: whether there is a network that makes the new face finer.
    """
    networks = engine != MESH
    has = {
        ENHANCE: enhances,
        REGIONS: networks and bool(masks.regions),
        OCCLUSION: networks and bool(masks.occlusion),
        OBSTACLES: masks.obstacles and not (networks and masks.occlusion),
    }
    return tuple(step for step in OPTIONAL_STEPS if has[step])


@dataclass(frozen=True, slots=True)
class Painted:
    """Where a swapper has painted, until its next face.

    Attributes:
        opacity: (side, side) uint8 on its upright crop, may be strided.
        picture_from_crop: (2, 3) between centres of pixels.
    """

    opacity: U8
    picture_from_crop: F64


def scales(engine: str) -> bool:
    """Say whether a smaller working picture saves a swapper time.

    A network's crop is of one size in any picture, so shrinking the surroundings first only adds to the cost: a swap at
    half scale took 1.2 to 4 times as long, on faces of 200 to 700 pixels and not counting the network.

    Args:
        engine: the setting ``swap.engine``.
    """
    return engine == MESH


class Swapper(Protocol):
    """Paints another face over followed faces. Used by one thread."""

    @property
    def painted(self) -> Painted | None:
        """Where the latest face was painted; ``None`` where nobody knows, which is on the face."""

    def swap(self, pixels: U8, face: Face, now_s: float, steps: Collection[str]) -> bool:
        """Paint over one face.

        Args:
            pixels: (H, W, 3) uint8 BGR; painted into, around the face only.
            face: in these pixels.
            now_s: when the frame was captured.
            steps: the optional steps that run.

        Returns:
            ``False`` when the face could not be painted over: it is too small or outside the picture. Then not a pixel
            has changed, and the person must not be shown.
        """

    def forget(self, followed: Collection[int]) -> None:
        """Drop what is remembered of everyone but these track ids."""

    def relook(self, look: Look) -> bool:
        """Take another look from the next face on; from any thread.

        Returns:
            ``False`` where that takes a new swapper, and nothing has changed.
        """


class Family(Protocol):
    """A module of ``FAMILIES``. Its identity is its own affair: it is made by one function and taken by the other.

    Attributes:
        TAKES_PHOTOS: whether photos say whose face is shown; otherwise the model is of one person.
    """

    TAKES_PHOTOS: bool

    def identify(self, portraits: Sequence[Portrait], kit: Kit) -> Any:
        """Derive from photos of one face, one or more, what does not change from frame to frame.

        Args:
            portraits: empty only where the family takes no photos.
            kit: what there is to work with.

        Raises:
            IdentityError: a photo cannot be used.
            ModelError: a model that this takes is missing or wrong.
        """

    def open_swapper(self, identity: Any, kit: Kit) -> Swapper:
        """Make a swapper that shows this identity.

        Raises:
            ModelError: the model is missing, or its card is wrong.
            EngineError: no runtime can serve it.
        """


def family(name: str, models: Models) -> Family:
    """Import the family of a swapper.

    Args:
        name: "mesh", or that of a model card.
        models: reads cards.

    Raises:
        ModelError: there is no such card, or it is not one of a swapper.
    """
    kind = name if name == MESH else models.card(name).family
    if kind not in FAMILIES or (kind == MESH and name != MESH):  # cards of mesh networks follow faces
        raise ModelError(
            f"model {name} makes no faces: its card says family {kind!r}",
            "see `doppelcam models list` for those that do",
        )
    return cast(Family, importlib.import_module(FAMILIES[kind]))
