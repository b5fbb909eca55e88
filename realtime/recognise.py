"""Turns a face into the vector that tells who it is; knows one network and one face, not who is whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydantic import ConfigDict, with_config

from engines.card import ModelCard, decode_as
from engines.contract import Device, Engine
from realtime.align import picture_from_crop
from realtime.types import F32, U8


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True)
class RecogniserRule:
    """What a card of the family "arcface" says.

    Attributes:
        template: alignment of the crop, in ``align.TEMPLATES``.
    """

    template: str


class Recogniser:
    """A network of the family "arcface". Used by one thread at a time.

    Args:
        card: its card.
        engine: that has loaded it.
        device: that cuts the crops out.

    Raises:
        ModelError: the card's ``[decode]`` is not one of a recogniser.
    """

    def __init__(self, card: ModelCard, engine: Engine, device: Device) -> None:
        self._rule = decode_as(card, RecogniserRule)
        self._engine, self._device = engine, device
        self._input = card.inputs[0]
        self._side = self._input.shape[2]
        self._tensor = np.zeros(self._input.shape, np.float32)

    def embed(self, pixels: U8, points5: F32) -> F32:
        """Recognise one face.

        Args:
            pixels: (H, W, 3) uint8 BGR. Only read.
            points5: (5, 2) in its pixels.

        Returns:
            (n,) float32 as the network gives it, not of unit length, a fresh array.
        """
        transform = picture_from_crop(points5, self._rule.template, self._side)
        self._device.crop(pixels, transform, self._input, self._tensor)
        return self._engine.run(self._tensor)[0].ravel().astype(np.float32)
