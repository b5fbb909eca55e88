"""Developing and toning against plain numpy, written the long way; every layout, order of channels and tiling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from engines.contract import Colour, Layout, TensorSpec
from engines.cpu import CpuDevice

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
U8 = NDArray[np.uint8]

MEAN, SCALE = (10.0, 127.5, 0.0), (1 / 64, 1 / 127.5, 1 / 255)
NO_GAIN, NO_OFFSET = np.ones(3, np.float32), np.zeros(3, np.float32)


@dataclass
class Output:
    """What an engine gives, and the same as grey levels in the order blue, green, red."""

    tensor: F32
    spec: TensorSpec
    levels: F64

    @property
    def patch(self) -> U8:
        """Grey, with every opacity there is."""
        tiles, height, width = self.levels.shape[:3]
        shape = (round(tiles**0.5) * height, round(tiles**0.5) * width, 4)
        return np.arange(np.prod(shape), dtype=np.uint32).astype(np.uint8).reshape(shape)


@st.composite
def outputs(draw: st.DrawFn) -> Output:
    tiles, height, width = draw(st.sampled_from([1, 4, 9])), draw(st.integers(1, 21)), draw(st.integers(1, 40))
    layout: Layout = draw(st.sampled_from(["NCHW", "NHWC"]))
    colour: Colour = draw(st.sampled_from(["RGB", "BGR"]))
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    return an_output(random.uniform(-80, 330, (tiles, height, width, 3)), layout, colour)


def an_output(levels: F64, layout: Layout, colour: Colour) -> Output:
    """The tensor that shows these grey levels, (tiles, h, w, 3) in the order blue, green, red."""
    ordered = levels[..., ::-1] if colour == "RGB" else levels
    tensor = ((ordered - np.array(MEAN)) * np.array(SCALE)).astype(np.float32)
    if layout == "NCHW":
        tensor = tensor.transpose(0, 3, 1, 2)
    tensor = np.ascontiguousarray(tensor)
    return Output(tensor, TensorSpec("out", tensor.shape, "float32", layout, colour, MEAN, SCALE), levels)


def woven(levels: F64) -> F64:
    """One picture out of its tiles, pixel by pixel."""
    tiles, height, width, _ = levels.shape
    k = round(tiles**0.5)
    out = np.empty((k * height, k * width, 3))
    for y in range(k * height):
        for x in range(k * width):
            out[y, x] = levels[(y % k) * k + x % k, y // k, x // k]
    return out


@given(output=outputs(), seed=st.integers(0, 1000))
def test_a_tensor_is_developed_to_the_nearest_grey_level_and_opacity_is_left_alone(output: Output, seed: int) -> None:
    random = np.random.default_rng(seed)
    gain, offset = random.uniform(0.5, 1.6, 3).astype(np.float32), random.uniform(-90, 90, 3).astype(np.float32)
    patch = output.patch
    before = patch[..., 3].copy()
    low, high = CpuDevice().develop(output.tensor, output.spec, gain, offset, patch)
    expected = np.clip(woven(output.levels) * gain + offset, 0, 255)
    assert np.abs(patch[..., :3] - expected).max() <= 0.5 + 1e-3
    np.testing.assert_array_equal(patch[..., 3], before)
    assert low == pytest.approx(output.levels.min(), abs=1e-3)
    assert high == pytest.approx(output.levels.max(), abs=1e-3)


@given(output=outputs(), bad=st.sampled_from([np.nan, -np.nan, np.inf, -np.inf]), at=st.integers(0, 10**6))
def test_a_single_value_that_is_no_number_is_found_wherever_it_is(output: Output, bad: float, at: int) -> None:
    output.tensor.ravel()[at % output.tensor.size] = bad
    ends = CpuDevice().develop(output.tensor, output.spec, NO_GAIN, NO_OFFSET, output.patch)
    assert np.isnan(ends).all()


def test_the_range_is_that_of_the_network_whatever_is_made_of_it() -> None:
    output = an_output(np.linspace(40, 60, 48).reshape(1, 4, 4, 3), "NCHW", "RGB")
    ends = CpuDevice().develop(output.tensor, output.spec, 9 * NO_GAIN, NO_OFFSET - 90, output.patch)
    assert ends == pytest.approx((40, 60), abs=1e-3)


def test_the_greatest_numbers_are_still_numbers() -> None:
    output = an_output(np.full((1, 3, 3, 3), 128.0), "NCHW", "BGR")
    output.tensor[:] = np.finfo(np.float32).max / 1e4
    output.tensor[0, 0, 1, 1] = -np.finfo(np.float32).max / 1e4
    patch = output.patch
    assert np.isfinite(CpuDevice().develop(output.tensor, output.spec, NO_GAIN, NO_OFFSET, patch)).all()
    assert set(np.unique(patch[..., :3])) == {0, 255}


@given(output=outputs(), seed=st.integers(0, 1000))
def test_tone_is_the_weighted_mean_and_deviation_of_every_fourth_pixel_of_the_first_tile(
    output: Output, seed: int
) -> None:
    sampled = output.levels[0, ::4, ::4]
    weight = np.random.default_rng(seed).uniform(0.01, 1, sampled.shape[:2]).astype(np.float32)
    out = np.full((2, 3), np.nan, np.float32)
    CpuDevice().tone(output.tensor, output.spec, weight, out)
    share = (weight / weight.sum(dtype=np.float64))[..., None]
    mean = (sampled * share).sum((0, 1))
    np.testing.assert_allclose(out[0], mean, atol=1e-3)
    np.testing.assert_allclose(out[1], np.sqrt(((sampled - mean) ** 2 * share).sum((0, 1))), atol=1e-3)


def test_what_has_no_weight_does_not_count_for_the_tone() -> None:
    levels = np.full((1, 8, 8, 3), 100.0)
    levels[0, :4] = 3000
    output, out = an_output(levels, "NHWC", "RGB"), np.empty((2, 3), np.float32)
    CpuDevice().tone(output.tensor, output.spec, np.array([[0, 0], [0.2, 1]], np.float32), out)
    np.testing.assert_allclose(out, [[100] * 3, [0] * 3], atol=1e-2)
