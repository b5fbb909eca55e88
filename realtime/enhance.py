"""Makes a face that was painted finer, with a network that restores faces; knows its card, not who painted the face."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import cv2
import numpy as np
from pydantic import ConfigDict, with_config

from engines.card import decode_as
from engines.contract import Device
from engines.errors import ModelError
from realtime import geometry
from realtime.cropnet import CropNetwork, CropRule
from realtime.meter import Meter
from realtime.models import Models
from realtime.opacity import outline
from realtime.swappers import ENHANCE, Painted
from realtime.types import F32, F64, U8, Face

FAMILY = "enhancer"
"""Of the cards."""


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True, kw_only=True)
class EnhancerRule(CropRule):
    """What a card of the family "enhancer" says.

    Attributes:
        weight: name of the input that says how close the result stays to what the network is given, 0..1; empty where
            there is none.
    """

    weight: str = ""

    @property
    def others(self) -> tuple[str, ...]:
        """See :class:`realtime.cropnet.CropRule`."""
        return (self.weight,) if self.weight else ()


class Enhancer:
    """Restores faces in pictures. It remembers nothing. Used by one thread.

    Args:
        network: restores.
        others: its inputs besides the crop, by name; they never change.
        outline: (side, side) float32 0..1, where a face is in its crops, 0 on the outermost pixels.
        amount: how much of its picture is shown, 0..1.
        meter: gets the lap "enhance".
    """

    def __init__(
        self,
        network: CropNetwork,
        others: Mapping[str, F32],
        outline: F32,
        amount: float,
        meter: Meter,
    ) -> None:
        self._network, self._others, self._meter = network, others, meter
        self._amount = amount
        self._outline: U8 = np.rint(outline * 255).astype(np.uint8)
        self._opacity: U8 = np.zeros_like(self._outline)

    def enhance(self, pixels: U8, face: Face, painted: Painted | None, steps: Collection[str]) -> None:
        """Make a face finer that a swapper has painted.

        Args:
            pixels: (H, W, 3) uint8 BGR; painted into, where the face is and the new face was painted.
            face: in these pixels.
            painted: where that was, ``None`` for wherever the face is. What stands in front of the face is no face, and
                a network would make one of it.
            steps: the optional steps that run; nothing happens without "enhance".

        Raises:
            EngineError: the network failed or made no picture; not a pixel has changed, and the face is as good as
                before.
        """
        if ENHANCE not in steps:
            return
        with self._meter.lap(ENHANCE):
            picture_from_crop = self._network.picture_from_crop(face.points5)
            self._network.run(pixels, picture_from_crop, self._others)
            shown = self._shown(painted, picture_from_crop)
            self._network.paint(face.track_id, pixels, picture_from_crop, shown)

    def _shown(self, painted: Painted | None, picture_from_crop: F64) -> U8:
        """Where the finer face is shown, (side, side) uint8."""
        if painted is None:
            return cv2.convertScaleAbs(self._outline, dst=self._opacity, alpha=self._amount)
        crop_from_painted = geometry.compose(geometry.invert(picture_from_crop), painted.picture_from_crop)
        cv2.warpAffine(painted.opacity, crop_from_painted, self._opacity.shape[::-1], dst=self._opacity)
        cv2.min(self._opacity, self._outline, dst=self._opacity)
        return cv2.convertScaleAbs(self._opacity, dst=self._opacity, alpha=self._amount)


def open_enhancer(name: str, fidelity: float, amount: float, device: Device, models: Models, meter: Meter) -> Enhancer:
    """Open the enhancer of a run.

    Args:
        name: of its card.
        fidelity: how close it stays to what it is given, 0..1, where it can be told.
        amount: see :class:`Enhancer`.
        device: cuts, develops and pastes.
        models: opens the network.
        meter: see :class:`Enhancer`.

    Raises:
        ModelError: the model is missing, its card is wrong, or it is no enhancer.
        EngineError: no runtime can serve it.
    """
    card = models.card(name)
    if card.family != FAMILY:
        raise ModelError(
            f"model {name} cannot be used for enhance.model: its card says family {card.family!r}",
            f'name a model of the family "{FAMILY}", see `doppelcam models list`',
        )
    rule = decode_as(card, EnhancerRule)
    network = CropNetwork(card, models.open(name), device, rule, bares=False)
    others = {spec.name: np.full(spec.shape, fidelity, spec.dtype) for spec in card.inputs if spec.name in rule.others}
    return Enhancer(network, others, outline.face(rule.template, network.side), amount, meter)
