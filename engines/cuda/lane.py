"""The way of crops through a network on the GPU: what it enqueues and what that waits for; knows no face.

Cutting and running are one CUDA graph from the second frame on: every kernel reads what changes from a small block of
the device, so the graph stays valid. A second face of a frame uses the lane's buffers again, and sees the first one
painted; both follow from waiting for what was painted before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from engines.contract import CropPlan, Engine
from engines.cpu import CpuDevice
from engines.cuda import blocks
from engines.cuda.blocks import Block
from engines.cuda.buffers import EXTENTS, LaneBuffers, nbytes_of, pixels_of, sized
from engines.cuda.driver import Driver, Kernel, Stream
from engines.cuda.slot import Paint, Slot
from engines.errors import DeviceError
from engines.lane import tile_of

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
    """

    def __init__(self, studio: Studio, plan: CropPlan, engine: Engine, stream: Stream, slots: int) -> None:
        self._studio, self._plan, self._engine, self._stream = studio, plan, engine, stream
        self._driver = studio.driver
        self._outputs = tuple(sized(spec, plan, engine) for spec in engine.outputs)
        self._cut = self._driver.kernel("crop.cu", f"crop_{blocks.suffix(plan.target)}")
        self._known: dict[int, tuple[NDArray[np.float32], NDArray[np.float32]]] = {}
        self._slot: Slot | None = None
        self._apart: tuple[NDArray[Any], ...] | None = None
        self._buffers: list[LaneBuffers] = []
        try:
            for slot in range(slots):
                self._buffers.append(LaneBuffers(self._driver, plan, self._outputs, slot))
            self._bind()
        except BaseException:
            self.close()
            raise
        if plan.picture >= 0:
            self._made_spec = self._outputs[plan.picture]
            end = blocks.suffix(self._made_spec)
            self._extent: Kernel = self._driver.kernel("measure.cu", f"extent_{end}")
            self._measure: Kernel = self._driver.kernel("measure.cu", f"measure_{end}")
            self._paste: Kernel = self._driver.kernel("paste.cu", f"paste_{end}")

    def start(
        self, pixels: NDArray[np.uint8], picture_from_crop: NDArray[np.float64], others: Mapping[str, NDArray[Any]]
    ) -> None:
        """Enqueue the cut and the run."""
        self._apart = None
        slot = self._slot = self._studio.slot_of(pixels)
        if slot is None:
            self._apart = self._run_apart(pixels, picture_from_crop, others)
            return
        mine = self._buffers[slot.number]
        mine.measured = False
        slot.laps[self._stream.name].begin(self._stream)
        self._stream.wait_for(slot.uploaded)
        if slot.touched:  # a face before this one: its picture is to be seen, and its buffers are these
            self._stream.wait_for(slot.painted)
        assert slot.picture is not None
        block = np.zeros(1, blocks.CROP)
        size = (slot.picture.width, slot.picture.height)
        blocks.write_crop(block, picture_from_crop, size, slot.picture.pitch)
        slot.staging.send(block, mine.crop.address, self._stream)
        self._run(slot, mine, pixels, picture_from_crop, others)
        self._finish_stage(slot, mine)

    def outputs(self) -> tuple[NDArray[Any], ...]:
        """Bring the outputs back and wait for them."""
        if self._apart is not None:
            return self._apart
        slot, mine = self._started()
        if not mine.results:
            return self._small_outputs(slot, mine)
        mine.read.wait()
        return tuple(mine.results)

    def tones(
        self, who: int, weight: NDArray[np.float32], before: NDArray[np.float32], after: NDArray[np.float32]
    ) -> None:
        """Measure; the figures of a person who is known are those of an earlier frame."""
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
        if retouch is not None:
            raise DeviceError("a GPU cannot retouch what it pastes", "set engine.device to cpu")
        slot, mine = self._started()
        if not mine.measured:
            self._measure_now(slot, mine, NOWHERE)
        blend, picture, plan = self._studio.blend, slot.picture, self._plan
        assert picture is not None
        placed = blocks.place(opacity, picture_from_crop, (picture.width, picture.height))
        block = np.zeros(1, blocks.PASTE)
        blocks.write_paste(block, placed, gain, offset, picture.pitch, (plan.least_range, plan.least_deviation))
        slot.wait_for_readers(blend)
        slot.laps[blend.name].begin(blend)
        slot.staging.send(block, mine.paste.address, blend)
        slot.staging.send(opacity, mine.opacity.address, blend)
        left, top, right, bottom = placed.rectangle
        self._paste.launch(
            blend,
            grid_for(max((right - left) * (bottom - top), 1)),
            (THREADS, 1, 1),
            (
                np.uint64(picture.device.address),
                np.uint64(mine.paste.address),
                np.uint64(mine.outputs[plan.picture].address),
                np.uint64(mine.opacity.address),
                np.uint64(mine.result.address),
                *blocks.layout_arguments(self._made_spec),
            ),
        )
        measured = slot.staging.fetch(mine.result.address, blocks.MEASURED, blend)
        slot.paints.append(Paint(who, plan, measured, self._keep))
        slot.laps[blend.name].end(blend)
        slot.paint_into(placed.rectangle, blend)

    def close(self) -> None:
        """Free the buffers."""
        for mine in self._buffers:
            mine.free()
        self._buffers.clear()

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

    def _run_apart(
        self, pixels: NDArray[np.uint8], picture_from_crop: NDArray[np.float64], others: Mapping[str, NDArray[Any]]
    ) -> tuple[NDArray[Any], ...]:
        """Cut from a picture that is no frame, such as a photo, on the host, and wait for the network."""
        target = np.zeros(self._plan.target.shape, self._plan.target.dtype)
        self._cut_on_host(pixels, picture_from_crop, target)
        return self._engine.run(*self._inputs(target, others))

    def _cut_on_host(
        self, pixels: NDArray[np.uint8], picture_from_crop: NDArray[np.float64], target: NDArray[Any]
    ) -> None:
        for tile in range(self._plan.tiles**2):
            picture_from_tile = tile_of(picture_from_crop, self._plan.tiles, tile)
            self._studio.host.crop(pixels, picture_from_tile, self._plan.target, target[tile : tile + 1])

    def _inputs(self, target: NDArray[Any], others: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        """Inputs of the engine in its order."""
        name = self._plan.target.name
        return [target if spec.name == name else others[spec.name] for spec in self._engine.inputs]

    def _small_outputs(self, slot: Slot, mine: LaneBuffers) -> tuple[NDArray[Any], ...]:
        """Outputs of a lane that paints, which are read besides: a network's own mask."""
        fetched = []
        for spec, buffer in zip(self._outputs, mine.outputs, strict=True):
            piece = slot.staging.take(nbytes_of(spec))
            self._driver.copy_out(piece, buffer.address, self._stream)
            fetched.append(piece.view(spec.dtype).reshape(spec.shape))
        self._stream.record(mine.read)
        mine.read.wait()
        return tuple(fetched)

    def _cut_now(self, slot: Slot, mine: LaneBuffers) -> None:
        assert slot.picture is not None
        spec = self._plan.target
        self._cut.launch(
            self._stream,
            grid_for(pixels_of(spec)),
            (THREADS, 1, 1),
            (
                np.uint64(slot.picture.device.address),
                np.uint64(mine.crop.address),
                np.uint64(mine.target.address),
                *blocks.crop_arguments(spec),
            ),
        )

    def _measure_now(self, slot: Slot, mine: LaneBuffers, weight: np.uint64) -> None:
        """Enqueue the measurement; ``weight`` is an address, 0 for the range alone."""
        output = np.uint64(mine.outputs[self._plan.picture].address)
        extents, layout = np.uint64(mine.extents.address), blocks.layout_arguments(self._made_spec)
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
                *blocks.worth_arguments(self._plan.target),
                *layout,
            ),
        )
        mine.measured = True
        slot.laps[self._stream.name].end(self._stream)
        self._stream.record(mine.made)

    def _finish_stage(self, slot: Slot, mine: LaneBuffers) -> None:
        """Bring back what is only read, and mark the end of what the lane does."""
        for result, buffer in zip(mine.results, mine.outputs, strict=False):
            self._driver.copy_out(result.reshape(-1).view(np.uint8), buffer.address, self._stream)
        if mine.results:
            self._stream.record(mine.read)
        slot.laps[self._stream.name].end(self._stream)
        self._stream.record(mine.made)
        if mine.made not in slot.made:
            slot.made.append(mine.made)

    def _started(self) -> tuple[Slot, LaneBuffers]:
        if self._slot is None:
            raise DeviceError("only a frame that has begun can be painted", "report this as a bug")
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
