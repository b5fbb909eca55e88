"""Runs a network on the upright crop of a face and develops the picture it makes; knows crops, not what they show."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
from pydantic import ConfigDict, with_config

from engines.card import ModelCard
from engines.contract import Device, Engine
from engines.errors import EngineError, ModelError
from realtime.align import TEMPLATES, picture_from_crop
from realtime.types import F32, F64, U8

LEAST_RANGE = 8.0
"""Grey levels between the darkest and the brightest value of a picture below which a network has failed: a face under
any light has a hundred."""
LEAST_DEVIATION = 1.0
"""Standard deviation in grey levels of the channel that varies most, below which a picture is one flat colour."""
LEAST_SHOWN = 0.5
"""Greatest value of a network's own mask below which it would leave the person in view bare."""
MADE_NO_PICTURE = "use the float32 edition of the model, or another provider"


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True, kw_only=True)
class CropRule:
    """What the card of every network that turns a crop into a crop says; its families add to it.

    Attributes:
        template: alignment of the crop, in ``align.TEMPLATES``.
        target: name of the input that takes the crop.
        picture: name of the output with the new picture.
        mask: name of the output that says where the new picture is meant, (1, 1, h, w) or (1, h, w, 1), 0..1; empty
            where there is none.
        boost: how many times the side of the network's own crop a face may be worked on at, each 1 or more: a face at
            twice the side is four tiles, every second pixel each way, in one batch.
    """

    template: str
    target: str
    picture: str
    mask: str = ""
    boost: tuple[int, ...] = (1,)

    @property
    def masks(self) -> tuple[str, ...]:
        """Names of the outputs whose minimum is the network's own mask."""
        return (self.mask,) if self.mask else ()

    @property
    def others(self) -> tuple[str, ...]:
        """Names of the inputs besides the crop."""
        return ()


class CropNetwork:
    """One such network. Used by one thread; its arrays are overwritten by each run.

    Args:
        card: of the network.
        engine: that has loaded it, with a batch of ``boost * boost``.
        device: that cuts and develops.
        rule: the card's ``[decode]``.
        boost: of ``rule.boost``.
        finish: what becomes of the network's own mask, (side, side) float32 0..1, before it is shown; it may change
            it in place.

    Raises:
        ModelError: the rule names tensors or templates that do not exist, or leaves an input out, or does not allow
            this boost.
    """

    def __init__(
        self,
        card: ModelCard,
        engine: Engine,
        device: Device,
        rule: CropRule,
        boost: int = 1,
        finish: Callable[[F32], F32] = lambda mask: mask,
    ) -> None:
        self.name = card.name
        self._rule, self._engine, self._device, self._boost = rule, engine, device, boost
        _check(card, rule, boost)
        inputs, outputs = [spec.name for spec in card.inputs], [spec.name for spec in card.outputs]
        self._target_at, self._picture_at = inputs.index(rule.target), outputs.index(rule.picture)
        self._masks_at = [outputs.index(name) for name in rule.masks]
        self._order, self._finish = inputs, finish
        self.spec, self._made = card.inputs[self._target_at], card.outputs[self._picture_at]
        self.side = boost * self.spec.size[0]
        """Width and height of the crop in pixels, all tiles together."""
        self.target: F32 = np.zeros((boost * boost, *self.spec.shape[1:]), np.float32)
        """The input that the crop was put into."""
        self.output: F32 = np.zeros_like(self.target)
        """The output with the new picture, of the latest run; the engine's own array."""
        self.mask: F32 | None = None
        """The network's own mask of the latest run, (side, side) float32 0..1, or ``None`` where it has none."""
        self._woven: F32 = np.zeros((self.side, self.side) if rule.masks else (0, 0), np.float32)

    def picture_from_crop(self, points5: F32) -> F64:
        """Say which crop of a picture shows a face, see :func:`realtime.align.picture_from_crop`."""
        return picture_from_crop(points5, self._rule.template, self.side)

    def run(self, pixels: U8, picture_from_crop: F64, others: Mapping[str, F32]) -> None:
        """Cut the crop and run the network on it.

        Args:
            pixels: (H, W, 3) uint8 BGR. Only read.
            picture_from_crop: (2, 3) from :meth:`picture_from_crop`.
            others: the other inputs, ``rule.others``, by name.

        Raises:
            EngineError: the runtime failed, or the network's own mask is broken or shows nothing.
        """
        k = self._boost
        for tile in range(k * k):
            row, column = divmod(tile, k)
            picture_from_tile = picture_from_crop * (k, k, 1)
            picture_from_tile[:, 2] += picture_from_crop[:, :2] @ (column, row)
            self._device.crop(pixels, picture_from_tile, self.spec, self.target[tile : tile + 1])
        outputs = self._engine.run(
            *(self.target if name == self._rule.target else others[name] for name in self._order)
        )
        self.output = outputs[self._picture_at]
        if self._masks_at:
            self.mask = self._finish(self._own_mask([outputs[at] for at in self._masks_at]))

    def tones(self, weight: F32, before: F32, after: F32) -> None:
        """Measure the tone of what the network was given and of what it made.

        Args:
            weight: see :meth:`engines.contract.Device.tone`.
            before: (2, 3) float32; overwritten, the crop's.
            after: (2, 3) float32; overwritten, the new picture's.

        Raises:
            EngineError: the network gave no picture. Found here, before anyone remembers its tone.
        """
        self._device.tone(self.target, self.spec, weight, before)
        self._device.tone(self.output, self._made, weight, after)
        if not np.isfinite(after).all():
            raise EngineError(f"{self.name} made values that are no numbers", MADE_NO_PICTURE)
        if after[1].max() < LEAST_DEVIATION:
            blue, green, red = after[0]
            raise EngineError(
                f"{self.name} made one flat colour: red {red:.0f}, green {green:.0f}, blue {blue:.0f}", MADE_NO_PICTURE
            )

    def develop(self, gain: F32, offset: F32, patch: U8) -> None:
        """Turn the latest output into a patch.

        Args:
            gain: (3,) float32 BGR.
            offset: (3,) float32 BGR.
            patch: (side, side, 4) uint8; blue, green and red are overwritten.

        Raises:
            EngineError: the network gave no picture: values that are no numbers, or the same value everywhere.
        """
        low, high = self._device.develop(self.output, self._made, gain, offset, patch)
        if not high - low >= LEAST_RANGE:
            what = (
                "values that are no numbers"
                if np.isnan(low)
                else f"nothing but the grey levels {low:.0f} to {high:.0f}"
            )
            raise EngineError(f"{self.name} made {what}", MADE_NO_PICTURE)

    def _own_mask(self, masks: Collection[F32]) -> F32:
        """Weave the masks of the tiles together, and keep the least of each pixel."""
        k, woven = self._boost, self._woven
        woven[:] = 1
        for planes in masks:
            for tile, plane in enumerate(planes.reshape(k * k, self.side // k, self.side // k)):
                part = woven[tile // k :: k, tile % k :: k]
                np.minimum(part, plane, out=part)
        low, high = woven.min(), woven.max()
        if not np.isfinite(low + high):
            raise EngineError(f"{self.name} made a mask with values that are no numbers", MADE_NO_PICTURE)
        if high < LEAST_SHOWN:
            raise EngineError(f"the mask that {self.name} made shows nothing: at most {high:.2f}", MADE_NO_PICTURE)
        return np.maximum(woven, 0, out=woven)


def _check(card: ModelCard, rule: CropRule, boost: int) -> None:
    """Raise ``ModelError`` where the card contradicts itself or does not allow this boost."""
    inputs, outputs = [spec.name for spec in card.inputs], [spec.name for spec in card.outputs]
    for kind, name, known in (
        ("template", rule.template, list(TEMPLATES)),
        ("target", rule.target, [spec.name for spec in card.inputs if spec.colour != "none"]),
        ("picture", rule.picture, [spec.name for spec in card.outputs if spec.colour != "none"]),
        *(("mask", name, outputs) for name in rule.masks),
        *(("an input", name, inputs) for name in rule.others),
    ):
        if name not in known:
            raise ModelError(f"model card {card.name!r}: {kind} is {name!r}", f"use one of: {', '.join(known)}")
    if unknown := set(inputs) - {rule.target, *rule.others}:
        raise ModelError(
            f"model card {card.name!r}: [decode] does not say what goes into {', '.join(sorted(unknown))}",
            f"a model of the family {card.family!r} takes no such input: correct the card's family",
        )
    if boost not in rule.boost:
        allowed = ", ".join(str(n) for n in rule.boost)
        raise ModelError(
            f"{card.name} cannot work at {boost} times its own size", f"set swap.boost to one of: {allowed}"
        )
