"""The NVIDIA device where something goes wrong: a GPU that fails, one that is closed too early, work it cannot do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engines.contract import CropPlan, Lane
from engines.errors import DeviceError
from realtime.types import U8
from tests.cuda.fake_driver import FakeDriver
from tests.cuda.scene import (
    GAIN,
    MADE,
    MESH,
    OFFSET,
    PICTURE,
    SIDE,
    SOURCE,
    TEXTURE,
    TRIANGLES,
    Run,
    apart,
    attributes,
    draw_twice,
    film,
    on_cpu,
    on_gpu,
    oval,
    similarity,
    swapped,
)
from tests.kernels.host import HostKernels

pytestmark = pytest.mark.ordering
WHERE = similarity(1.1, 0.2, 4, 3)
OTHERS = {"source": np.zeros((1, 4), np.float32)}
WEIGHT = np.ones((SIDE // 4,) * 2, np.float32)


def paint(lane: Lane, pixels: U8, where: Any = WHERE) -> None:
    lane.start(pixels, where, OTHERS)
    lane.paint(1, pixels, where, oval(), GAIN, OFFSET)


def in_turns(run: Run) -> list[U8]:
    """Two swappers of one network, one for each of two people, as with two source faces."""
    engine = run.slotted((PICTURE, SOURCE), (MADE,), swapped)
    lanes = [run.device.lane(CropPlan("swapper", PICTURE, 0), engine) for _ in range(2)]
    frames = film(8)
    for pixels in frames:
        run.device.begin(pixels)
        for who, lane in enumerate(lanes):
            where = similarity(1.1, 0.2 * who, 4 + 40 * who, 3)
            lane.start(pixels, where, {"source": np.full((1, 4), who, np.float32)})
            lane.paint(who, pixels, where, oval(), GAIN, OFFSET)
        assert not run.device.finish(pixels).failures
    return frames


@pytest.mark.parametrize("hosted", [False, True])
def test_two_swappers_of_one_network_do_not_spoil_each_others_faces(kernels: HostKernels, hosted: bool) -> None:
    assert apart(in_turns(on_gpu(FakeDriver(kernels), hosted=hosted)), in_turns(on_cpu())) <= 2


def test_a_network_is_in_one_plan_at_a_time(kernels: HostKernels) -> None:
    run = on_gpu(FakeDriver(kernels))
    engine, plan = run.slotted((PICTURE, SOURCE), (MADE,), swapped), CropPlan("swapper", PICTURE, 0)
    lane = run.device.lane(plan, engine)
    assert run.device.lane(plan, engine) is lane
    with pytest.raises(DeviceError, match="swapper is in use"):
        run.device.lane(CropPlan("another", PICTURE), engine)
    lane.close()
    assert run.device.lane(CropPlan("another", PICTURE), engine) is not lane


def test_what_is_under_way_ends_before_a_device_is_closed(kernels: HostKernels) -> None:
    driver, frames = FakeDriver(kernels), film(3)
    run = on_gpu(driver)
    run.begin(0, frames[0])
    run.device.begin(frames[1])  # only sent up
    run.device.close()
    assert driver.closed
    assert not driver.forgotten
    assert not any(stream.ran < len(stream.given) for stream in driver.streams)


def test_a_frame_in_flight_is_not_taken_for_painted_once_the_device_is_closed(kernels: HostKernels) -> None:
    run, pixels = on_gpu(FakeDriver(kernels)), film(1)[0]
    run.begin(0, pixels)
    run.device.close()
    for give_back in (run.device.submit, run.device.finish):
        with pytest.raises(DeviceError, match="closed"):
            give_back(pixels)


AFTER: dict[str, Callable[[Run, U8], object]] = {
    "begin": lambda run, pixels: run.device.begin(pixels),
    "lane": lambda run, _: run.device.lane(CropPlan("swapper", PICTURE, 0), run.slotted((PICTURE,), (MADE,), swapped)),
    "start": lambda run, pixels: run.swap.start(pixels, WHERE, OTHERS),
}


@pytest.mark.parametrize("call", AFTER)
def test_a_closed_device_says_so(kernels: HostKernels, call: str) -> None:
    run, pixels = on_gpu(FakeDriver(kernels)), film(1)[0]
    run.device.close()
    with pytest.raises(DeviceError, match="is closed"):
        AFTER[call](run, pixels)


def test_a_closed_lane_says_so(kernels: HostKernels) -> None:
    run, pixels = on_gpu(FakeDriver(kernels)), film(1)[0]
    run.device.begin(pixels)
    run.swap.start(pixels, WHERE, OTHERS)
    run.swap.close()
    for use in (
        lambda: run.swap.start(pixels, WHERE, OTHERS),
        run.swap.outputs,
        lambda: run.swap.paint(1, pixels, WHERE, oval(), GAIN, OFFSET),
    ):
        with pytest.raises(DeviceError, match="the lane of swapper is closed"):
            use()


def test_a_gpu_that_has_failed_takes_no_frame_and_is_closed_whole(kernels: HostKernels) -> None:
    driver, frames = FakeDriver(kernels), film(3)
    run = on_gpu(driver)
    run.begin(0, frames[0])
    run.device.begin(frames[1])
    draw_twice(run.device, frames[1])
    driver.dead = True
    for attempt in (
        lambda: run.swap.start(frames[1], WHERE, OTHERS),
        lambda: run.device.finish(frames[0]),
        lambda: run.device.finish(frames[1]),
        lambda: run.begin(2, frames[2]),
    ):
        with pytest.raises(DeviceError, match="illegal memory access") as told:
            attempt()
        assert "start the program again" in told.value.hint
    assert apart(frames, film(3)) == 0
    run.swap.close()
    run.device.close()
    assert driver.closed
    assert not driver.forgotten


def test_a_picture_that_did_not_come_back_is_not_replaced_by_an_older_one(
    kernels: HostKernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is refused once may be refused for good or not: in either case nothing of it is left behind."""
    driver, frames = FakeDriver(kernels), film(8)
    run = on_gpu(driver)
    lane = run.swap
    right = on_cpu()

    def refuse(*_: Any) -> None:
        raise DeviceError("the GPU failed at copying a picture from it", "try again")

    for number, pixels in enumerate(frames):
        run.device.begin(pixels)
        paint(lane, pixels)
        with monkeypatch.context() as patched:
            if number in (2, 3, 4):
                patched.setattr(driver, "copy_rows_out", refuse)
                with pytest.raises(DeviceError, match="copying a picture"):
                    run.device.submit(pixels)
            if number == 4:
                with pytest.raises(DeviceError, match="copying a picture"):
                    run.device.finish(pixels)
        run.device.finish(pixels)
    expected = film(8)
    for number, pixels in enumerate(expected):
        if number != 4:
            paint(right.swap, pixels)
    assert apart(frames, expected) <= 1


ODD_VIEWS: dict[str, Callable[[U8], U8]] = {
    "mirrored": lambda pixels: pixels[:, ::-1],
    "upside down": lambda pixels: pixels[::-1],
    "every other row": lambda pixels: pixels[::2],
    "every other column": lambda pixels: pixels[:, ::2],
    "red first": lambda pixels: pixels[..., ::-1],
    "turned": lambda pixels: pixels.transpose(1, 0, 2),
    "folded": lambda pixels: pixels.reshape(pixels.shape[0] // 2, -1, 3),
    "one channel": lambda pixels: pixels[..., :1],
    "flat": lambda pixels: pixels[..., 0],
}


@pytest.mark.parametrize("what", ODD_VIEWS)
def test_a_view_that_is_no_rectangle_of_its_frame_is_refused(kernels: HostKernels, what: str) -> None:
    run, pixels = on_gpu(FakeDriver(kernels)), film(1)[0]
    run.device.begin(pixels)
    odd = ODD_VIEWS[what](pixels)
    works: tuple[Callable[[], object], ...] = (
        lambda: run.swap.start(odd, WHERE, OTHERS),
        lambda: run.device.draw(odd, MESH, attributes(), TRIANGLES, TEXTURE, np.ones((8, 8, 2), np.float32)),
    )
    for work in works:
        with pytest.raises(DeviceError, match="no rectangle of its frame"):
            work()
    run.device.finish(pixels)
    np.testing.assert_array_equal(pixels, film(1)[0])


def test_rectangles_of_a_frame_are_taken_however_small(kernels: HostKernels) -> None:
    frames = film(3)[0], film(3)[0]
    for run, pixels in zip((on_gpu(FakeDriver(kernels)), on_cpu()), frames, strict=True):
        engine, device = run.slotted((PICTURE, SOURCE), (MADE,), swapped), run.device
        lane = device.lane(CropPlan("swapper", PICTURE, 0, least_range=0.0), engine)  # what it sees may be black
        device.begin(pixels)
        for part in (pixels[5:6], pixels[:, 7:8], pixels[40:], pixels[:, :50]):
            paint(lane, part)
        device.finish(pixels)
    assert apart([frames[0]], [frames[1]]) <= 3


def test_a_frame_on_its_way_back_is_not_worked_on(kernels: HostKernels) -> None:
    run, frames = on_gpu(FakeDriver(kernels)), film(1)
    run.device.begin(frames[0])
    run.swap.start(frames[0], WHERE, OTHERS)
    run.device.submit(frames[0])
    works: tuple[Callable[[], object], ...] = (
        lambda: run.swap.start(frames[0], WHERE, OTHERS),
        lambda: run.swap.paint(1, frames[0], WHERE, oval(), GAIN, OFFSET),
        lambda: draw_twice(run.device, frames[0]),
    )
    for work in works:
        with pytest.raises(DeviceError, match="on its way back"):
            work()
    run.device.finish(frames[0])
    assert apart(frames, film(1)) == 0


def test_tones_that_nobody_measured_are_not_remembered(kernels: HostKernels) -> None:
    run, right = on_gpu(FakeDriver(kernels)), on_cpu()
    found: list[Any] = []
    for one in (run, right):
        pixels = film(4)[0]
        for number in range(4):
            frame = pixels.copy()
            one.device.begin(frame)
            one.swap.start(frame, WHERE, OTHERS)
            if number == 3:  # after three that were painted without
                before, after = np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32)
                one.swap.tones(1, WEIGHT, before, after)
                found.append((before, after))
            one.swap.paint(1, frame, WHERE, oval(), GAIN, OFFSET)
            one.device.finish(frame)
    np.testing.assert_allclose(found[0], found[1], atol=0.6)


@pytest.mark.parametrize("hosted", [False, True])
def test_how_flat_a_picture_is_nobody_asks_where_nobody_measured(kernels: HostKernels, hosted: bool) -> None:
    run, pixels = on_gpu(FakeDriver(kernels), hosted=hosted), film(1)[0]
    lane = run.device.lane(
        CropPlan("swapper", PICTURE, 0, least_deviation=1.0), run.slotted((PICTURE, SOURCE), (MADE,), swapped)
    )
    run.device.begin(pixels)
    paint(lane, pixels)
    assert not run.device.finish(pixels).failures
