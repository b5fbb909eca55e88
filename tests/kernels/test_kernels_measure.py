"""The measuring kernels against the processor's device, built by g++ and run on the memory of the host."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from engines.contract import TONE_STEP, TensorSpec
from realtime.types import F32
from tests.kernels import runs
from tests.kernels.host import HostKernels
from tests.kernels.material import DEVICE, RGB01, SPECS, sized, values
from tests.kernels.runs import NO_GAIN, NO_OFFSET

pytestmark = pytest.mark.kernels_host
WEIGHT = np.random.default_rng(3).uniform(0, 1, (-(-64 // TONE_STEP),) * 2).astype(np.float32)


def made(spec: TensorSpec, seed: int = 5) -> F32:
    """What a network might make: beyond the range here and there."""
    return values(np.random.default_rng(seed).normal(120, 70, spec.shape), spec)


@pytest.mark.parametrize("side", [64, 61])
@pytest.mark.parametrize("tiles", [1, 2, 3])
@pytest.mark.parametrize(
    ("given", "after"), [("NCHW RGB", "NCHW RGB"), ("NHWC BGR", "NHWC BGR"), ("NCHW RGB", "NHWC BGR")]
)
def test_tone_and_range_are_the_processors(kernels: HostKernels, side: int, tiles: int, given: str, after: str) -> None:
    specs = sized(SPECS[given], tiles, side), sized(SPECS[after], tiles, side)
    tensors = made(specs[0], 1), made(specs[1], 2)
    result = runs.measure(kernels, *tensors, *specs, WEIGHT)[0]
    for spec, tensor, name in zip(specs, tensors, ("before", "after"), strict=True):
        right = np.zeros((2, 3), np.float32)
        DEVICE.tone(tensor, spec, WEIGHT, right)
        np.testing.assert_allclose(result[name].reshape(2, 3), right, rtol=1e-4, atol=1e-2)
    patch = np.zeros((side * tiles, side * tiles, 4), np.uint8)
    ends = DEVICE.develop(tensors[1], specs[1], NO_GAIN, NO_OFFSET, patch)
    np.testing.assert_allclose((result["low"], result["high"]), ends, rtol=1e-5, atol=1e-3)


def test_half_precision_is_measured_too(kernels: HostKernels) -> None:
    output, spec = made(RGB01), replace(RGB01, dtype="float16")
    half = output.astype(np.float16)
    result, right = runs.measure(kernels, half, half, spec, spec, WEIGHT)[0], np.zeros((2, 3), np.float32)
    DEVICE.tone(output, RGB01, WEIGHT, right)
    np.testing.assert_allclose(result["after"].reshape(2, 3), right, atol=0.1)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_no_number_is_found_wherever_it_is(kernels: HostKernels, bad: float, dtype: str) -> None:
    spec = replace(RGB01, dtype=dtype)
    for place in (0, 12_287, 5_000):
        output = made(RGB01).astype(dtype)
        output.reshape(-1)[place] = bad
        result = runs.measure(kernels, output, output, spec, spec, WEIGHT)[0]
        assert np.isnan(result["low"])
        assert np.isnan(result["high"])


def test_several_threads_may_launch_at_the_same_time(kernels: HostKernels) -> None:
    outputs = [made(RGB01, seed) for seed in range(4)]
    alone = [runs.measure(kernels, output, output, RGB01, RGB01, WEIGHT) for output in outputs]
    with ThreadPoolExecutor(4) as threads:
        for _ in range(3):
            together = threads.map(lambda output: runs.measure(kernels, output, output, RGB01, RGB01, WEIGHT), outputs)
            for one, other in zip(alone, together, strict=True):
                assert one.tobytes() == other.tobytes()
