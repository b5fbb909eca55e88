"""Paints over faces what a network makes of their upright crops; knows the path of a crop, not whose face it is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from engines.contract import TONE_STEP
from realtime import geometry
from realtime.blend import Poisson
from realtime.cropnet import CropNetwork, CropRule
from realtime.meter import Meter
from realtime.opacity import Opacity, opacity_for
from realtime.people.memory import Memory
from realtime.swappers import LEAST_FACE_PX, Kit, Look, Painted
from realtime.tone import ToneTransfer
from realtime.types import F32, F64, U8, Face

LEAST_SEEN = 0.05
"""Share of the skin below which what is seen of it tells nothing of its tone."""


class CropSwapper:
    """The ``Swapper`` of every family that works on crops. Used by one thread.

    Args:
        network: makes the new face.
        others: its inputs besides the crop, by name; they never change.
        opacity: says where it is shown.
        look: how it looks.
        meter: gets the laps "network" (cutting the crop included), "mask", "tone" and "paste" (developing the picture
            and, where asked for, "poisson" included).
    """

    def __init__(
        self,
        network: CropNetwork,
        others: Mapping[str, F32],
        opacity: Opacity,
        look: Look,
        meter: Meter,
    ) -> None:
        self._network, self._others = network, others
        self._opacity, self._look, self._meter = opacity, look, meter
        self._tones = Memory(ToneTransfer)
        step = TONE_STEP * network.side // network.spec.size[0]  # the tone is told by the first tile
        side = network.side
        self._cells = np.s_[::step, ::step]
        self._skin = np.ascontiguousarray(opacity.skin[self._cells])
        self._weight = np.zeros_like(self._skin)
        self._before, self._after = np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32)
        self._shown: U8 = np.zeros((side, side), np.uint8)
        self._poisson = Poisson(side) if look.blend == "poisson" else None
        self.painted: Painted | None = None
        """Where the latest face was painted."""

    def relook(self, look: Look) -> bool:
        """See :class:`realtime.swappers.Swapper`. Only the tone is no part of what was made once."""
        if replace(look, colour=self._look.colour) != self._look:
            return False
        self._look = look
        return True

    def swap(self, pixels: U8, face: Face, now_s: float, steps: Collection[str]) -> bool:
        """See :class:`realtime.swappers.Swapper`.

        Raises:
            EngineError: the network failed or made no picture; not a pixel has changed.
        """
        if not is_in(face, pixels):
            return False
        tone, dt_s = self._tones.meet(face.track_id, now_s)
        picture_from_crop = self._network.picture_from_crop(face.points5)
        with self._meter.lap("network"):
            self._network.run(pixels, picture_from_crop, self._others)
        with self._meter.lap("mask"):
            made = self._network.mask
            self._opacity.write(pixels, face, picture_from_crop, made, now_s, steps, self._shown)
        with self._meter.lap("tone"):
            seen = self._weigh()
            self._network.tones(face.track_id, self._weight, self._before, self._after)
            # What shows less of the skin tells less of its tone.
            change = tone.step(self._before, self._after, self._look.colour, seen * dt_s)
        retouch = partial(self._carry_shades, pixels, picture_from_crop) if self._poisson else None
        with self._meter.lap("paste"):
            self._network.paint(face.track_id, pixels, picture_from_crop, self._shown, change, retouch)
        self.painted = Painted(self._shown, picture_from_crop)
        return True

    def _carry_shades(self, pixels: U8, picture_from_crop: F64, patch: U8) -> None:
        """Give a patch the shades of its surroundings."""
        assert self._poisson is not None
        with self._meter.lap("poisson"):
            if not self._poisson.blend(pixels, picture_from_crop, self._opacity.outline, patch):
                self._meter.count("poisson left out")

    def _weigh(self) -> float:
        """Let only the skin that is seen tell the tone; returns how much of it is, 0..1."""
        np.multiply(self._skin, self._opacity.latest[self._cells], out=self._weight)
        seen = float(self._weight.sum() / (255 * self._skin.sum()))
        if seen < LEAST_SEEN:
            np.copyto(self._weight, self._skin)
            return 0.0
        return seen

    def forget(self, followed: Collection[int]) -> None:
        """See :class:`realtime.swappers.Swapper`."""
        self._tones.forget(followed)
        self._opacity.forget(followed)


def open_crop_swapper(
    kit: Kit, rule: CropRule, others: Mapping[str, F32], finish: Callable[[F32], F32] = lambda mask: mask
) -> CropSwapper:
    """Make the swapper of a family that works on crops.

    Args:
        kit: with the name of its card.
        rule: the card's ``[decode]``.
        others: inputs besides the crop, by name.
        finish: see :class:`realtime.cropnet.CropNetwork`.

    Raises:
        ModelError: the model is missing, or its card is wrong.
        EngineError: no runtime can serve it.
    """
    card, boost = kit.models.card(kit.name), kit.look.boost
    network = CropNetwork(card, kit.models.open(kit.name, boost * boost), kit.device, rule, boost, finish)
    opacity = opacity_for(kit, rule.template, network.side)
    return CropSwapper(network, others, opacity, kit.look, kit.meter)


def is_in(face: Face, pixels: U8) -> bool:
    """Whether a face can be worked on: it is known where, large enough, and at least partly in the picture."""
    (left, top, right, bottom), points = face.box_xyxy.tolist(), geometry.bounds(face.points5)
    if not np.isfinite(points).all() or max(right - left, bottom - top) < LEAST_FACE_PX:
        return False
    if max(points[2] - points[0], points[3] - points[1]) < 1:
        return False  # points in one place fit no template
    height, width = pixels.shape[:2]
    return right > 0 and bottom > 0 and left < width and top < height
