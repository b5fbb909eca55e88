"""Asks networks what of a crop is face: occlusion masks and region maps, at a beat; knows their cards, no swapper."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, with_config

from engines.card import ModelCard, decode_as
from engines.contract import Device, Engine, TensorSpec
from engines.errors import EngineError, ModelError
from realtime import geometry
from realtime.swappers import OCCLUSION
from realtime.types import F32, F64, U8, Face

MASK_PX = 128
"""Side at which masks are softened and kept: after the blur nothing finer is left in them."""
SOFT = 5 / 256
"""Sigma of the blur as a share of the side: 5 pixels at 256, as FaceFusion has it."""


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True, kw_only=True)
class OcclusionRule:
    """What a card of the family "occlusion" says.

    Attributes:
        target: name of the input that takes the crop.
        mask: name of the output, (1, h, w, 1) or (1, 1, h, w): 1 where the face is seen, 0 where something hides it.
    """

    target: str
    mask: str

    def wrong(self, shape: tuple[int, ...]) -> str:
        """Say what is wrong with an output of this shape; empty where nothing is."""
        return "" if len(shape) == 4 and 1 in (shape[1], shape[3]) else f"a mask of the shape {list(shape)}"

    def read(self, output: NDArray[Any]) -> F32:
        """Take the mask out of the output: (h, w) float32, nominally 0..1."""
        return np.asarray(output, np.float32).reshape(max(output.shape[1:3]), -1)


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True, kw_only=True)
class RegionsRule:
    """What a card of the family "regions" says.

    Attributes:
        target: name of the input that takes the crop.
        logits: name of the output, (1, classes, h, w).
        face_classes: numbers of the classes that belong to the face.
    """

    target: str
    logits: str
    face_classes: tuple[int, ...]

    def wrong(self, shape: tuple[int, ...]) -> str:
        """Say what is wrong with an output of this shape; empty where nothing is."""
        if len(shape) != 4:
            return f"logits of the shape {list(shape)}"
        classes, face = range(shape[1]), set(self.face_classes)
        if face and face < set(classes):
            return ""
        return f"face_classes {list(self.face_classes)}, and not some of the {shape[1]} classes, 0 to {shape[1] - 1}"

    def read(self, output: NDArray[Any]) -> F32:
        """Say where a class of the face is the likeliest: (h, w) float32, 0 or 1, NaN where there is no number.

        Every so manyth pixel is enough for a mask of ``MASK_PX``: a sixteenth of the work at 512.
        """
        step = max(1, output.shape[2] // MASK_PX)
        logits = output[0, :, ::step, ::step]
        belongs = np.isin(np.arange(len(logits)), self.face_classes)
        face, other = logits[belongs].max(axis=0), logits[~belongs].max(axis=0)
        return np.where(np.isfinite(face + other), face > other, np.nan).astype(np.float32)


@dataclass(slots=True)
class _Known:
    """What was last said of one person."""

    mask: U8
    age: int


class NetworkMask:
    """One such network. It sees the crop that the swapper sees, so what it said of a face moves with it in between.

    Args:
        step: "occlusion" or "regions".
        card: of that family.
        engine: that has loaded it.
        device: cuts the crop.
        side: of the swapper's crop in pixels.
        every_n: frames from one run for a face to the next.

    Raises:
        ModelError: the card is not one of that family, or contradicts itself.
    """

    def __init__(self, step: str, card: ModelCard, engine: Engine, device: Device, side: int, every_n: int) -> None:
        self.step = step
        self._name, self._engine, self._device, self._side, self._every_n = card.name, engine, device, side, every_n
        self._input, self._output_at, self._read = _checked(step, card)
        self._scale = side / self._input.size[0]
        self._tensor: F32 = np.zeros(self._input.shape, np.float32)
        self._known: dict[int, _Known] = {}

    def shown(self, pixels: U8, face: Face, picture_from_crop: F64, now_s: float) -> U8:
        """See :class:`realtime.opacity.Part`.

        Raises:
            EngineError: the runtime failed, or the network gave values that are no numbers.
        """
        known = self._known.get(face.track_id)
        if known is None:
            known = _Known(np.zeros((self._side, self._side), np.uint8), 0)
            self._run(pixels, picture_from_crop, known.mask)
            self._known[face.track_id] = known
            known.age = face.track_id % self._every_n  # several faces do not all run in the same frame
            return known.mask
        known.age += 1
        if known.age >= self._every_n:
            known.age = 0
            self._run(pixels, picture_from_crop, known.mask)
        return known.mask

    def forget(self, followed: Collection[int]) -> None:
        """See :class:`realtime.opacity.Part`."""
        for track_id in [track_id for track_id in self._known if track_id not in followed]:
            del self._known[track_id]

    def _run(self, pixels: U8, picture_from_crop: F64, out: U8) -> None:
        """Run the network and write its mask, (side, side) uint8; ``out`` is left alone when it fails."""
        middle = (self._scale - 1) / 2  # both count from the centres of their first pixels
        crop_from_own = np.array([[self._scale, 0, middle], [0, self._scale, middle]])
        picture_from_own = geometry.compose(picture_from_crop, crop_from_own)
        self._device.crop(pixels, picture_from_own, self._input, self._tensor)
        mask = self._read(self._engine.run(self._tensor)[self._output_at])
        softened = soften(mask)
        if softened is None:
            raise EngineError(
                f"{self._name} made values that are no numbers", "use the float32 edition of the model, or another one"
            )
        cv2.resize(softened, (self._side, self._side), dst=out)


def soften(mask: F32) -> U8 | None:
    """Blur a mask and keep its upper half, so that the new face ends before what is in front of it begins.

    Args:
        mask: (h, w) float32, nominally 0..1.

    Returns:
        (``MASK_PX``, ``MASK_PX``) uint8, 255 where 1; ``None`` when a value is no number.
    """
    small = cv2.resize(mask, (MASK_PX, MASK_PX), interpolation=cv2.INTER_AREA)
    if not np.isfinite(small).all():
        return None
    grey = np.rint(np.clip(small, 0, 1) * 255).astype(np.uint8)
    return cv2.LUT(cv2.GaussianBlur(grey, (0, 0), SOFT * MASK_PX), _UPPER_HALF)


_UPPER_HALF: U8 = np.rint((np.clip(np.arange(256) / 255, 0.5, 1) - 0.5) * 2 * 255).astype(np.uint8)


def _checked(step: str, card: ModelCard) -> tuple[TensorSpec, int, Callable[[NDArray[Any]], F32]]:
    """The input, the place of the output and its reader; ``ModelError`` where the card is wrong."""
    if card.family != step:
        raise ModelError(
            f"model {card.name} cannot be used for masks.{step}: its card says family {card.family!r}",
            f'name a model of the family "{step}", see `doppelcam models list`',
        )
    rule: OcclusionRule | RegionsRule
    if step == OCCLUSION:
        rule = decode_as(card, OcclusionRule)
        key, output = "mask", rule.mask
    else:
        rule = decode_as(card, RegionsRule)
        key, output = "logits", rule.logits
    inputs = [spec for spec in card.inputs if spec.name == rule.target]
    outputs = [spec.name for spec in card.outputs]
    if len(card.inputs) != 1 or not inputs:
        raise ModelError(
            f"model card {card.name!r}: target is {rule.target!r}", f"use its one input: {card.inputs[0].name}"
        )
    if output not in outputs:
        raise ModelError(f"model card {card.name!r}: {key} is {output!r}", f"use one of: {', '.join(outputs)}")
    if wrong := rule.wrong(card.outputs[outputs.index(output)].shape):
        raise ModelError(f"model card {card.name!r} says {wrong}", "correct the card")
    return inputs[0], outputs.index(output), rule.read
