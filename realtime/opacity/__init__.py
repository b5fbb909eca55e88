"""Says how much of the new face is shown where, on the upright crop; knows masks, not what made the face.

Every mask is a picture of the crop, and the least of them counts. A mask says what is in front of a face that is
followed, so one that leaves nearly nothing of it is not believed: see ``LEAST_SHOWN``.

What they cost, in ms on one core of a server, for crops of 128 and of 512 pixels: the outline alone 0.005 and 0.07, the
swapper's own mask 0.02 and 0.25, the own mouth 0.1 and 0.2, obstacles by memory 0.8, around an occlusion network
0.6 and around a region network 2.1 (nearly all of it for cutting a crop of 512 pixels), nothing between their runs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

import cv2
import numpy as np

from realtime.meter import Meter
from realtime.opacity import outline
from realtime.opacity.mouth import OwnMouth
from realtime.opacity.networks import NetworkMask
from realtime.opacity.obstacles import Obstacles
from realtime.swappers import OCCLUSION, REGIONS, Kit
from realtime.types import F32, F64, U8, Face

LEAST_SHOWN = 0.2
"""Share of the middle of the face that all masks together must leave to the new face. Below it the masks, not the
scene, are taken to be wrong, and the whole new face is shown: a network that sees no face where one is followed would
bare it. Other programs do, for the sake of a hand that hides the whole face; here one that hides more than four fifths
of a face that is still followed is painted over. ``masks.MOST_BLOCKED`` is the same rule for the memory of a face."""
NOT_BELIEVED = "masks not believed"
"""Counter of the faces for which that was so."""
CORE = 0.9
"""Opacity of the static mask from which on a pixel belongs to the middle of the face."""


class Part(Protocol):
    """One mask that is made anew for each frame."""

    @property
    def step(self) -> str:
        """The optional step that it is."""

    def shown(self, pixels: U8, face: Face, picture_from_crop: F64, now_s: float) -> U8:
        """Say where the new face may be shown.

        Args:
            pixels: (H, W, 3) uint8 BGR, not painted into yet. Only read.
            face: in these pixels.
            picture_from_crop: (2, 3) between centres of pixels.
            now_s: when the frame was captured.

        Returns:
            (side, side) uint8, 255 where it is shown; valid until the next call.

        Raises:
            EngineError: it cannot be told.
        """

    def forget(self, followed: Collection[int]) -> None:
        """Drop what is remembered of everyone but these track ids."""


class Opacity:
    """The masks of one swapper's crops, combined. Used by one thread.

    Args:
        template: alignment of the crops, in ``align.TEMPLATES``.
        side: of the crop in pixels.
        meter: gets a lap for each part, named as its step, and the counter ``NOT_BELIEVED``.
        amount: of the new face, 0..1.
        parts: that run when their steps do.
        own_mouth: keep the person's own mouth.
    """

    def __init__(
        self,
        template: str,
        side: int,
        meter: Meter,
        amount: float = 1.0,
        parts: Sequence[Part] = (),
        own_mouth: bool = False,
    ) -> None:
        self._meter, self._amount, self._parts = meter, amount, tuple(parts)
        self._mouth = OwnMouth(side) if own_mouth else None
        face = outline.face(template, side)
        self.skin: F32 = outline.skin(template, side)
        """(side, side) float32 0..1, read-only: where a face shows skin, which tells its tone."""
        self._face, self._edge = _bytes(face), _bytes(outline.edge(side))
        self._ready = _bytes(face * np.float32(amount))
        self._core: U8 = (face > CORE).astype(np.uint8)
        self.latest: U8 = self._face.copy()
        """(side, side) uint8, the masks of the latest crop, without the amount and the mouth."""
        self.outline: U8 = self._face
        """(side, side) uint8: the same as if nothing were in front of the face. Only read."""
        self._own: U8 = np.zeros((side, side), np.uint8)
        self._shown: U8 = np.zeros((side, side), np.uint8)

    def write(
        self,
        pixels: U8,
        face: Face,
        picture_from_crop: F64,
        made: F32 | None,
        now_s: float,
        steps: Collection[str],
        out: U8,
    ) -> None:
        """Write how much of the new face is shown. Without any mask this is one copy of bytes.

        Args:
            pixels: (H, W, 3) uint8 BGR, not painted into yet. Only read.
            face: in these pixels.
            picture_from_crop: (2, 3), see :meth:`realtime.cropnet.CropNetwork.picture_from_crop`.
            made: (side, side) float32, finite and 0 or more, the swapper's own mask; ``None`` where it has none.
            now_s: when the frame was captured.
            steps: the optional steps that run. What is left out forgets what it knew.
            out: (side, side) uint8, may be strided; overwritten, its outermost pixels with 0.

        Raises:
            EngineError: a network gave a mask of values that are no numbers, or its runtime failed.
        """
        if made is None and not self._parts and self._mouth is None:
            out[:] = self._ready
            return
        self._combine(pixels, face, picture_from_crop, made, now_s, steps)
        shown = self.latest
        if self._mouth is not None:
            shown = cv2.min(shown, self._mouth.shown(face.mesh, picture_from_crop), dst=self._shown)
        if self._amount < 1:
            shown = cv2.convertScaleAbs(shown, dst=self._shown, alpha=self._amount)
        out[:] = shown

    def forget(self, followed: Collection[int]) -> None:
        """Drop what is remembered of everyone but these track ids."""
        for part in self._parts:
            part.forget(followed)

    def _combine(
        self,
        pixels: U8,
        face: Face,
        picture_from_crop: F64,
        made: F32 | None,
        now_s: float,
        steps: Collection[str],
    ) -> None:
        """Make ``latest`` the least of the masks, or the static one where they leave too little."""
        self.outline, least = self._face, self.latest
        if made is not None:  # a network that draws an outline needs no other one
            cv2.convertScaleAbs(made, dst=self._own, alpha=255)
            self.outline = cv2.min(self._own, self._edge, dst=self._own)
        np.copyto(least, self.outline)
        for part in self._parts:
            if part.step not in steps:
                part.forget(())
                continue
            with self._meter.lap(part.step):
                cv2.min(least, part.shown(pixels, face, picture_from_crop, now_s), dst=least)
        if cv2.mean(least, self._core)[0] < LEAST_SHOWN * 255:
            self._meter.count(NOT_BELIEVED)
            np.copyto(least, self._face)


def _bytes(mask: F32) -> U8:
    return np.rint(mask * 255).astype(np.uint8)


def opacity_for(kit: Kit, template: str, side: int) -> Opacity:
    """Make the masks that a run's settings ask for.

    Args:
        kit: the run's.
        template: alignment of the swapper's crops, in ``align.TEMPLATES``.
        side: of the crop in pixels.

    Raises:
        ModelError: a model is missing, its card is wrong, or it is of another family than the setting needs.
        EngineError: no runtime can serve it.
    """
    masks, parts = kit.masks, list[Part]()
    for step, name in ((OCCLUSION, masks.occlusion), (REGIONS, masks.regions)):
        if name:
            card, engine = kit.models.card(name), kit.models.open(name)
            parts.append(NetworkMask(step, card, engine, kit.device, side, masks.every_n))
    if masks.obstacles and not masks.occlusion:
        parts.append(Obstacles(kit.device, side))
    return Opacity(template, side, kit.meter, kit.look.opacity, parts, masks.own_mouth)
