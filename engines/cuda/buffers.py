"""The memory of a lane in one slot; knows sizes, enqueues nothing."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.contract import TONE_STEP, CropPlan, Engine, TensorSpec
from engines.cuda import blocks
from engines.cuda.driver import Buffer, Driver, Graph
from engines.errors import DeviceError

EXTENTS = 64
"""Shares in which the range of an output is looked for."""


class LaneBuffers:
    """What a lane has in one slot, allocated once.

    Attributes:
        made: the network has run and its output was measured.
        read: what was asked to come back is back.
        graph: cut and run, once they were captured.
        graph_from: address that is cut from; another needs another graph.
        warm: count of the slot's frames when a plain run came first, 0 before. The first run of a network sets things
            up, so it must have happened before another is captured.
        capturable: capturing has not failed.
        measured: the range of the latest output was.
        toned: so was its tone.
        results: pinned arrays that the outputs come back to, of a lane that only reads.
    """

    def __init__(self, driver: Driver, plan: CropPlan, outputs: tuple[TensorSpec, ...], slot: int) -> None:
        what = f"{plan.name}, frame {slot}"
        self._owned: list[Any] = []
        self.made, self.read = driver.event(), driver.event()
        self.graph: Graph | None = None
        self.graph_from = 0
        self.warm = 0
        self.measured = self.toned = False
        self.capturable = True
        with ExitStack() as on_failure:
            on_failure.callback(self.free)

            def buffer(nbytes: int, part: str) -> Buffer:
                self._owned.append(driver.buffer(nbytes, f"{what}: {part}"))
                return self._owned[-1]

            self.crop = buffer(blocks.CROP.itemsize, "where to cut")
            self.target = buffer(nbytes_of(plan.target), "input")
            self.outputs = {spec.name: buffer(nbytes_of(spec), f"output {spec.name}") for spec in outputs}
            self.results: list[NDArray[Any]] = []
            if plan.picture < 0:
                for spec in outputs:
                    pinned = driver.pinned(nbytes_of(spec), f"{what}: output {spec.name}, back")
                    self._owned.append(pinned)
                    self.results.append(pinned.array.view(spec.dtype).reshape(spec.shape))
            else:
                width, height = plan.target.size
                side = plan.tiles**2 * width * height
                cells = -(-height // TONE_STEP) * -(-width // TONE_STEP)
                self.paste = buffer(blocks.PASTE.itemsize, "where to paste")
                self.opacity = buffer(side, "opacity")
                self.weight = buffer(4 * cells, "skin")
                self.extents = buffer(EXTENTS * blocks.EXTENT.itemsize, "ranges")
                self.result = buffer(blocks.MEASURED.itemsize, "measures")
            on_failure.pop_all()

    def free(self) -> None:
        """Give it all back."""
        for part in reversed(self._owned):
            part.free()
        self._owned.clear()


def sized(spec: TensorSpec, plan: CropPlan, engine: Engine) -> TensorSpec:
    """Demand that an output has a fixed shape.

    Raises:
        DeviceError: it has not.
    """
    if -1 not in spec.shape:
        return spec
    raise DeviceError(
        f"{plan.name}: the output {spec.name!r} has no fixed shape: {list(spec.shape)}, on {engine.runtime}",
        "set engine.device to cpu, or build a plan for one size",
    )


def pixels_of(spec: TensorSpec) -> int:
    """Pixels of a picture, all tiles together."""
    width, height = spec.size
    return spec.shape[0] * width * height


def nbytes_of(spec: TensorSpec) -> int:
    """Size of a tensor."""
    return int(np.prod(spec.shape)) * np.dtype(spec.dtype).itemsize
