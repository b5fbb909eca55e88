"""Swappers that are shown the identity as a picture (UniFace, BlendSwap); knows their cards, not a crop's path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import ConfigDict, with_config

from engines.card import ModelCard, decode_as
from engines.contract import TensorSpec
from engines.errors import ModelError
from realtime.align import TEMPLATES, picture_from_crop
from realtime.cropnet import CropRule
from realtime.identity import Portrait
from realtime.models import demand_size
from realtime.swappers import Kit
from realtime.swappers.crop import CropSwapper, open_crop_swapper
from realtime.swappers.shape import Shape
from realtime.types import F32

TAKES_PHOTOS = True
"""See :class:`realtime.swappers.Family`."""
AS_FRONTAL_RAD = np.deg2rad(10)
"""Photos that are turned by no more than this beyond the most frontal one are as good; the largest of them is taken."""


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSwapperRule(CropRule):
    """What a card of the family "image" says.

    Attributes:
        source: name of the input that takes the picture of the identity.
        source_template: alignment of that picture, in ``align.TEMPLATES``.
    """

    source: str
    source_template: str

    @property
    def others(self) -> tuple[str, ...]:
        """See :class:`realtime.cropnet.CropRule`."""
        return (self.source,)


def identify(portraits: Sequence[Portrait], kit: Kit) -> F32:
    """See :class:`realtime.swappers.Family`. These networks take one picture, so of several photos the best is used."""
    card = kit.models.card(kit.name)
    rule = decode_as(card, ImageSwapperRule)
    spec = _source(card, rule)
    portrait = most_frontal(portraits)
    tensor = np.zeros((1, *spec.shape[1:]), np.float32)
    kit.device.crop(
        portrait.pixels, picture_from_crop(portrait.points5, rule.source_template, spec.size[0]), spec, tensor
    )
    return tensor


def open_swapper(identity: F32, kit: Kit) -> CropSwapper:
    """See :class:`realtime.swappers.Family`."""
    rule = decode_as(kit.models.card(kit.name), ImageSwapperRule)
    tiles = kit.look.boost**2  # a batch pairs each tile with a source
    return open_crop_swapper(kit, rule, {rule.source: np.repeat(identity, tiles, axis=0)})


def most_frontal(portraits: Sequence[Portrait]) -> Portrait:
    """Choose the photo that shows most of a face: of those that look into the camera, the largest.

    Args:
        portraits: at least one.
    """
    turned_rad = [abs(Shape(portrait.mesh).yaw_rad) for portrait in portraits]
    frontal = [p for p, rad in zip(portraits, turned_rad, strict=True) if rad <= min(turned_rad) + AS_FRONTAL_RAD]
    return max(frontal, key=lambda portrait: float(np.ptp(portrait.mesh[:, 1])))


def _source(card: ModelCard, rule: ImageSwapperRule) -> TensorSpec:
    """The input that takes the picture of the identity."""
    found = next((spec for spec in card.inputs if spec.name == rule.source and spec.colour != "none"), None)
    if found is None:
        pictures = ", ".join(spec.name for spec in card.inputs if spec.colour != "none")
        raise ModelError(f"model card {card.name!r}: source is {rule.source!r}", f"use one of: {pictures}")
    if rule.source_template not in TEMPLATES:
        raise ModelError(
            f"model card {card.name!r}: source_template is {rule.source_template!r}",
            f"use one of: {', '.join(TEMPLATES)}",
        )
    demand_size(card, found)
    return found
