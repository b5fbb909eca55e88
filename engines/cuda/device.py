"""The NVIDIA device: frames go up once, are cut, swapped and blended there, and the painted part comes back once.

Five streams overlap, ordered by events that are made once::

    copy in --uploaded--> detect --made--.            (looks for newcomers)
              `---------> swap ---made--> blend --painted--> copy out --downloaded--> finish
                           ^------painted-------'     (the next face of the frame)

A frame has one of two slots, and nothing of a slot is used again before ``finish`` has waited for it: that is the one
wait of a frame. What is small and lies on the host anyway (crops for the processor's networks, textures of meshes that
are read) is worked on there, by the processor's own device, while the GPU is busy.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack

import numpy as np
from numpy.typing import NDArray

from engines.contract import Availability, CropPlan, Engine, Lane, Report, SlottedEngine, TensorSpec
from engines.cpu import CpuDevice
from engines.cuda import opening
from engines.cuda.drawing import Drawing
from engines.cuda.driver import Driver
from engines.cuda.idle import wait_until_idle
from engines.cuda.lane import CudaLane
from engines.cuda.lanes import HostedLane, SlottedLane
from engines.cuda.slot import Slot
from engines.errors import DeviceError
from engines.lane import HostLane

SLOTS = 2
"""Frames in flight: one that is worked on and one that goes up or down. A third would be latency with a name."""


def probe() -> Availability:
    """Say whether there is a GPU that can be driven."""
    return opening.probe()


class CudaDevice:
    """See :class:`engines.contract.Device`, which its methods follow. Used by one thread at a time.

    Args:
        driver: the GPU; ``None`` opens the first one. Closed with the device.

    Attributes:
        host: works on what lies on the host.
        remarks: what does not run as well as it should, and why.
        blend: the stream that paints.
        lanes: those that are open.
    """

    def __init__(self, driver: Driver | None = None) -> None:
        self.driver = driver or opening.open_driver()
        self.host, self.remarks, self.lanes = CpuDevice(), list[str](), list[CudaLane]()
        self._next, self._told, self._closed = 0, 0, False
        with ExitStack() as on_failure:
            on_failure.callback(self.driver.close)
            self._open(on_failure)
            on_failure.pop_all()

    def _open(self, on_failure: ExitStack) -> None:
        self._streams = tuple(
            self.driver.stream(name, urgent=name in ("swap", "blend"))
            for name in ("copy in", "detect", "swap", "blend", "copy out")
        )
        self._copy_in, self._detect, self._swap, self.blend, self._copy_out = self._streams
        self._idle = self.driver.event()
        self._slots: list[Slot] = []
        for number in range(SLOTS):
            self._slots.append(Slot(number, self.driver))
            on_failure.callback(self._slots[-1].free)
        self._drawing = Drawing(self.driver, self.blend)

    @property
    def name(self) -> str:
        """The GPU and what drives it."""
        gpu, (major, minor) = self.driver.gpu, self.driver.gpu.capability
        return f"cuda ({gpu.name}, compute {major}.{minor}, {self.driver.back_end})"

    @property
    def works_ahead(self) -> bool:
        """It does."""
        return True

    def attached(self) -> AbstractContextManager[None]:
        """Make the GPU's context current in the calling thread."""
        return self.driver.attached()

    def memory(self) -> Sequence[tuple[str, str, int]]:
        """Everything that is allocated: where, what for, bytes."""
        return self.driver.allocations()

    def begin(self, pixels: NDArray[np.uint8]) -> None:
        """Send the picture up."""
        self._demand_open()
        if self.slot_of(pixels) is not None:
            raise DeviceError("this frame is in flight already", "report this as a bug")
        slot = self._free_slot()
        if pixels.dtype != np.uint8 or pixels.ndim != 3 or not pixels.flags.c_contiguous:
            raise DeviceError(
                f"a frame must be C-contiguous bytes, got {pixels.dtype} {pixels.shape}", "report this as a bug"
            )
        with self.driver.range("begin"):
            picture = slot.begin(pixels)
            with slot.laps.lap(self._copy_in):
                self.driver.copy_in(picture.device.address, picture.sent.array, self._copy_in)
            self._copy_in.record(slot.uploaded)

    def _free_slot(self) -> Slot:
        """Take turns, so that both have run and are captured early."""
        taking_turns = (self._slots[(self._next + ahead) % SLOTS] for ahead in range(SLOTS))
        slot = next((slot for slot in taking_turns if slot.pixels is None), None)
        if slot is None:
            raise DeviceError(f"{SLOTS} frames are in flight already", "report this as a bug")
        self._next = (slot.number + 1) % SLOTS
        return slot

    def submit(self, pixels: NDArray[np.uint8]) -> None:
        """Let the painted part come back."""
        self._demand_open()
        slot = self.slot_of(pixels)
        if slot is None or slot.submitted:
            return
        with self.driver.range("submit"):
            # What only looked at the picture ends here too: the slot is used again after this.
            self.blend.record(slot.painted)  # once more: a paint that broke off half-way counts too
            for event in (slot.uploaded, *slot.made, slot.painted):
                self._copy_out.wait_for(event)
            if not slot.changed.empty:
                with slot.laps.lap(self._copy_out):
                    slot.fetch_changed(self._copy_out)
            self._copy_out.record(slot.downloaded)
        slot.submitted = True  # only now: what broke off is tried again, or the frame would seem to be back

    def finish(self, pixels: NDArray[np.uint8]) -> Report:
        """Wait for the frame."""
        self._demand_open()
        slot = self.slot_of(pixels)
        if slot is None:
            return Report()
        try:
            self.submit(pixels)
            with self.driver.range("wait"):
                slot.downloaded.wait()
            failures = slot.failures()
            slot.put_back()
            told, self._told = self._told, len(self.remarks)
            return Report(failures, slot.laps.total_ms(), tuple(self.remarks[told:]))
        except DeviceError:
            wait_until_idle(self._idle, *self._streams)  # the slot's memory is written to again
            raise
        finally:
            slot.end()

    def lane(self, plan: CropPlan, engine: Engine) -> Lane:
        """Make a lane; what is painted runs on the swap stream, what is only read on the detect stream.

        What a network on the host only reads stays there: it looks at the picture as it came.
        """
        self._demand_open()
        if plan.picture < 0 and not isinstance(engine, SlottedEngine):
            return HostLane(self.host, plan, engine)
        stream = self._swap if plan.picture >= 0 else self._detect
        if isinstance(engine, SlottedEngine):
            made = self._lane_of(plan, engine) or SlottedLane(self, plan, engine, stream, SLOTS)
        else:
            made = HostedLane(self, plan, engine, stream, SLOTS)
        if made not in self.lanes:
            self.lanes.append(made)
        return made

    def _lane_of(self, plan: CropPlan, engine: Engine) -> CudaLane | None:
        """The lane that an engine has already: it is bound to the memory of one, and a second would take it away."""
        there = next((lane for lane in self.lanes if lane.engine is engine), None)
        if there is not None and there.plan != plan:
            raise DeviceError(f"the network of {there.plan.name} is in use for something else", "report this as a bug")
        return there

    def _demand_open(self) -> None:
        if self._closed:
            raise DeviceError(f"{self.name} is closed", "open it again")

    def slot_of(self, pixels: NDArray[np.uint8]) -> Slot | None:
        """The slot of a frame that has begun, ``None`` for any other picture."""
        return next((slot for slot in self._slots if slot.holds(pixels)), None)

    def draw(
        self,
        picture: NDArray[np.uint8],
        mesh: NDArray[np.float32],
        attributes: NDArray[np.float32],
        triangles: NDArray[np.int32],
        texture: NDArray[np.uint8],
        opacity: NDArray[np.float32],
    ) -> None:
        """Draw into a frame that has begun, or on the host into any other picture."""
        self._demand_open()
        slot = self.slot_of(picture)
        if slot is None:
            self.host.draw(picture, mesh, attributes, triangles, texture, opacity)
        else:
            self._drawing.draw(slot, picture, mesh, attributes, triangles, texture, opacity)

    def crop(
        self,
        picture: NDArray[np.uint8],
        picture_from_crop: NDArray[np.float64],
        spec: TensorSpec,
        out: NDArray[np.float32],
    ) -> None:
        """Cut for a network that takes arrays of the host, from the picture as it came."""
        self.host.crop(picture, picture_from_crop, spec, out)

    def unwrap(
        self,
        picture: NDArray[np.uint8],
        mesh: NDArray[np.float32],
        facing: NDArray[np.float32],
        corners: NDArray[np.int32],
        weights: NDArray[np.float32],
        out: NDArray[np.float32],
        seen: NDArray[np.float32],
    ) -> None:
        """On the host, from the picture as it came: the result is wanted there."""
        self.host.unwrap(picture, mesh, facing, corners, weights, out, seen)

    def close(self) -> None:
        """Wait for what is under way and free everything, the last made first, each even if another fails."""
        if self._closed:
            return
        self._closed = True
        with ExitStack() as last_first:
            last_first.callback(self.driver.close)
            last_first.enter_context(self.driver.attached())
            for slot in self._slots:
                last_first.callback(slot.free)
            last_first.callback(self._drawing.free)
            for lane in self.lanes:
                last_first.callback(lane.close)
            last_first.callback(wait_until_idle, self._idle, *self._streams)
