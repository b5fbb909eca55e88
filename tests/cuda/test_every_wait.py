"""Every wait of the NVIDIA path is needed: without any one of them pictures are wrong, or right by luck alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engines.cuda.device import CudaDevice
from engines.errors import DeviceError
from realtime.types import U8
from tests.cuda.fake_driver import FakeDriver, Wait
from tests.cuda.fake_parts import OrderError
from tests.cuda.scene import Run, draw, draw_on, film, masked, on_gpu, similarity
from tests.kernels.host import HostKernels

pytestmark = pytest.mark.ordering
Results = list[NDArray[Any]]


def a_film(driver: FakeDriver) -> Results:
    """Two people, an enhancer and a detector, two frames in flight."""
    run = on_gpu(driver)
    return [*run.play(film(5), 2), *run.told, *run.tones]


def on_the_host(driver: FakeDriver) -> Results:
    """The same with networks of the host."""
    run = on_gpu(driver, hosted=True)
    return [*run.play(film(4), 2), *run.told, *run.tones]


def with_masks(driver: FakeDriver) -> Results:
    frames, masks = masked(on_gpu(driver))
    return [*frames, *masks]


def a_mesh(driver: FakeDriver) -> Results:
    return [*draw(driver)]


def a_mesh_and_a_look(driver: FakeDriver) -> Results:
    """A detector looks while a mesh is drawn."""
    run = on_gpu(driver)
    return [*draw_on(run.device, run.look)]


def nobody(driver: FakeDriver) -> Results:
    """Frames in which nothing is done."""
    device, frames = CudaDevice(driver), film(5)
    for pixels in frames:
        device.begin(pixels)
        device.finish(pixels)
    return [*frames]


def given_up(driver: FakeDriver) -> Results:
    """A swap and a look are begun, and nobody paints."""
    run, frames = on_gpu(driver), film(5)
    for pixels in frames:
        begin_only(run, pixels)
        run.device.finish(pixels)
    return [*frames]


def begin_only(run: Run, pixels: U8) -> None:
    run.device.begin(pixels)
    run.look.start(pixels, np.array([[4.0, 0, 1.5], [0, 4.0, 1.5]]), {})
    run.swap.start(pixels, similarity(1.1, 0, 3, 4), {"source": np.zeros((1, 4), np.float32)})


STAGES: tuple[Callable[[FakeDriver], Results], ...] = (
    a_film, on_the_host, with_masks, a_mesh, a_mesh_and_a_look, nobody, given_up,
)  # fmt: skip
WAITS: dict[Wait, Callable[[FakeDriver], Results]] = {
    ("CudaDevice.finish", "the host", "copy out"): a_film,
    ("CudaDevice.submit", "copy out", "blend"): a_film,
    ("CudaDevice.submit", "copy out", "copy in"): nobody,
    ("CudaDevice.submit", "copy out", "detect"): given_up,
    ("CudaDevice.submit", "copy out", "swap"): given_up,
    ("CudaLane.start", "detect", "copy in"): a_film,
    ("CudaLane.start", "swap", "copy in"): a_film,
    ("CudaLane.start", "swap", "blend"): a_film,
    ("CudaLane.tones", "the host", "swap"): a_film,
    ("Drawing.draw", "blend", "copy in"): a_mesh,
    ("HostedLane._run", "the host", "swap"): on_the_host,
    ("Slot.wait_for_readers", "blend", "detect"): a_mesh_and_a_look,
    ("Slot.wait_for_readers", "blend", "swap"): a_film,
    ("SlottedLane._read", "the host", "detect"): a_film,
    ("SlottedLane._read", "the host", "swap"): with_masks,
}
"""Who waits in which function for what another stream has recorded, and where it is missed."""


def test_no_wait_is_left_out_of_the_list(kernels: HostKernels) -> None:
    heard: set[Wait] = set()
    for stage in STAGES:
        driver = FakeDriver(kernels)
        stage(driver)
        heard |= driver.heard
    assert heard == WAITS.keys()


@pytest.mark.parametrize("wait", WAITS, ids=" ".join)
def test_without_it_the_film_is_wrong(kernels: HostKernels, wait: Wait) -> None:
    stage = WAITS[wait]
    right = stage(FakeDriver(kernels))
    try:
        made = stage(FakeDriver(kernels, deaf_to=wait))
    except (OrderError, DeviceError):
        return
    assert any(not np.array_equal(one, other) for one, other in zip(made, right, strict=True))
