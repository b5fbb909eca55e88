"""The engine on TensorRT in lanes of the NVIDIA device: pictures are those that the processor makes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("onnx", reason="the tests build networks with onnx, which is in the extra dev")

from engines.contract import CropPlan, Device, Engine
from engines.cpu import CpuDevice
from engines.cuda.device import CudaDevice
from engines.onnxrt import OnnxRuntimeEngine
from engines.tensorrt.engine import TensorRtEngine
from tests.cards import Net
from tests.cuda.fake_driver import FakeDriver
from tests.kernels.host import HostKernels
from tests.trt.plans import built, gpu, inputs, swapper, trt_on

pytestmark = pytest.mark.trt_api
FRAMES, PEOPLE = 8, 2


def play(device: Device, net: Net, engine: Engine, seal: FakeDriver | None = None) -> list[NDArray[np.uint8]]:
    """Swap two people in a film, two frames in flight; from the fifth on nothing may be allocated."""
    plan = CropPlan("swapper", net.card.inputs[0], 0, least_range=0.0)
    lane = device.lane(plan, engine)
    rng = np.random.default_rng(1)
    frames = [np.ascontiguousarray(rng.integers(0, 256, (64, 96, 3), np.uint8)) for _ in range(FRAMES)]
    opacity = np.zeros((32, 32), np.uint8)
    opacity[2:-2, 2:-2] = 255
    gain, offset = np.ones(3, np.float32), np.zeros(3, np.float32)
    identities = [inputs(net, 20 + number)[1] for number in range(PEOPLE)]
    before: NDArray[np.uint8] | None = None
    for number, pixels in enumerate(frames):
        if seal and number == 4:
            seal.sealed = True
        device.begin(pixels)
        for who in range(PEOPLE):
            where = np.array([[1.0, 0.1, 3 + 40 * who], [-0.1, 1.0, 12 + number]])
            lane.start(pixels, where, {"source": identities[(who + number // 3) % PEOPLE]})
            lane.paint(who, pixels, where, opacity, gain, offset)
        device.submit(pixels)
        if before is not None:
            assert not device.finish(before).failures
        before = pixels
    assert before is not None
    device.finish(before)
    return frames


@contextmanager
def on_gpu(kernels: HostKernels, net: Net, seed: int | None) -> Iterator[tuple[CudaDevice, TensorRtEngine, FakeDriver]]:
    with ExitStack() as stack:
        driver = gpu(seed, kernels)
        device = CudaDevice(driver)
        stack.callback(device.close)
        engine = TensorRtEngine(net.card, built(net).path, driver, trt=cast(Any, trt_on(driver)))
        stack.callback(engine.close)
        yield device, engine, driver


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_a_film_of_two_people_is_as_the_processor_makes_it(
    kernels: HostKernels, tmp_path: Any, seed: int | None
) -> None:
    net = swapper()
    path = tmp_path / "swapper.onnx"
    path.write_bytes(net.model.SerializeToString())
    expected = play(CpuDevice(), net, OnnxRuntimeEngine(net.card, path))
    with on_gpu(kernels, net, seed) as (device, engine, driver):
        made = play(device, net, engine, driver)
        assert driver.graphs == 2  # one for each slot: cut and run
        assert device.remarks == []
        driver.sealed = False
    for one, other in zip(made, expected, strict=True):
        assert np.abs(one.astype(int) - other).max() <= 2  # two pastes, each within one


def test_a_run_that_cannot_be_captured_goes_on_without_a_graph(kernels: HostKernels) -> None:
    net = swapper()
    with on_gpu(kernels, net, None) as (device, engine, driver):
        driver.capture_fails = True
        play(device, net, engine)
        assert driver.graphs == 0
        assert "runs without a CUDA graph" in device.remarks[0]
