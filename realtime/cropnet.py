"""Runs a network on the upright crop of a face and develops the picture it makes; knows crops, not what they show."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
from pydantic import ConfigDict, with_config

from engines.card import ModelCard
from engines.contract import CropPlan, Device, Engine, TensorSpec
from engines.errors import EngineError, ModelError
from engines.lane import MADE_NO_PICTURE, no_picture, one_colour
from realtime.align import TEMPLATES, picture_from_crop
from realtime.types import F32, F64, U8

LEAST_DEVIATION = 1.0
"""Standard deviation in grey levels of the channel that varies most, below which a picture is one flat colour."""
AS_IT_IS = np.ones(3, np.float32), np.zeros(3, np.float32)
"""Gain and offset that change no tone."""
LEAST_SHOWN = 0.5
"""Greatest value of a network's own mask below which it would leave the person in view bare."""


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
        bares: whether a face that it fails on must not be shown.

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
        *,
        bares: bool = True,
    ) -> None:
        self.name = card.name
        self._rule, self._finish, self._device = rule, finish, device
        _check(card, rule, boost)
        target, outputs = _spec(card, rule.target), [spec.name for spec in card.outputs]
        self._masks_at = [outputs.index(name) for name in rule.masks]
        self.spec = replace(target, shape=(boost * boost, *target.shape[1:]))
        """The input that takes the crop, all tiles together."""
        self.side = boost * target.size[0]
        """Width and height of the crop in pixels, all tiles together."""
        flat = LEAST_DEVIATION if bares else 0.0
        plan = CropPlan(card.name, self.spec, outputs.index(rule.picture), least_deviation=flat, bares=bares)
        self._boost, self._lane = boost, device.lane(plan, engine)
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
        self._lane.start(pixels, picture_from_crop, others)
        if self._masks_at:
            outputs = self._lane.outputs()
            self.mask = self._finish(self._own_mask([outputs[at] for at in self._masks_at]))

    def tones(self, who: int, weight: F32, before: F32, after: F32) -> None:
        """Measure the tone of what the network was given and of what it made.

        Args:
            who: see :meth:`engines.contract.Lane.tones`.
            weight: see :meth:`engines.contract.Lane.tones`.
            before: (2, 3) float32; overwritten, the crop's.
            after: (2, 3) float32; overwritten, the new picture's.

        Raises:
            EngineError: the network gave no picture. Found here, before anyone remembers its tone.
        """
        self._lane.tones(who, weight, before, after)
        if not np.isfinite(after).all():
            raise no_picture(self.name, np.nan, np.nan)
        if after[1].max() < LEAST_DEVIATION:
            raise one_colour(self.name, *after[0].tolist())

    def paint(
        self,
        who: int,
        pixels: U8,
        picture_from_crop: F64,
        opacity: U8,
        tone: tuple[F32, F32] = AS_IT_IS,
        retouch: Callable[[U8], None] | None = None,
    ) -> None:
        """Blend what the latest run made into the picture.

        Args:
            who: see :meth:`engines.contract.Lane.paint`, as are the next three.
            pixels: of the latest run.
            picture_from_crop: of the latest run.
            opacity: (side, side) uint8.
            tone: gain and offset, (3,) float32 BGR each.
            retouch: see :meth:`engines.contract.Lane.paint`.

        Raises:
            EngineError: the network gave no picture; not a pixel has changed. A device that works ahead tells it later.
        """
        self._lane.paint(who, pixels, picture_from_crop, opacity, *tone, retouch)

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


def _spec(card: ModelCard, name: str) -> TensorSpec:
    """The input of a card with this name."""
    return next(spec for spec in card.inputs if spec.name == name)


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
