"""Says which models a run will open, and which of them are not here, before it opens any; knows cards, no engine."""

from __future__ import annotations

from collections.abc import Iterator

from engines import store
from engines.card import decode_as, load_card
from engines.errors import ModelError
from realtime.config import Settings
from realtime.families import rule_of
from realtime.swappers import MESH


def needed_models(settings: Settings) -> tuple[str, ...]:
    """List the cards of all models that the settings name or that those need in turn, each once, the swapper first.

    Raises:
        ModelError: a card is missing or wrong.
    """
    return tuple(dict.fromkeys(name for name in _needed(settings) if name))


def demand_models(settings: Settings) -> None:
    """Refuse a run whose models are not here, all of them in one message.

    Raises:
        ModelError: a model is not here, or a card is missing or wrong.
    """
    names = needed_models(settings)
    missing = [name for name in names if store.locate(load_card(name)) is None]
    if missing:
        files = ", ".join(f"{name} ({load_card(name).file})" for name in missing)
        raise ModelError(
            f"this run needs models that are not here: {files}",
            f"doppelcam models pull {' '.join(missing)}; where you have the files: doppelcam models add FILE",
        )


def _needed(settings: Settings) -> Iterator[str]:
    if settings.swap.engine != MESH:
        yield settings.swap.engine
        yield from _in_turn(settings.swap.engine)
        yield from (settings.masks.occlusion, settings.masks.regions)
    yield settings.enhance.model
    if settings.faces.only or settings.faces.map:
        yield settings.faces.recogniser


def _in_turn(name: str) -> Iterator[str]:
    """What the identity of a swapper is made with: a recogniser, and perhaps a converter."""
    card = load_card(name)
    rule = rule_of(card.family)
    latent = getattr(decode_as(card, rule), "latent", None) if rule else None
    if latent is not None:
        yield from (latent.recogniser, latent.converter)
