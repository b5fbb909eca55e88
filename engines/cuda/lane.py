"""The way of crops through a network on the GPU: what it enqueues and what that waits for; knows no face.

Cutting and running are one CUDA graph from the second frame on: every kernel reads what changes from a small block of
the device, so the graph stays valid. A second face of a frame uses the lane's buffers again, and sees the first one
painted; both follow from waiting for what was painted before. What is no frame in flight, such as a photo, is worked on
where it lies, by a lane of the host.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from engines.contract import CropPlan, Engine, TensorSpec
from engines.cpu import CpuDevice
from engines.cuda import blocks
from engines.cuda.blocks import Block, Rectangle
from engines.cuda.buffers import EXTENTS, LaneBuffers, pixels_of, sized
from engines.cuda.driver import Driver, Kernel, Stream
from engines.cuda.idle import wait_until_idle
from engines.cuda.slot import Paint, Part, Slot
from engines.errors import DeviceError
from engines.lane import HostLane

THREADS = 256
MOST_BLOCKS = 1024
"""Of a launch; the kernels go on in strides. Eight for each multiprocessor of the largest GPU."""
MOST_KNOWN = 32
"""People whose tones are kept."""
NOWHERE = np.uint64(0)


class Studio(Protocol):
    """What a lane needs of its device."""

    driver: Driver
    host: CpuDevice
    blend: Stream
    remarks: list[str]
    lanes: list[CudaLane]

    def slot_of(self, pixels: NDArray[np.uint8]) -> Slot | None:
        """The slot of a frame that has begun, ``None`` for any other picture."""


class CudaLane:
    """The ``Lane`` of the GPU; see :class:`engines.contract.Lane`, which its methods follow.

    Args:
        studio: the device.
        plan: what is done.
        engine: that runs the network.
        stream: where it runs.
        slots: frames in flight.

    Attributes:
        plan: what is done.
        engine: that runs the network.
    """

    def __init__(self, studio: Studio, plan: CropPlan, engine: Engine, stream: Stream, slots: int) -> None:
        self._studio, self.plan, self.engine, self._stream = studio, plan, engine, stream
        self._driver = studio.driver
        self._host = HostLane(studio.host, plan, engine)
        self._outputs = tuple(sized(spec, plan, engine) for spec in self._kept())
        self._cut = self._driver.kernel("crop.cu", f"crop_{blocks.suffix(plan.target)}")
        self._known: dict[int, tuple[NDArray[np.float32], NDArray[np.float32]]] = {}
        self._slot: Slot | None = None
        self._part: Part | None = None
        self._count = 0
        self._idle = self._driver.event()
        self._buffers: list[LaneBuffers] = []
        try:
            for slot in range(slots):
                self._buffers.append(LaneBuffers(self._driver, plan, self._outputs, slot))
            self._bind()
        except BaseException:
            self.close()
            raise
        if plan.picture >= 0:
            self._made_spec = sized(engine.outputs[plan.picture], plan, engine)
            end = blocks.suffix(self._made_spec)
            self._extent: Kernel = self._driver.kernel("measure.cu", f"extent_{end}")
            self._measure: Kernel = self._driver.kernel("measure.cu", f"measure_{end}")
            self._paste: Kernel = self._driver.kernel("paste.cu", f"paste_{end}")

    def start(
        self, pixels: NDArray[np.uint8], picture_from_crop: NDArray[np.float64], others: Mapping[str, NDArray[Any]]
    ) -> None:
        """Enqueue the cut and the run."""
        self._demand_open()
        slot = self._slot = self._studio.slot_of(pixels)
        if slot is None:
            self._host.start(pixels, picture_from_crop, others)
            return
        part = self._part = slot.part_of(pixels)
        self._count, mine = slot.count, self._buffers[slot.number]
        mine.measured = False
        self._stream.wait_for(slot.uploaded)
        if slot.touched:  # a face before this one: its picture is to be seen, and its buffers are these
            self._stream.wait_for(slot.painted)
        try:
            with self._driver.range(self.plan.name), slot.laps.lap(self._stream):
                block = np.zeros(1, blocks.CROP)
                blocks.write_crop(block, picture_from_crop, part.size, slot.pitch)
                slot.staging.send(block, mine.crop.address, self._stream)
                self._run(slot, mine, pixels, picture_from_crop, others)
        finally:  # whatever came of it: what was enqueued reads the frame
            self._stream.record(mine.made)
            if mine.made not in slot.made:
                slot.made.append(mine.made)

    def outputs(self) -> tuple[NDArray[Any], ...]:
        """Wait for the outputs."""
        self._demand_open()
        return self._host.outputs() if self._slot is None else self._read(self._slot, self._buffers[self._slot.number])

    def tones(
        self, who: int, weight: NDArray[np.float32], before: NDArray[np.float32], after: NDArray[np.float32]
    ) -> None:
        """Measure; the figures of a person who is known are those of an earlier frame."""
        self._demand_open()
        if self._slot is None:
            self._host.tones(who, weight, before, after)
            return
        slot, mine = self._started()
        slot.staging.send(weight, mine.weight.address, self._stream)
        self._measure_now(slot, mine, np.uint64(mine.weight.address))
        if who in self._known:
            before[:], after[:] = self._known[who]
            return
        measured = slot.staging.fetch(mine.result.address, blocks.MEASURED, self._stream)
        self._stream.record(mine.read)
        mine.read.wait()
        before[:], after[:] = (measured[0][name].reshape(2, 3) for name in ("before", "after"))

    def paint(
        self,
        who: int,
        pixels: NDArray[np.uint8],
        picture_from_crop: NDArray[np.float64],
        opacity: NDArray[np.uint8],
        gain: NDArray[np.float32],
        offset: NDArray[np.float32],
        retouch: Callable[[NDArray[np.uint8]], None] | None = None,
    ) -> None:
        """Enqueue the paste."""
        self._demand_open()
        if self._slot is None:
            self._host.paint(who, pixels, picture_from_crop, opacity, gain, offset, retouch)
            return
        if retouch is not None:
            raise DeviceError("a GPU cannot retouch what it pastes", "set engine.device to cpu")
        slot, mine = self._started()
        assert self._part is not None
        blend, part, plan = self._studio.blend, self._part, self.plan
        placed = blocks.place(opacity, picture_from_crop, part.size)
        if not mine.measured:
            self._measure_now(slot, mine, NOWHERE)
        block = np.zeros(1, blocks.PASTE)
        least = plan.least_range, plan.least_deviation if mine.toned else 0.0
        blocks.write_paste(block, placed, gain, offset, slot.pitch, least)
        slot.wait_for_readers(blend)
        with self._driver.range(f"paste {plan.name}"), slot.laps.lap(blend):
            slot.staging.send(block, mine.paste.address, blend)
            slot.staging.send(opacity, mine.opacity.address, blend)
            self._paste_now(part, mine, placed.rectangle)
            measured = slot.staging.fetch(mine.result.address, blocks.MEASURED, blend)
        slot.paints.append(Paint(who, plan, measured, self._keep if mine.toned else None))
        slot.paint_into(part.in_frame(placed.rectangle), blend)

    def close(self) -> None:
        """Free the buffers, once nothing uses them."""
        if self in self._studio.lanes:
            self._studio.lanes.remove(self)
        if self._buffers:
            wait_until_idle(self._idle, self._stream, self._studio.blend)
        for mine in self._buffers:
            mine.free()
        self._buffers.clear()

    def _demand_open(self) -> None:
        if not self._buffers:
            raise DeviceError(f"the lane of {self.plan.name} is closed", "report this as a bug")

    def _kept(self) -> Sequence[TensorSpec]:
        """Outputs of the engine that lie on the device."""
        raise NotImplementedError

    def _bind(self) -> None:
        """Tell the engine where its tensors lie."""

    def _run(
        self,
        slot: Slot,
        mine: LaneBuffers,
        pixels: NDArray[np.uint8],
        picture_from_crop: NDArray[np.float64],
        others: Mapping[str, NDArray[Any]],
    ) -> None:
        """Cut and run the network."""
        raise NotImplementedError

    def _read(self, slot: Slot, mine: LaneBuffers) -> tuple[NDArray[Any], ...]:
        """The outputs of the latest run, on the host."""
        raise NotImplementedError

    def _cut_now(self, mine: LaneBuffers) -> None:
        assert self._part is not None
        spec = self.plan.target
        self._cut.launch(
            self._stream,
            grid_for(pixels_of(spec)),
            (THREADS, 1, 1),
            (
                np.uint64(self._part.address),
                np.uint64(mine.crop.address),
                np.uint64(mine.target.address),
                *blocks.crop_arguments(spec),
            ),
        )

    def _measure_now(self, slot: Slot, mine: LaneBuffers, weight: np.uint64) -> None:
        """Enqueue the measurement; ``weight`` is an address, 0 for the range alone."""
        output, extents = (np.uint64(b.address) for b in (mine.outputs[self._made_spec.name], mine.extents))
        layout = blocks.layout_arguments(self._made_spec)
        with slot.laps.lap(self._stream):
            self._extent.launch(self._stream, (EXTENTS, 1, 1), (THREADS, 1, 1), (output, extents, *layout))
            self._measure.launch(
                self._stream,
                (1, 1, 1),
                (THREADS, 1, 1),
                (
                    np.uint64(mine.target.address),
                    output,
                    extents,
                    np.int32(EXTENTS),
                    weight,
                    np.uint64(mine.result.address),
                    *blocks.worth_arguments(self.plan.target),
                    *layout,
                ),
            )
        mine.measured, mine.toned = True, weight != NOWHERE
        self._stream.record(mine.made)

    def _paste_now(self, part: Part, mine: LaneBuffers, rectangle: Rectangle) -> None:
        left, top, right, bottom = rectangle
        self._paste.launch(
            self._studio.blend,
            grid_for(max((right - left) * (bottom - top), 1)),
            (THREADS, 1, 1),
            (
                np.uint64(part.address),
                np.uint64(mine.paste.address),
                np.uint64(mine.outputs[self._made_spec.name].address),
                np.uint64(mine.opacity.address),
                np.uint64(mine.result.address),
                *blocks.layout_arguments(self._made_spec),
            ),
        )

    def _started(self) -> tuple[Slot, LaneBuffers]:
        if self._slot is None or self._slot.pixels is None or self._slot.count != self._count:
            raise DeviceError("this frame has been finished", "report this as a bug")
        self._slot.demand_workable()
        return self._slot, self._buffers[self._slot.number]

    def _keep(self, who: int, measured: Block) -> None:
        """Note the tones of a face that was painted."""
        before, after = measured["before"].reshape(2, 3).copy(), measured["after"].reshape(2, 3).copy()
        if who not in self._known and len(self._known) == MOST_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[who] = before, after


def grid_for(items: int) -> tuple[int, int, int]:
    """Blocks for so many items, a thread each, or fewer that go on in strides."""
    return min(-(-items // THREADS), MOST_BLOCKS), 1, 1
