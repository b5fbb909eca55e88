"""The two kinds of lanes of the GPU: whose engine computes in its memory, and whose does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.contract import SlottedEngine
from engines.cuda.buffers import LaneBuffers, nbytes_of
from engines.cuda.lane import CudaLane
from engines.cuda.slot import Slot
from engines.errors import DeviceError, EngineError


class SlottedLane(CudaLane):
    """A lane whose engine computes in the device's memory."""

    def _bind(self) -> None:
        for slot, mine in enumerate(self._buffers):
            addresses = {self._plan.target.name: mine.target.address}
            addresses |= {spec.name: out.address for spec, out in zip(self._outputs, mine.outputs, strict=True)}
            self._slotted.bind(slot, addresses)

    @property
    def _slotted(self) -> SlottedEngine:
        return self._engine  # type: ignore[return-value]  # who makes this lane has looked

    def _run(
        self,
        slot: Slot,
        mine: LaneBuffers,
        pixels: NDArray[np.uint8],
        picture_from_crop: NDArray[np.float64],
        others: Mapping[str, NDArray[Any]],
    ) -> None:
        engine, number = self._slotted, slot.number
        for name, tensor in others.items():
            engine.hold(number, name, tensor, self._stream.handle)
        if mine.graph is not None and mine.graph_of is slot.picture:
            mine.graph.launch(self._stream)
            return
        if mine.warm and mine.capturable:
            try:
                with self._driver.capture(self._stream) as graphs:
                    self._cut_now(slot, mine)
                    engine.enqueue(number, self._stream.handle)
            except (DeviceError, EngineError) as error:
                mine.capturable = False  # a graph saves launches, and nothing else depends on it
                self._studio.remarks.append(f"{self._plan.name} runs without a CUDA graph: {error.message}")
            else:
                mine.graph, mine.graph_of = graphs[0], slot.picture
                mine.graph.launch(self._stream)
                return
        self._cut_now(slot, mine)
        engine.enqueue(number, self._stream.handle)
        mine.warm = True


class HostedLane(CudaLane):
    """A lane whose engine computes on the host, or copies by itself: while a plan is built, or where none can be."""

    def _run(
        self,
        slot: Slot,
        mine: LaneBuffers,
        pixels: NDArray[np.uint8],
        picture_from_crop: NDArray[np.float64],
        others: Mapping[str, NDArray[Any]],
    ) -> None:
        target = slot.staging.take(nbytes_of(self._plan.target)).view(self._plan.target.dtype)
        target = target.reshape(self._plan.target.shape)
        if slot.touched:
            self._cut_now(slot, mine)
            self._driver.copy_out(target.reshape(-1).view(np.uint8), mine.target.address, self._stream)
            self._stream.record(mine.read)
            mine.read.wait()
        else:  # the picture is still as the host has it
            self._cut_on_host(pixels, picture_from_crop, target)
            self._driver.copy_in(mine.target.address, target.reshape(-1).view(np.uint8), self._stream)
        made = self._engine.run(*self._inputs(target, others))
        for output, buffer in zip(made, mine.outputs, strict=True):
            slot.staging.send(output, buffer.address, self._stream)
