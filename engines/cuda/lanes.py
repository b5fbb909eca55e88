"""The two kinds of lanes of the GPU: whose engine computes in its memory, and whose does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.contract import SlottedEngine, TensorSpec
from engines.cuda.buffers import LaneBuffers, nbytes_of
from engines.cuda.driver import Graph
from engines.cuda.lane import CudaLane
from engines.cuda.slot import Slot
from engines.errors import DeviceError, EngineError


class SlottedLane(CudaLane):
    """A lane whose engine computes in the device's memory."""

    def _kept(self) -> Sequence[TensorSpec]:
        return self.engine.outputs

    def _bind(self) -> None:
        for slot, mine in enumerate(self._buffers):
            addresses = {self.plan.target.name: mine.target.address}
            self._slotted.bind(slot, addresses | {name: output.address for name, output in mine.outputs.items()})

    @property
    def _slotted(self) -> SlottedEngine:
        return self.engine  # type: ignore[return-value]  # who makes this lane has looked

    def _run(
        self,
        slot: Slot,
        mine: LaneBuffers,
        pixels: NDArray[np.uint8],
        picture_from_crop: NDArray[np.float64],
        others: Mapping[str, NDArray[Any]],
    ) -> None:
        for name, tensor in others.items():
            self._slotted.hold(slot.number, name, tensor, self._stream.handle)
        graph = self._graph(slot, mine)
        if graph is None:
            self._cut_and_run(slot, mine)
            mine.warm = mine.warm or slot.count
        else:
            graph.launch(self._stream)
        if mine.results:  # of a lane that only reads
            for result, output in zip(mine.results, mine.outputs.values(), strict=True):
                self._driver.copy_out(result.reshape(-1).view(np.uint8), output.address, self._stream)
            self._stream.record(mine.read)

    def _cut_and_run(self, slot: Slot, mine: LaneBuffers) -> None:
        self._cut_now(mine)
        self._slotted.enqueue(slot.number, self._stream.handle)

    def _graph(self, slot: Slot, mine: LaneBuffers) -> Graph | None:
        """Cutting and running as one, for whole frames and where it can be had; a graph keeps the address it reads."""
        assert self._part is not None
        assert slot.picture is not None
        if self._part.address != slot.picture.device.address:
            return None
        if mine.graph is not None and mine.graph_from == self._part.address:
            return mine.graph
        if not (mine.capturable and 0 < mine.warm < slot.count):
            return None
        try:
            with self._driver.capture(self._stream) as graphs:
                self._cut_and_run(slot, mine)
        except (DeviceError, EngineError) as error:
            mine.capturable = False  # a graph saves launches, and nothing else depends on it
            remark = f"{self.plan.name} runs without a CUDA graph: {error.message}"
            if remark not in self._studio.remarks:
                self._studio.remarks.append(remark)
            return None
        mine.graph, mine.graph_from = graphs[0], self._part.address
        return mine.graph

    def _read(self, slot: Slot, mine: LaneBuffers) -> tuple[NDArray[Any], ...]:
        """Wait for what is on its way; of a lane that paints (a network's own mask is read besides) it is sent for."""
        if mine.results:
            mine.read.wait()
            return tuple(mine.results)
        self._started()
        fetched = []
        for spec in self._outputs:
            piece = slot.staging.take(nbytes_of(spec))
            self._driver.copy_out(piece, mine.outputs[spec.name].address, self._stream)
            fetched.append(piece.view(spec.dtype).reshape(spec.shape))
        self._stream.record(mine.read)
        mine.read.wait()
        return tuple(fetched)


class HostedLane(CudaLane):
    """A lane that paints and whose engine computes on the host: while a plan is built, or where none can be.

    Only the new picture goes to the device, and the crop for its tone.
    """

    def _kept(self) -> Sequence[TensorSpec]:
        return (self.engine.outputs[self.plan.picture],)

    def _run(
        self,
        slot: Slot,
        mine: LaneBuffers,
        pixels: NDArray[np.uint8],
        picture_from_crop: NDArray[np.float64],
        others: Mapping[str, NDArray[Any]],
    ) -> None:
        plan = self.plan
        piece = slot.staging.take(nbytes_of(plan.target))
        target = piece.view(plan.target.dtype).reshape(plan.target.shape)
        if slot.touched:
            self._cut_now(mine)
            self._driver.copy_out(piece, mine.target.address, self._stream)
            self._stream.record(mine.read)
            mine.read.wait()
        else:  # the picture is still as the host has it
            self._host.cut(pixels, picture_from_crop, target)
            self._driver.copy_in(mine.target.address, piece, self._stream)
        self._host.infer(target, others)
        (output,) = mine.outputs.values()
        slot.staging.send(self._host.outputs()[plan.picture], output.address, self._stream)

    def _read(self, slot: Slot, mine: LaneBuffers) -> tuple[NDArray[Any], ...]:
        return self._host.outputs()
