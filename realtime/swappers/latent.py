"""Swappers that are told the identity by a vector (inswapper and its kin); knows their cards, not a crop's path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ConfigDict, with_config

from engines.card import decode_as
from engines.conform import fits
from engines.errors import ModelError
from realtime.cropnet import CropRule
from realtime.identity import Portrait
from realtime.people.embedding import Embedding, least_alike, mean_of
from realtime.people.latents import LatentRule, Latents
from realtime.people.recognise import embedding_of_photo, open_recogniser
from realtime.swappers import Kit, Swapper
from realtime.swappers.crop import open_crop_swapper
from realtime.swappers.likeness import LikenessSwapper
from realtime.types import F32

TAKES_PHOTOS = True
"""See :class:`realtime.swappers.Family`."""
ONE_PERSON = 0.2
"""Cosine below which two photos are hardly of one person: of different people it is near 0."""


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True, kw_only=True)
class LatentSwapperRule(CropRule):
    """What a card of the family "latent" says.

    Attributes:
        source: name of the input that takes the identity.
        latent: how it is made.
    """

    source: str
    latent: LatentRule

    @property
    def others(self) -> tuple[str, ...]:
        """See :class:`realtime.cropnet.CropRule`."""
        return (self.source,)


def identify(portraits: Sequence[Portrait], kit: Kit) -> Embedding:
    """See :class:`realtime.swappers.Family`: the mean of what the recogniser says of each photo."""
    recogniser = _rule(kit).latent.recogniser
    each = [embedding_of_photo(portrait, recogniser, kit.models, kit.device, kit.cache) for portrait in portraits]
    if (alike := least_alike(each)) < ONE_PERSON:
        kit.tell(f"these photos may not be of one person: two of them are only {alike:.2f} alike (of 1)")
    return mean_of(each)


def open_swapper(identity: Embedding, kit: Kit) -> Swapper:
    """See :class:`realtime.swappers.Family`."""
    rule = _rule(kit)
    latents = Latents(kit.name, rule.latent, kit.models, kit.cache)
    latent, likeness = latents.of_source(identity), kit.look.likeness
    _demand_fit(kit, rule, latent)
    swapper = open_crop_swapper(kit, rule, {rule.source: latent})
    if likeness >= 1:
        return swapper
    recogniser = open_recogniser(rule.latent.recogniser, kit.models, kit.device)
    latents.of(identity)  # reads and opens what the first person in view would else have to wait for
    return LikenessSwapper(swapper, latent, identity, likeness, recogniser, latents.of, kit.meter)


def _rule(kit: Kit) -> LatentSwapperRule:
    return decode_as(kit.models.card(kit.name), LatentSwapperRule)


def _demand_fit(kit: Kit, rule: LatentSwapperRule, latent: F32) -> None:
    """Raise ``ModelError`` where the swapper does not take such a vector: else every picture would fail."""
    takes = [spec.shape for spec in kit.models.card(kit.name).inputs if spec.name == rule.source]
    if takes and not fits(takes[0], latent.shape):
        raise ModelError(
            f"{kit.name} takes its identity as {list(takes[0])}, "
            f"{rule.latent.converter or rule.latent.recogniser} gives {list(latent.shape)}",
            f"correct [decode.latent] on the card of {kit.name}",
        )
