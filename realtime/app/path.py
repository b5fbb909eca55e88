"""Makes the path of a frame and what decides how much work it gets, from settings; opens no camera and no output."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from realtime.app.faces import SourceFaces, make_kit, make_masks
from realtime.app.networks import Networks
from realtime.budget import Budget, Level, ladder
from realtime.config import Settings
from realtime.enhance import Enhancer, open_enhancer
from realtime.guard import Guard
from realtime.meter import Meter
from realtime.people.cast import Cast, Everyone, NamedPeople
from realtime.people.choose import Chooser, Which
from realtime.people.recognise import open_recogniser
from realtime.pipeline import Painters, Pipeline
from realtime.placard import placard
from realtime.smoothing import cutoff_hz
from realtime.swappers import Kit, family, optional_steps, scales
from realtime.track import Tracker

BLANK = ("Back in a moment",)
"""Title and lines of the card that hides everything."""


def build_pipeline(
    settings: Settings,
    networks: Networks,
    faces: SourceFaces,
    meter: Meter,
    on_event: Callable[[str], None] = lambda _: None,
) -> Pipeline:
    """Make the path of a frame; ``on_event`` is told in words when frames cannot be swapped."""
    tracker = Tracker(networks.detector, networks.mesh_net, settings.tracking.min_presence, meter)
    tracker.cutoff_hz = cutoff_hz(settings.tracking.smoothing)
    return Pipeline(
        tracker,
        build_cast(settings, networks, faces, meter),
        build_chooser(settings),
        build_painters(settings, networks, faces, meter),
        Guard(
            settings.faces.on_lost,
            settings.faces.hold_s,
            lambda size: placard(size, "No face in view").copy(),
            lambda size: placard(size, *BLANK),
        ),
        meter,
        on_event,
    )


def build_painters(settings: Settings, networks: Networks, faces: SourceFaces, meter: Meter) -> Painters:
    """Open what paints the new faces."""
    kit = make_kit(settings, networks, meter)
    kin = family(kit.name, kit.models)
    swappers = [kin.open_swapper(identity, kit) for identity in faces.identities]
    return Painters(networks.device, swappers, build_enhancer(settings, kit))


def build_enhancer(settings: Settings, kit: Kit) -> Enhancer | None:
    """Open what makes the new faces finer, where one is named."""
    if not settings.enhance.model:
        return None
    wish = settings.enhance
    return open_enhancer(wish.model, wish.fidelity, wish.amount, kit.device, kit.models, kit.meter)


def build_cast(settings: Settings, networks: Networks, faces: SourceFaces, meter: Meter) -> Cast:
    """Make what decides who may be swapped; the recogniser is opened only where people were named."""
    if not faces.people:
        return Everyone()
    recogniser = open_recogniser(settings.faces.recogniser, networks.models, networks.device)
    return NamedPeople(recogniser, faces.people, settings.faces.match, meter)


def build_chooser(settings: Settings) -> Chooser:
    """Make what decides how many are swapped."""
    return Chooser(chosen_by(settings))


def chosen_by(settings: Settings) -> Which:
    """Say how many are swapped. "largest" is for people without names: whoever was named is wanted."""
    which = settings.faces.which
    named = settings.faces.only or settings.faces.map
    return "all" if named and which == "largest" else which


def build_budget(settings: Settings, *, works_ahead: bool = False) -> Budget:
    """Make what decides how much work a frame gets; with one level only where quality may not adapt.

    Args:
        settings: checked.
        works_ahead: whether the device does, see :class:`engines.contract.Device`.
    """
    steps = optional_steps(settings.swap.engine, make_masks(settings), bool(settings.enhance.model))
    least_scale = settings.quality.min_scale if scales(settings.swap.engine) and not works_ahead else 1.0
    levels: Sequence[Level] = ladder(steps, settings.tracking.detect_every_n, least_scale, overlaps=works_ahead)
    return Budget(levels if settings.quality.adaptive else levels[:1], settings.quality.target_fps)
