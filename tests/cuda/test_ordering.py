"""The NVIDIA device on a driver that takes the side of bad luck: its pictures are the processor's."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

import numpy as np
import pytest

from engines.contract import CropPlan, Lane
from engines.cpu import CpuDevice
from engines.cuda.device import CudaDevice
from engines.cuda.drawing import MOST_CONSTANTS
from engines.errors import DeviceError, EngineError, OutOfMemoryError
from realtime.types import F32, U8
from tests.cuda.fake_driver import FakeDriver
from tests.cuda.fake_engine import FakeSlotted
from tests.cuda.fake_parts import FakeKernel, FakeMemory
from tests.cuda.scene import (
    GAIN,
    MADE,
    MESH,
    OFFSET,
    PICTURE,
    SIDE,
    SOURCE,
    TRIANGLES,
    Quiet,
    Silent,
    apart,
    attributes,
    draw,
    draw_twice,
    drawn_wrong,
    film,
    masked,
    on_cpu,
    on_gpu,
    oval,
    similarity,
    swapped,
)
from tests.kernels.host import HostKernels

pytestmark = pytest.mark.ordering
SEEDS = (None, 0, 1, 2)
WHERE = similarity(1.1, 0.2, 4, 3)
TEXTURES = film(6, (40, 40))
REFUSED = (2, 3, 4, 5)
"""Frames of a film in which something fails: each slot comes twice, with no other work in between."""


@pytest.fixture(scope="session")
def right() -> list[U8]:
    return on_cpu().play(film(8), 1)


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
    remark = "swapper runs without a CUDA graph: the stream cannot be captured"
    assert remark in run.device.remarks
    assert [said for report in run.reports for said in report.remarks].count(remark) == 1
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


def test_a_photo_is_worked_on_where_it_lies(kernels: HostKernels) -> None:
    run, reference = on_gpu(FakeDriver(kernels)), on_cpu()
    photos = film(2)[0], film(2)[0]
    for one, photo in zip((run, reference), photos, strict=True):
        one.look.start(photo, np.array([[4.0, 0, 1.5], [0, 4.0, 1.5]]), {})
        one.told.append(one.look.outputs()[0].copy())
        before, after = np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32)
        one.swap.start(photo, WHERE, {"source": np.zeros((1, 4), np.float32)})
        one.swap.tones(1, np.ones((SIDE // 4,) * 2, np.float32), before, after)
        one.swap.paint(1, photo, WHERE, oval(), GAIN, OFFSET)
        one.tones += [before, after]
    np.testing.assert_array_equal(*photos)
    np.testing.assert_array_equal(run.told, reference.told)
    np.testing.assert_array_equal(run.tones, reference.tones)
    assert apart([photos[0]], [film(2)[0]]) > 20


@pytest.mark.parametrize("hosted", [False, True])
def test_what_is_painted_into_a_view_is_painted_into_the_frame(kernels: HostKernels, hosted: bool) -> None:
    driver = FakeDriver(kernels)
    runs, made = (on_gpu(driver, hosted=hosted), on_cpu()), list[list[U8]]()
    for run in runs:
        frames = film(6)
        for pixels in frames:
            run.device.begin(pixels)
            part = pixels[20:56, 40:90]
            run.swap.start(part, WHERE, {"source": np.zeros((1, 4), np.float32)})
            run.swap.paint(1, part, WHERE, oval(), GAIN, OFFSET)
            assert not run.device.finish(pixels).failures
        made.append(frames)
    assert apart(*made) <= 1
    assert driver.graphs == 0  # a graph keeps the address that it reads


def test_a_mask_that_a_network_makes_is_read_before_its_picture_is_painted(kernels: HostKernels) -> None:
    right, _ = masked(on_cpu())
    for hosted in (False, True):
        made, masks = masked(on_gpu(FakeDriver(kernels), hosted=hosted))
        assert apart(made, right) <= 1
        np.testing.assert_allclose(masks, 0.25, atol=0.01)


def test_what_an_engine_refuses_spoils_no_other_frame(kernels: HostKernels) -> None:
    right = on_cpu(faces=1).play(film(8), 1)
    run = on_gpu(FakeDriver(kernels), faces=1)
    frames, engine = film(8), cast(Any, run.swap).engine
    for number, pixels in enumerate(frames):
        engine.fails = number in REFUSED
        if engine.fails:
            with pytest.raises(EngineError, match="refused"):
                run.begin(number, pixels)
        else:
            run.begin(number, pixels)
        run.device.finish(pixels)
    assert apart(frames[:2] + frames[6:], right[:2] + right[6:]) <= 2
    np.testing.assert_array_equal(frames[2:6], film(8)[2:6])


def test_a_frame_is_taken_up_once_and_painted_only_before_it_is_finished(kernels: HostKernels) -> None:
    run, pixels = on_gpu(FakeDriver(kernels)), film(1)[0]
    run.device.begin(pixels)
    with pytest.raises(DeviceError, match="in flight already"):
        run.device.begin(pixels)
    run.swap.start(pixels, WHERE, {"source": np.zeros((1, 4), np.float32)})
    run.device.finish(pixels)
    run.device.begin(pixels)
    run.device.begin(film(1)[0])  # and now its place is another's
    with pytest.raises(DeviceError, match="finished"):
        run.swap.paint(1, pixels, WHERE, oval(), GAIN, OFFSET)


def test_frames_may_be_finished_in_any_order(kernels: HostKernels) -> None:
    device, pictures = CudaDevice(FakeDriver(kernels)), film(4)
    device.begin(pictures[0])
    for before, pixels in pairwise(pictures[1:]):
        device.begin(before)
        device.finish(before)
        device.begin(pixels)
        device.finish(pixels)


def test_what_breaks_off_half_way_leaves_no_work_behind(kernels: HostKernels, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, frames = FakeDriver(kernels), film(8)
    device, real = CudaDevice(driver), driver.kernel

    def kernel(file: str, name: str) -> FakeKernel:
        if name == "mesh_paint":
            raise DeviceError("it does not compile", "report this as a bug")
        return real(file, name)

    for number, pixels in enumerate(frames):
        device.begin(pixels)
        with monkeypatch.context() as patch:
            if number in REFUSED:
                patch.setattr(driver, "kernel", kernel)
                with pytest.raises(DeviceError, match="compile"):
                    draw_twice(device, pixels)
            else:
                draw_twice(device, pixels)
        device.finish(pixels)
    assert apart(frames[2:6], film(8)[2:6]) == 0
    assert apart(frames[6:], film(8)[6:]) > 20


def test_a_device_that_does_not_open_leaves_nothing_open(kernels: HostKernels) -> None:
    class Poor(FakeDriver):
        def pinned(self, nbytes: int, what: str) -> FakeMemory:
            if "frame 1" in what:
                raise OutOfMemoryError("no pinned memory", "close other programs")
            return super().pinned(nbytes, what)

    driver = Poor(kernels)
    with pytest.raises(OutOfMemoryError):
        CudaDevice(driver)
    assert driver.closed
    assert not driver.forgotten


def test_a_lane_is_closed_only_when_nothing_uses_its_memory(kernels: HostKernels) -> None:
    driver = FakeDriver(kernels)
    run, frames = on_gpu(driver), film(2)
    assert isinstance(run.device, CudaDevice)
    right = on_cpu().play(film(1), 1)
    run.begin(0, frames[0])
    for lane in (run.swap, run.finer, run.look):
        lane.close()
        lane.close()
    run.device.finish(frames[0])
    assert apart(frames[:1], right) <= 3
    assert run.device.lanes == []
    assert not any("swapper" in what for _, what, _ in driver.lines)


def test_the_time_of_each_step_is_told(kernels: HostKernels) -> None:
    run = on_gpu(FakeDriver(kernels))
    run.play(film(2), 1)
    assert list(run.reports[0].laps_ms) == ["copy in", "detect", "swap", "blend", "copy out"]
    assert all(ms > 0 for ms in run.reports[0].laps_ms.values())
    pixels = film(1)[0]
    run.device.begin(pixels)
    assert list(run.device.finish(pixels).laps_ms) == ["copy in"]


def test_meshes_of_any_size_and_number_are_drawn(kernels: HostKernels) -> None:
    driver, made = FakeDriver(kernels), list[list[U8]]()
    for device in (CudaDevice(driver), CpuDevice()):
        frames = film(4)
        for pixels in frames:
            device.begin(pixels)
            for number, side in enumerate((8, 24, 8, 16)):
                part = pixels[10:50, 20 - number : 70]
                opacity = np.full((side, side, 2), 0.8, np.float32)
                device.draw(part, MESH, attributes(), TRIANGLES, TEXTURES[number], opacity)
                device.draw(part, MESH, attributes(), TRIANGLES, TEXTURES[number][:30, :30], opacity)
            device.finish(pixels)
        made.append(frames)
    assert apart(*made) <= 4  # eight meshes, one over the other
    constants = [what for where, what, _ in driver.lines if where == "device" and what == "constant of a mesh"]
    assert len(constants) == MOST_CONSTANTS


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
    assert not driver.forgotten
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
