"""Swappers that are told the identity by a vector (inswapper and its kin); knows their cards, not a crop's path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ConfigDict, with_config

from engines.card import decode_as
from realtime.cropnet import CropRule
from realtime.identity import Portrait
from realtime.latents import LatentRule, latent_of
from realtime.swappers import Kit
from realtime.swappers.crop import CropSwapper, open_crop_swapper
from realtime.types import F32

TAKES_PHOTOS = True
"""See :class:`realtime.swappers.Family`."""


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


def identify(portraits: Sequence[Portrait], kit: Kit) -> F32:
    """See :class:`realtime.swappers.Family`."""
    rule = decode_as(kit.models.card(kit.name), LatentSwapperRule)
    return latent_of(portraits, rule.latent, kit.models, kit.device)


def open_swapper(identity: F32, kit: Kit) -> CropSwapper:
    """See :class:`realtime.swappers.Family`."""
    rule = decode_as(kit.models.card(kit.name), LatentSwapperRule)
    return open_crop_swapper(kit, rule, {rule.source: identity})
