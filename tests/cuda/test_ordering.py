"""The NVIDIA device on a driver that takes the side of bad luck: right pictures, and every wait is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from engines.contract import CropPlan, Device, Engine, Failure, Lane, Report, TensorSpec
from engines.cpu import CpuDevice
from engines.cuda.device import CudaDevice
from engines.cuda.driver import OutOfMemoryError
from engines.errors import DeviceError
from realtime.types import F32, F64, U8
from tests.cuda.fake_driver import FakeDriver, OrderError
from tests.cuda.fake_engine import FakeSlotted, HostFunction
from tests.kernels.host import HostKernels

pytestmark = pytest.mark.ordering
SIDE = 32
PICTURE = TensorSpec("target", (1, 3, SIDE, SIDE), "float32", "NCHW", "RGB", (0.0,) * 3, (1 / 255,) * 3)
MADE = TensorSpec("made", (1, 3, SIDE, SIDE), "float32", "NCHW", "RGB", (0.0,) * 3, (1 / 255,) * 3)
SOURCE = TensorSpec("source", (1, 4), "float32")
LOOK = TensorSpec("look", (1, 3, 16, 24), "float32", "NCHW", "BGR", (127.5,) * 3, (1 / 128,) * 3)
SEEN = TensorSpec("seen", (1, 6), "float32")
GAIN, OFFSET = np.array([1.1, 0.9, 1.0], np.float32), np.array([3, -2, 5], np.float32)
SEEDS = (None, 0, 1, 2)


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


@pytest.fixture(scope="session")
def right() -> list[U8]:
    return on_cpu().play(film(8), 1)


def apart(one: list[U8], other: list[U8]) -> int:
    return max(int(np.abs(a.astype(int) - b).max()) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("hosted", [False, True])
@pytest.mark.parametrize("in_flight", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_pictures_are_the_processors(
    kernels: HostKernels, right: list[U8], in_flight: int, seed: int | None, hosted: bool
) -> None:
    driver = FakeDriver(kernels, seed)
    run = on_gpu(driver, hosted=hosted)
    made = run.play(film(8), in_flight)
    assert apart(made, right) <= 3  # four pastes, one over the other, each within one
    assert np.mean([np.abs(a.astype(int) - b).mean() for a, b in zip(made, right, strict=True)]) < 0.1
    reference = on_cpu()
    reference.play(film(8), 1)
    np.testing.assert_allclose(run.told, reference.told, atol=0.01)
    assert not any(report.failures for report in run.reports)
    if not hosted:
        assert driver.graphs == 2 * 3  # one for each lane and slot


def test_a_frame_is_waited_for_once(kernels: HostKernels) -> None:
    driver = FakeDriver(kernels)
    run = on_gpu(driver)
    run.look = cast(Lane, Silent())
    run.play(film(4), 1)
    before = driver.waits
    run.play(film(4), 1)
    assert driver.waits - before == 4


class Silent:
    """A detector that looks at nothing in this frame."""

    def start(self, *_: Any) -> None:
        pass

    def outputs(self) -> tuple[NDArray[Any], ...]:
        return (np.zeros(1),)


def wait_sites(kernels: HostKernels) -> set[str]:
    driver, other = FakeDriver(kernels), FakeDriver(kernels)
    on_gpu(driver).play(film(8), 2)
    draw(other)
    return driver.wait_sites | other.wait_sites


def test_every_wait_between_streams_is_needed(kernels: HostKernels, right: list[U8]) -> None:
    sites = wait_sites(kernels)
    assert len(sites) >= 5
    unneeded = [site for site in sorted(sites) if not is_missed(kernels, right, site)]
    assert not unneeded


def is_missed(kernels: HostKernels, right: list[U8], site: str) -> bool:
    """Whether leaving out the waits of one place of the program is noticed under any policy."""
    for in_flight in (1, 2):
        for seed in SEEDS:
            try:
                driver = FakeDriver(kernels, seed, deaf_to=site)
                run = on_gpu(driver)
                if apart(run.play(film(8), in_flight), right) > 3:
                    return True
                reference = on_cpu()
                reference.play(film(8), 1)
                if not np.allclose(run.told, reference.told, atol=0.01):
                    return True
                if drawn_wrong(FakeDriver(kernels, seed, deaf_to=site)):
                    return True
            except (OrderError, DeviceError, ValueError):
                return True
    return False


MESH = np.array([[2, 2, 0], [30, 4, 3], [6, 28, 1], [28, 27, -2]], np.float32)
TRIANGLES = np.array([[0, 1, 2], [1, 3, 2]], np.int32)
TEXTURE = film(1, (40, 40))[0]


def attributes() -> F32:
    values = np.zeros((4, 8), np.float32)
    values[:, :2] = [[0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.9]]
    values[:, 2], values[:, 5:] = 0.9, 1.1
    return values


def draw_on(device: Device) -> list[U8]:
    frames = film(4)
    for pixels in frames:
        device.begin(pixels)
        part = pixels[10:50, 20:70]
        opacity = np.ones((8, 8, 2), np.float32)
        for _ in range(2):
            device.draw(part, MESH, attributes(), TRIANGLES, TEXTURE, opacity)
        device.finish(pixels)
    return frames


def draw(driver: FakeDriver) -> list[U8]:
    return draw_on(CudaDevice(driver))


def drawn_wrong(driver: FakeDriver) -> bool:
    return apart(draw(driver), draw_on(CpuDevice())) > 2


@pytest.mark.parametrize("seed", SEEDS)
def test_a_mesh_is_drawn_into_the_frame(kernels: HostKernels, seed: int | None) -> None:
    assert not drawn_wrong(FakeDriver(kernels, seed))
    assert apart(draw(FakeDriver(kernels, seed)), film(4)) > 20


def nothing(target: F32, source: F32) -> tuple[F32, ...]:
    """A network that makes no picture when it is told 1."""
    return (np.full_like(target, np.nan) if source[0, 0] == 1 else swapped(target, source)[0],)


def test_what_is_no_picture_is_told_when_the_frame_is_finished(kernels: HostKernels) -> None:
    run = on_gpu(FakeDriver(kernels), faces=1, network=nothing)
    pictures = film(6)
    run.finer = cast(Lane, Quiet())
    made = run.play(pictures, 2)
    failures = [[(f.who, f.bares, f.error.message) for f in report.failures] for report in run.reports]
    bad = [(0, True, "swapper made values that are no numbers")]
    assert failures == [[], bad, [], [], bad, []]
    for number, (before, after) in enumerate(zip(pictures, made, strict=True)):
        assert np.array_equal(before, after) == (number % 3 == 1)


class Quiet(Silent):
    def paint(self, *_: Any) -> None:
        pass


def test_a_person_who_is_known_is_not_waited_for_and_a_failure_is_not_remembered(kernels: HostKernels) -> None:
    run, reference = on_gpu(FakeDriver(kernels), faces=1), on_cpu(faces=1)
    run.finer = reference.finer = cast(Lane, Quiet())
    run.play(film(6), 1)
    reference.play(film(6), 1)
    np.testing.assert_allclose(run.tones[:2], reference.tones[:2], atol=0.6)  # the first frame is waited for
    np.testing.assert_allclose(run.tones[4:], reference.tones[2:-2], atol=0.6)  # then they are a frame late
    bad = on_gpu(FakeDriver(kernels), faces=1, network=nothing)
    bad.finer = cast(Lane, Quiet())
    bad.play(film(6), 1)
    assert np.isfinite(bad.tones).all()


def test_a_graph_that_cannot_be_captured_is_said_and_costs_no_picture(kernels: HostKernels, right: list[U8]) -> None:
    driver = FakeDriver(kernels, capture_fails=True)
    run = on_gpu(driver)
    assert apart(run.play(film(8), 2), right) <= 3
    assert isinstance(run.device, CudaDevice)
    assert "swapper runs without a CUDA graph: the stream cannot be captured" in run.device.remarks
    assert driver.graphs == 0


def test_a_third_frame_is_refused_and_a_finished_one_makes_room(kernels: HostKernels) -> None:
    device, pictures = CudaDevice(FakeDriver(kernels)), film(3)
    device.begin(pictures[0])
    device.begin(pictures[1])
    with pytest.raises(DeviceError, match="in flight already"):
        device.begin(pictures[2])
    device.finish(pictures[0])
    device.begin(pictures[2])


def test_frames_of_another_size_are_taken_up(kernels: HostKernels) -> None:
    run, reference = on_gpu(FakeDriver(kernels)), on_cpu()
    run.sealed = lambda: None
    for size in ((96, 64), (128, 72), (96, 64)):
        assert apart(run.play(film(3, size), 2), reference.play(film(3, size), 1)) <= 3


def test_a_photo_is_looked_at_without_being_a_frame(kernels: HostKernels) -> None:
    run, reference, photo = on_gpu(FakeDriver(kernels)), on_cpu(), film(1)[0]
    for one in (run, reference):
        one.look.start(photo, np.array([[4.0, 0, 1.5], [0, 4.0, 1.5]]), {})
    np.testing.assert_allclose(run.look.outputs()[0], reference.look.outputs()[0], atol=1e-6)
    run.swap.start(photo, np.eye(2, 3), {"source": np.zeros((1, 4), np.float32)})
    with pytest.raises(DeviceError, match="begun"):
        run.swap.paint(1, photo, np.eye(2, 3), oval(), GAIN, OFFSET)


def test_everything_is_freed_and_closing_twice_is_safe(kernels: HostKernels) -> None:
    driver = FakeDriver(kernels)
    run = on_gpu(driver)
    run.play(film(6), 2)
    draw_device = run.device
    assert isinstance(draw_device, CudaDevice)
    table = draw_device.memory()
    assert {where for where, _, _ in table} == {"device", "pinned"}
    assert any("opacity" in what for _, what, _ in table)
    run.device.close()
    run.device.close()
    assert not driver.lines
    assert driver.closed


def test_no_memory_leaves_nothing_half_made(kernels: HostKernels) -> None:
    driver = FakeDriver(kernels, memory_bytes=40_000)
    device = CudaDevice(driver)
    before = list(driver.lines)
    plan = CropPlan("swapper", PICTURE, 0)
    with pytest.raises(OutOfMemoryError):
        device.lane(plan, FakeSlotted(driver, (PICTURE, SOURCE), (MADE,), swapped))
    assert driver.lines == before
    with pytest.raises(OutOfMemoryError):
        device.begin(film(1, (640, 480))[0])
    assert driver.lines == before


@pytest.fixture
def tight(kernels: HostKernels) -> FakeDriver:
    return FakeDriver(kernels)


def test_allocating_within_the_loop_is_noticed(tight: FakeDriver) -> None:
    run = on_gpu(tight)
    run.play(film(4), 1)
    tight.sealed = True
    with pytest.raises(OrderError, match="within the loop"):
        run.device.begin(film(1, (128, 72))[0])


def test_waiting_within_a_capture_is_noticed(tight: FakeDriver) -> None:
    stream, event = tight.stream("s"), tight.event()
    stream.record(event)
    with pytest.raises(DeviceError, match="capturing"), tight.capture(stream):
        event.wait()


def test_writing_to_pinned_memory_under_a_copy_is_noticed(tight: FakeDriver) -> None:
    stream, event = tight.stream("s"), tight.event()
    pinned, buffer = tight.pinned(8, "a"), tight.buffer(8, "b")
    tight.copy_in(buffer.address, pinned.array, stream)
    stream.record(event)
    pinned.array[:] = 1
    with pytest.raises(OrderError, match="pinned"):
        event.wait()


def test_failures_are_told_of_the_face_that_they_are_of() -> None:
    failure = Failure(3, DeviceError("x", "y"), True)  # type: ignore[arg-type]  # any error will do
    assert Report((failure,)).failures[0].who == 3
