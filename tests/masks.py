"""Masks, engines and faces that say what a test tells them to; knows no picture."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.contract import TensorSpec
from realtime.align import picture_from_crop
from realtime.swappers import OCCLUSION
from realtime.types import F64, U8, Face
from tests.actor import pose
from tests.faces import face_of

SIDE = 128
TEMPLATE = "arcface_128"
FACE = face_of(pose())
PICTURE = np.full((480, 640, 3), 128, np.uint8)


def at(face: Face = FACE, side: int = SIDE, template: str = TEMPLATE) -> F64:
    """Where the crop of a face lies."""
    return picture_from_crop(face.points5, template, side)


@dataclass
class Scripted:
    """A part that says the same everywhere, or a picture, and notes what it was asked."""

    says: int | U8 = 255
    step: str = OCCLUSION
    asked: list[int] = field(default_factory=list)
    followed: list[tuple[int, ...]] = field(default_factory=list)

    def shown(self, pixels: U8, face: Face, picture_from_crop: F64, now_s: float) -> U8:
        self.asked.append(face.track_id)
        return np.full((SIDE, SIDE), self.says, np.uint8) if isinstance(self.says, int) else self.says

    def forget(self, followed: Collection[int]) -> None:
        self.followed.append(tuple(followed))


class ScriptedEngine:
    """An engine that answers as it is told to, and counts."""

    runtime = "scripted"

    def __init__(self, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...], *answers: NDArray[Any]) -> None:
        self.inputs, self.outputs = inputs, outputs
        self.answers = answers
        self.told: list[tuple[NDArray[Any], ...]] = []
        self.broken: Exception | None = None

    def run(self, *tensors: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        if self.broken is not None:
            raise self.broken
        self.told.append(tuple(tensor.copy() for tensor in tensors))
        return self.answers

    def close(self) -> None:
        pass
