"""A swapper of any family on networks that the tests built, and what it told them; knows files, no pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engines.contract import Device, Engine, TensorSpec
from engines.registry import open_device
from realtime.identity import Portrait
from realtime.meter import Meter
from realtime.models import Models
from realtime.opacity import Opacity
from realtime.swappers import Kit, Look, Swapper, family
from realtime.types import F32, U8, Face
from tests import cards, helpernets
from tests.cards import Net

PLAIN = Look(colour=0)
"""The new face as the network makes it."""


class Overheard:
    """An engine, and what it was told and answered last."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.told: tuple[NDArray[Any], ...] = ()
        self.made: tuple[NDArray[Any], ...] = ()

    @property
    def runtime(self) -> str:
        return self._engine.runtime

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        return self._engine.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        return self._engine.outputs

    def run(self, *tensors: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        answer = self._engine.run(*tensors)
        self.told, self.made = tuple(t.copy() for t in tensors), tuple(t.copy() for t in answer)
        return answer

    def close(self) -> None:
        self._engine.close()


class Listening(Models):
    """Models that are overheard, each by its name."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: dict[str, Overheard] = {}

    def open(self, name: str, batch: int = 1) -> Engine:
        self.heard[name] = Overheard(super().open(name, batch))
        return self.heard[name]


class SwapStage:
    """A folder of networks, and one swapper at a time.

    Args:
        folder: where cards and files lie.
        device: cuts and pastes.
    """

    def __init__(self, folder: Path, device: Device | None = None) -> None:
        self.folder, self.device = folder, device or open_device("cpu")
        self.models = Listening()
        self.meter = Meter()
        self.name, self._opened = "", 0
        for net in (helpernets.arcface(), helpernets.converter()):
            cards.put(folder, net)

    def swapper(self, net: Net, portraits: Sequence[Portrait], look: Look = PLAIN) -> Swapper:
        """Write a network and open its family with it. Its card gets a name that none had before: engines are kept."""
        self._opened += 1
        name = f"{net.card.name}_{self._opened}"
        self.name = cards.put(self.folder, replace(net, card=replace(net.card, name=name, file=f"{name}.onnx")))
        kit = Kit(self.device, self.models, self.name, look, self.meter)
        made = family(self.name, self.models)
        return made.open_swapper(made.identify(portraits, kit), kit)

    @property
    def heard(self) -> Overheard:
        """The engine of the swapper."""
        return self.models.heard[self.name]


class Masks:
    """What every opacity is asked and answers; a patch in time."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.made: F32 | None = None
        self.shown: U8 = np.zeros((0, 0), np.uint8)
        original = Opacity.write

        def write(
            opacity: Opacity, pixels: U8, face: Face, at: Any, made: F32 | None, now_s: float, steps: Any, out: U8
        ) -> None:
            original(opacity, pixels, face, at, made, now_s, steps, out)
            self.made, self.shown = None if made is None else made.copy(), out.copy()

        patch.setattr(Opacity, "write", write)
