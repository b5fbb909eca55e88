"""A small stage for the NVIDIA device: a film, networks, lanes and a mesh, on the GPU as on the processor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from engines.contract import CropPlan, Device, Engine, Lane, Report, TensorSpec
from engines.cpu import CpuDevice
from engines.cuda.device import CudaDevice
from realtime.types import F32, F64, U8
from tests.cuda.fake_driver import FakeDriver
from tests.cuda.fake_engine import FakeSlotted, HostFunction

SIDE = 32
PICTURE = TensorSpec("target", (1, 3, SIDE, SIDE), "float32", "NCHW", "RGB", (0.0,) * 3, (1 / 255,) * 3)
MADE = TensorSpec("made", (1, 3, SIDE, SIDE), "float32", "NCHW", "RGB", (0.0,) * 3, (1 / 255,) * 3)
SOURCE = TensorSpec("source", (1, 4), "float32")
LOOK = TensorSpec("look", (1, 3, 16, 24), "float32", "NCHW", "BGR", (127.5,) * 3, (1 / 128,) * 3)
SEEN = TensorSpec("seen", (1, 6), "float32")
GAIN, OFFSET = np.array([1.1, 0.9, 1.0], np.float32), np.array([3, -2, 5], np.float32)


def swapped(target: F32, source: F32) -> tuple[F32, ...]:
    """A network: turns the crop upside down and adds what it is told."""
    return (np.clip(target[:, :, ::-1] * np.float32(0.8) + source.reshape(-1)[:1] * np.float32(0.1), 0, 1),)


def seen(look: F32) -> tuple[F32, ...]:
    """A network: says something about the whole picture."""
    return (np.concatenate([look.mean(axis=(2, 3)), look.std(axis=(2, 3))], axis=1).astype(np.float32),)


def oval() -> U8:
    mask = np.zeros((SIDE, SIDE), np.uint8)
    cv2.ellipse(mask, (SIDE // 2, SIDE // 2), (SIDE // 3, SIDE * 2 // 5), 0, 0, 360, (255,), -1)
    mask = np.asarray(cv2.GaussianBlur(mask, (0, 0), 1.5), np.uint8)
    mask[[0, -1]] = mask[:, [0, -1]] = 0
    return mask


def similarity(scale: float, angle_rad: float, x: float, y: float) -> F64:
    c, s = scale * np.cos(angle_rad), scale * np.sin(angle_rad)
    return np.array([[c, -s, x], [s, c, y]])


def film(frames: int, size: tuple[int, int] = (96, 64)) -> list[U8]:
    rough = np.random.default_rng(1).integers(0, 256, (frames, size[1], size[0], 3), np.uint8)
    return [np.ascontiguousarray(cv2.GaussianBlur(picture, (0, 0), 2)) for picture in rough]


@dataclass
class Run:
    """A device with a swapper and a detector; ``play`` sends frames through it."""

    device: Device
    slotted: Callable[[tuple[TensorSpec, ...], tuple[TensorSpec, ...], Any], Engine]
    faces: int = 2
    network: Callable[..., tuple[F32, ...]] = swapped
    told: list[NDArray[Any]] = field(default_factory=list)
    tones: list[F32] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    sealed: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        engine = self.slotted((PICTURE, SOURCE), (MADE,), self.network)
        self.swap: Lane = self.device.lane(CropPlan("swapper", PICTURE, 0), engine)
        self.finer: Lane = self.device.lane(
            CropPlan("finer", PICTURE, 0, bares=False), self.slotted((PICTURE, SOURCE), (MADE,), swapped)
        )
        self.look: Lane = self.device.lane(CropPlan("detector", LOOK), self.slotted((LOOK,), (SEEN,), seen))

    def begin(self, number: int, pixels: U8) -> None:
        self.device.begin(pixels)
        self.look.start(pixels, np.array([[4.0, 0, 1.5], [0, 4.0, 1.5]]), {})
        for face in range(self.faces):
            where = similarity(1.1 + 0.05 * number, 0.2 * face, 4 + 22 * face + number, 3 + 5 * face)
            for lane, told in ((self.swap, number), (self.finer, face)):
                lane.start(pixels, where, {"source": np.full((1, 4), told % 3, np.float32)})
                if lane is self.swap:
                    before, after = np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32)
                    lane.tones(face, np.ones((SIDE // 4,) * 2, np.float32), before, after)
                    self.tones += [before, after]
                lane.paint(face, pixels, where, oval(), GAIN, OFFSET)
        self.told.append(self.look.outputs()[0].copy())
        self.device.submit(pixels)

    def play(self, pictures: list[U8], in_flight: int) -> list[U8]:
        frames = [picture.copy() for picture in pictures]
        waiting: list[U8] = []
        for number, pixels in enumerate(frames):
            if number == 4:
                self.sealed()  # from here on nothing may be allocated
            self.begin(number, pixels)
            waiting.append(pixels)
            if len(waiting) == in_flight:
                self.reports.append(self.device.finish(waiting.pop(0)))
        for pixels in waiting:
            self.reports.append(self.device.finish(pixels))
        return frames


def on_cpu(**more: Any) -> Run:
    return Run(CpuDevice(), HostFunction, **more)


def on_gpu(driver: FakeDriver, *, hosted: bool = False, **more: Any) -> Run:
    def slotted(inputs: Any, outputs: Any, function: Any) -> Engine:
        return HostFunction(inputs, outputs, function) if hosted else FakeSlotted(driver, inputs, outputs, function)

    def seal() -> None:
        driver.sealed = True

    return Run(CudaDevice(driver), slotted, sealed=seal, **more)


def apart(one: list[U8], other: list[U8]) -> int:
    return max(int(np.abs(a.astype(int) - b).max()) for a, b in zip(one, other, strict=True))


class Silent:
    """A detector that looks at nothing in this frame."""

    def start(self, *_: Any) -> None:
        pass

    def outputs(self) -> tuple[NDArray[Any], ...]:
        return (np.zeros(1),)


class Quiet(Silent):
    def paint(self, *_: Any) -> None:
        pass


MESH = np.array([[2, 2, 0], [30, 4, 3], [6, 28, 1], [28, 27, -2]], np.float32)
TRIANGLES = np.array([[0, 1, 2], [1, 3, 2]], np.int32)
TEXTURE = film(1, (40, 40))[0]


def attributes() -> F32:
    values = np.zeros((4, 8), np.float32)
    values[:, :2] = [[0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.9]]
    values[:, 2], values[:, 5:] = 0.9, 1.1
    return values


def draw_twice(device: Device, pixels: U8) -> None:
    for _ in range(2):
        device.draw(pixels[10:50, 20:70], MESH, attributes(), TRIANGLES, TEXTURE, np.ones((8, 8, 2), np.float32))


def draw_on(device: Device, look: Lane | None = None) -> list[U8]:
    """Draw a mesh twice into each frame, while a detector looks at it where there is one."""
    frames = film(4)
    for pixels in frames:
        device.begin(pixels)
        if look is not None:
            look.start(pixels, np.array([[4.0, 0, 1.5], [0, 4.0, 1.5]]), {})
        draw_twice(device, pixels)
        device.finish(pixels)
    return frames


def draw(driver: FakeDriver) -> list[U8]:
    return draw_on(CudaDevice(driver))


def drawn_wrong(driver: FakeDriver) -> bool:
    return apart(draw(driver), draw_on(CpuDevice())) > 2


MASK = TensorSpec("mask", (1, 1, SIDE, SIDE), "float32")


def with_mask(target: F32, source: F32) -> tuple[F32, ...]:
    """A network: makes a picture and says where it is meant."""
    return (*swapped(target, source), np.full((1, 1, SIDE, SIDE), 0.25, np.float32))


def masked(run: Run) -> tuple[list[U8], list[NDArray[Any]]]:
    """Swap with a network whose mask is read in every frame; the frames and the masks."""
    engine = run.slotted((PICTURE, SOURCE), (MADE, MASK), with_mask)
    lane, frames, masks = run.device.lane(CropPlan("masked", PICTURE, 0), engine), film(4), list[NDArray[Any]]()
    for pixels in frames:
        run.device.begin(pixels)
        for face in range(2):
            where = similarity(1.1, 0.1, 4 + 30 * face, 3)
            lane.start(pixels, where, {"source": np.zeros((1, 4), np.float32)})
            masks.append(lane.outputs()[1].copy())
            shown = np.rint(oval() * masks[-1][0, 0].clip(0, 1)).astype(np.uint8)
            lane.paint(face, pixels, where, shown, GAIN, OFFSET)
        run.device.finish(pixels)
    return frames, masks
