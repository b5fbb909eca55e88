"""Puts what a run really uses into label and text for the start banner; opens nothing and decides nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from realtime.assets import sample_source
from realtime.config import Settings
from realtime.people.parts import parts_of
from realtime.sinks import SinkInfo
from realtime.sources import SourceInfo
from realtime.swappers import OPTIONAL_STEPS
from realtime.types import Quality

Fact = tuple[str, str]


def banner_facts(
    settings: Settings, source: SourceInfo, sinks: tuple[SinkInfo, ...], best: Quality, least: Quality
) -> list[Fact]:
    """Say what runs.

    Args:
        settings: of the run.
        source: as it was opened.
        sinks: as they were opened.
        best: what frames get when the load allows everything.
        least: what they get under the heaviest load.

    Returns:
        Labels and texts in the order to show them; a label may come several times in a row.
    """
    return [
        ("swap", f"{settings.swap.engine}, on {_whom(settings)}"),
        *_input(source),
        *_outputs(sinks),
        *_quality(settings, source, best, least),
        ("lost face", _lost(settings)),
    ]


def face_facts(settings: Settings, takes_photos: bool) -> list[Fact]:
    """Say whose face is shown on whom.

    Args:
        settings: of the run.
        takes_photos: see :class:`realtime.swappers.Family`.
    """
    facts = []
    for part in parts_of(settings):
        photos = ", ".join(Path(photo).name for photo in part.photos)
        if part.photos == (str(sample_source()),):
            photos = "the built-in sample; give your own with --source FILE"
        shown = photos if takes_photos else f"the one that {settings.swap.engine} was made for, whatever the photos"
        people = ", ".join(Path(photo).name for photo in part.people)
        facts.append(("face", f"{shown}, on the person of {people}" if people else shown))
    return facts


def _whom(settings: Settings) -> str:
    which = settings.faces.which
    if settings.faces.only or settings.faces.map:
        people = f"up to {which} of the people named" if isinstance(which, int) else "the people named"
        return f"{people}; everyone else is shown AS THEY ARE"
    return {"largest": "the largest face", "all": "every face"}.get(str(which), f"up to {which} faces") + " in view"


def _input(source: SourceInfo) -> Iterator[Fact]:
    rate = f" at {source.fps:.4g} fps" if source.fps else ""
    pace = "" if source.live else ", every picture, as fast as possible"
    yield "input", f"{source.name}: {source.size}{rate}{pace}"
    for fact in source.facts:
        yield "input", fact


def _outputs(sinks: tuple[SinkInfo, ...]) -> Iterator[Fact]:
    for sink in sinks:
        rate = f" at a steady {sink.fps:.4g} fps" if sink.fps else ""
        yield "output", f"{sink.name}: {sink.size}{rate}"
        for fact in sink.facts:
            yield "output", fact


def _quality(settings: Settings, source: SourceInfo, best: Quality, least: Quality) -> Iterator[Fact]:
    less = [f"without {step}" for step in OPTIONAL_STEPS if step in best.steps - least.steps]
    if least.detect_every_n > best.detect_every_n:
        less.append("fewer looks for new faces")
    if least.scale < best.scale:
        less.append(f"the face drawn at {least.scale:.0%} of its size")
    if not less or not source.live:
        yield "quality", "everything, always"
        return
    target = settings.quality.target_fps or source.fps
    rate = f"{target:.4g} fps" if target else "the input's rate"
    yield "quality", f"everything; where {rate} cannot be held, in this order: {', '.join(less)}"


def _lost(settings: Settings) -> str:
    then = {
        "blur": "then the picture is blurred",
        "card": "then a card is shown",
        "hold": "and for as long as it is lost",
        "raw": "then the picture is shown AS IT IS, with your own face if it is there",
    }[settings.faces.on_lost]
    return f"the last swapped picture stays {settings.faces.hold_s:g} s, {then}"
