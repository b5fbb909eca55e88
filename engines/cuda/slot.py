"""A place for one frame in flight: its picture on the device, what is known of it, and what its work waits for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engines.contract import CropPlan, Failure
from engines.cuda.blocks import NOWHERE, Block, Rectangle
from engines.cuda.driver import Buffer, Driver, Event, Pinned, Stream
from engines.cuda.laps import Laps
from engines.cuda.staging import Staging
from engines.errors import DeviceError
from engines.lane import no_picture, one_colour


@dataclass(frozen=True, slots=True)
class Paint:
    """One face that was painted, or perhaps was not.

    Attributes:
        who: number of the person.
        plan: of the lane.
        measured: what the kernels said; valid when the frame is finished.
        keep: takes the tones of a face that was painted, ``None`` where nobody has measured them.
    """

    who: int
    plan: CropPlan
    measured: Block
    keep: Callable[[int, Block], None] | None


@dataclass(frozen=True, slots=True)
class Picture:
    """Memory for a picture of one size.

    Attributes:
        width: in pixels.
        height: in pixels.
        sent: pinned, where it is copied from.
        device: on the device, rows of ``pitch`` bytes.
        back: pinned, where the painted rectangle comes back to.
        aside: on the device, the unpainted part under a mesh.
        nearest: on the device, the triangle of each pixel.
    """

    width: int
    height: int
    sent: Pinned
    device: Buffer
    back: Pinned
    aside: Buffer
    nearest: Buffer

    @property
    def pitch(self) -> int:
        """Bytes from row to row, here as on the host."""
        return 3 * self.width

    def free(self) -> None:
        """Free all of it."""
        for part in (self.sent, self.device, self.back, self.aside, self.nearest):
            part.free()


class Part(NamedTuple):
    """A view into a frame, on the device.

    Attributes:
        rectangle: where it lies in the frame.
        address: of its first pixel; the rows are as far apart as those of the frame.
    """

    rectangle: Rectangle
    address: int

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        left, top, right, bottom = self.rectangle
        return right - left, bottom - top

    def in_frame(self, rectangle: Rectangle) -> Rectangle:
        """Where a rectangle of this part lies in the frame."""
        left, top, *_ = self.rectangle
        return NOWHERE if rectangle.empty else Rectangle(*np.add(rectangle, (left, top) * 2).tolist())


class Slot:
    """One of the frames in flight.

    Attributes:
        uploaded: the picture is on the device.
        painted: what was painted so far is in it.
        downloaded: the painted part is back.
        pixels: the frame as its owner has it, ``None`` when there is none.
        count: frames that have begun here.
    """

    def __init__(self, number: int, driver: Driver) -> None:
        self.number, self._driver = number, driver
        self.staging = Staging(driver, f"numbers of frame {number}")
        self.uploaded, self.painted, self.downloaded = (driver.event() for _ in range(3))
        self.laps = Laps(driver)
        self.picture: Picture | None = None
        self.pixels: NDArray[np.uint8] | None = None
        self.count = 0
        self._clear()

    def _clear(self) -> None:
        self.changed, self.submitted, self.touched = NOWHERE, False, False
        self.made: list[Event] = []
        self.paints: list[Paint] = []
        self.laps.clear()

    def begin(self, pixels: NDArray[np.uint8]) -> Picture:
        """Take a frame up; memory is only allocated when its size is another than before."""
        height, width = pixels.shape[:2]
        if self.picture is None or (self.picture.width, self.picture.height) != (width, height):
            self._allocate(width, height)
        assert self.picture is not None
        self._clear()
        self.pixels, self.count = pixels, self.count + 1
        self.staging.clear()
        np.copyto(self.picture.sent.array, pixels.reshape(-1))
        return self.picture

    def end(self) -> None:
        """Let the frame go; the slot is free."""
        self.pixels = None

    def holds(self, array: NDArray[np.uint8]) -> bool:
        """Whether an array lies within the frame of this slot."""
        if self.pixels is None:
            return False
        first = self.pixels.ctypes.data
        return first <= array.ctypes.data < first + self.pixels.nbytes

    @property
    def pitch(self) -> int:
        """Bytes from row to row of the frame."""
        assert self.picture is not None
        return self.picture.pitch

    def part_of(self, view: NDArray[np.uint8]) -> Part:
        """Where a view into the frame lies on the device.

        Raises:
            DeviceError: it is no rectangle of the frame; kernels know no other way from pixel to pixel. Or the frame is
                on its way back.
        """
        self.demand_workable()
        assert self.pixels is not None
        assert self.picture is not None
        offset = view.ctypes.data - self.pixels.ctypes.data
        top, bytes_in = divmod(offset, self.picture.pitch)
        left, (height, width) = bytes_in // 3, view.shape[:2]
        steps = zip(view.shape, view.strides, self.pixels.strides, strict=False)
        whole = view.shape[2:] == (3,) and all(n == 1 or mine == step for n, mine, step in steps)
        if not whole or left + width > self.picture.width or top + height > self.picture.height:
            raise DeviceError(
                f"{view.shape} in steps of {view.strides} bytes is no rectangle of its frame", "report this as a bug"
            )
        return Part(Rectangle(left, top, left + width, top + height), self.picture.device.address + offset)

    def demand_workable(self) -> None:
        """Raise ``DeviceError`` where the frame is on its way back: nobody would see what is painted into it now."""
        if self.submitted:
            raise DeviceError("this frame is on its way back", "report this as a bug")

    def wait_for_readers(self, stream: Stream) -> None:
        """Let what paints wait for every lane of this frame: for the one whose output it is, and for those that look.

        A look that has not yet cut its crop would see the new face. It ends long before the swap does.
        """
        for event in self.made:
            stream.wait_for(event)

    def paint_into(self, rectangle: Rectangle, stream: Stream) -> None:
        """Note that a part has been painted, by what the stream has been given."""
        self.changed = self.changed.joined(rectangle)
        self.touched = True
        stream.record(self.painted)

    def fetch_changed(self, stream: Stream) -> None:
        """Bring the painted part back, which is not empty."""
        assert self.picture is not None
        left, top, right, bottom = self.changed
        rows, nbytes = bottom - top, 3 * (right - left)
        target = self.picture.back.array[: rows * nbytes].reshape(rows, nbytes)
        source = self.picture.device.address + top * self.picture.pitch + 3 * left
        self._driver.copy_rows_out(target, source, self.picture.pitch, stream)

    def put_back(self) -> None:
        """Put what came back into the frame's own array."""
        if self.changed.empty or self.pixels is None or self.picture is None:
            return
        left, top, right, bottom = self.changed
        shape = bottom - top, right - left, 3
        back = self.picture.back.array[: shape[0] * shape[1] * 3].reshape(shape)
        self.pixels[top:bottom, left:right] = back

    def failures(self) -> tuple[Failure, ...]:
        """Say which faces were not painted, and note the tones of the others."""
        failed = []
        for paint in self.paints:
            measured = paint.measured[0]
            if measured["painted"]:
                if paint.keep is not None:
                    paint.keep(paint.who, measured)
                continue
            low, high = float(measured["low"]), float(measured["high"])
            if high - low >= paint.plan.least_range:
                error = one_colour(paint.plan.name, *measured["after"][:3].tolist())
            else:
                error = no_picture(paint.plan.name, low, high)
            failed.append(Failure(paint.who, error, paint.plan.bares))
        return tuple(failed)

    def free(self) -> None:
        """Free everything."""
        if self.picture is not None:
            self.picture.free()
            self.picture = None
        self.staging.free()

    def _allocate(self, width: int, height: int) -> None:
        if self.picture is not None:
            self.picture.free()
            self.picture = None
        size, frame = width * height, self.number
        parts: list[Buffer | Pinned] = []
        try:
            parts.append(self._driver.pinned(3 * size, f"picture of frame {frame}, sent"))
            parts.append(self._driver.buffer(3 * size, f"picture of frame {frame}"))
            parts.append(self._driver.pinned(3 * size, f"picture of frame {frame}, back"))
            parts.append(self._driver.buffer(3 * size, f"picture of frame {frame} under a mesh"))
            parts.append(self._driver.buffer(8 * size, f"triangles of frame {frame}"))
        except BaseException:
            for part in parts:
                part.free()
            raise
        self.picture = Picture(width, height, *parts)  # type: ignore[arg-type]  # in this order
