"""Swappers that were trained on one person and need no photo (DFM); knows their cards, not a crop's path.

The face that is shown is inside the model, so the photos of ``--source`` are not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from pydantic import ConfigDict, with_config

from engines.card import decode_as
from realtime.cropnet import CropRule
from realtime.identity import Portrait
from realtime.swappers import Kit
from realtime.swappers.crop import CropSwapper, open_crop_swapper
from realtime.types import F32

TAKES_PHOTOS = False
"""See :class:`realtime.swappers.Family`."""
ERODE = 2
"""How often the mask is eroded by 3 x 3 pixels. The network's mask ends where the face does, so half of the blur would
lie outside. Source: FaceFusion, as for ``BLUR``."""
BLUR = 6.25 / 224
"""Standard deviation of the blur of the mask as a share of its side: FaceFusion's 6.25 pixels at the commonest size."""
COARSE = 4
"""The blur is done on a mask so many times smaller: it is no other to the eye (0.015), and up to 18 times faster."""
_KERNEL = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (3, 3))


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True, kw_only=True)
class DfmRule(CropRule):
    """What a card of the family "dfm" says. Its ``mask`` is the face that it sees, ``celeb_mask`` the one it makes.

    Attributes:
        celeb_mask: name of the output that says where the new face is.
        morph: name of the input that says how far to go from the person in view to the new face, 0..1; empty where
            there is none.
    """

    celeb_mask: str
    morph: str = ""

    @property
    def masks(self) -> tuple[str, ...]:
        """See :class:`realtime.cropnet.CropRule`."""
        return tuple(name for name in (self.mask, self.celeb_mask) if name)

    @property
    def others(self) -> tuple[str, ...]:
        """See :class:`realtime.cropnet.CropRule`."""
        return (self.morph,) if self.morph else ()


def identify(portraits: Sequence[Portrait], kit: Kit) -> None:
    """See :class:`realtime.swappers.Family`: there is nothing to derive."""


def open_swapper(identity: None, kit: Kit) -> CropSwapper:
    """See :class:`realtime.swappers.Family`."""
    rule = decode_as(kit.models.card(kit.name), DfmRule)
    return open_crop_swapper(kit, rule, {name: np.full(1, kit.look.morph, np.float32) for name in rule.others}, soft)


def soft(mask: F32) -> F32:
    """Shrink a mask a little and soften its edge.

    Args:
        mask: (side, side) float32 0..1; overwritten.

    Returns:
        The same array.
    """
    side = mask.shape[0]
    cv2.erode(mask, _KERNEL, dst=mask, iterations=ERODE)
    coarse = cv2.resize(mask, (side // COARSE, side // COARSE), interpolation=cv2.INTER_AREA)
    coarse = cv2.GaussianBlur(coarse, (0, 0), BLUR * side / COARSE)
    return cv2.resize(coarse, (side, side), dst=mask, interpolation=cv2.INTER_LINEAR)
