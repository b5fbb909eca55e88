from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from engines.contract import Colour, Layout, TensorSpec
from engines.cpu import CpuDevice, _shrunk

MEAN, SCALE = (10.0, 20.0, 30.0), (0.5, 0.25, 0.125)
ALIKE = ((127.5,) * 3, (1 / 127.5,) * 3)


def a_spec(layout: Layout, colour: Colour, width: int = 6, height: int = 4, *, alike: bool = False) -> TensorSpec:
    shape = (1, height, width, 3) if layout == "NHWC" else (1, 3, height, width)
    mean, scale = ALIKE if alike else (MEAN, SCALE)
    return TensorSpec("in", shape, "float32", layout, colour, mean, scale)


def by_hand(picture: NDArray[np.uint8], x: int, y: int, spec: TensorSpec) -> NDArray[np.float64]:
    """The crop at whole pixels, one at a time."""
    channels_last = spec.layout == "NHWC"
    height, width = spec.shape[1:3] if channels_last else spec.shape[2:]
    out = np.empty(spec.shape)
    for v in range(height):
        for u in range(width):
            inside = 0 <= y + v < picture.shape[0] and 0 <= x + u < picture.shape[1]
            pixel = picture[y + v, x + u].tolist() if inside else [0, 0, 0]
            for c in range(3):
                value = (pixel[2 - c if spec.colour == "RGB" else c] - spec.mean[c]) * spec.scale[c]
                out[(0, v, u, c) if channels_last else (0, c, v, u)] = value
    return out


@pytest.fixture(scope="module")
def picture() -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (30, 40, 3), np.uint8)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("colour", ["RGB", "BGR"])
@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize(("x", "y"), [(7, 11), (-2, -1), (37, 28), (100, 100)])
def test_a_crop_is_normalised_as_its_spec_says(
    picture: NDArray[np.uint8], layout: Layout, colour: Colour, alike: bool, x: int, y: int
) -> None:
    spec = a_spec(layout, colour, alike=alike)
    out = np.full(spec.shape, np.nan, np.float32)
    CpuDevice().crop(picture, np.array([[1.0, 0, x], [0, 1.0, y]]), spec, out)
    np.testing.assert_allclose(out, by_hand(picture, x, y, spec), atol=1e-5)


def test_between_pixels_a_crop_is_bilinear(picture: NDArray[np.uint8]) -> None:
    spec = replace(a_spec("NHWC", "BGR", 1, 1), mean=(0.0,) * 3, scale=(1.0,) * 3)
    out = np.empty(spec.shape, np.float32)
    CpuDevice().crop(picture, np.array([[1.0, 0, 5.25], [0, 1.0, 8.5]]), spec, out)
    p = picture.astype(float)
    expected = 0.5 * (0.75 * p[8, 5] + 0.25 * p[8, 6]) + 0.5 * (0.75 * p[9, 5] + 0.25 * p[9, 6])
    np.testing.assert_allclose(out[0, 0, 0], expected, atol=1.0)


def test_one_device_serves_many_specs_without_mixing_them_up(picture: NDArray[np.uint8]) -> None:
    device = CpuDevice()
    specs = [
        a_spec("NHWC", "RGB"),
        a_spec("NCHW", "RGB"),
        a_spec("NHWC", "BGR", 9, 5),
        a_spec("NHWC", "RGB", alike=True),
    ]
    for spec in specs * 2:
        out = np.empty(spec.shape, np.float32)
        device.crop(picture, np.array([[1.0, 0, 3], [0, 1.0, 4]]), spec, out)
        np.testing.assert_allclose(out, by_hand(picture, 3, 4, spec), atol=1e-5)


def test_a_view_of_a_larger_picture_is_cropped_like_a_copy(picture: NDArray[np.uint8]) -> None:
    spec, part = a_spec("NHWC", "RGB"), picture[5:25, 10:30]
    outs = [np.empty(spec.shape, np.float32) for _ in range(2)]
    for source, out in zip((part, part.copy()), outs, strict=True):
        CpuDevice().crop(source, np.array([[1.0, 0, 2], [0, 1.0, 2]]), spec, out)
    np.testing.assert_array_equal(outs[0], outs[1])


@pytest.mark.parametrize(("k", "whole"), [(1.0, (64, 48)), (2.0, (32, 24)), (1.5, None), (4.0, (16, 12)), (0.5, None)])
@pytest.mark.parametrize("colour", ["RGB", "BGR"])
def test_a_whole_picture_made_smaller_is_the_same_as_any_other_crop(
    k: float, whole: tuple[int, int] | None, colour: Colour
) -> None:
    picture = np.random.default_rng(5).integers(0, 256, (48, 64, 3), np.uint8)
    spec = replace(a_spec("NCHW", colour, 64, 64), mean=(0.0,) * 3, scale=(1.0,) * 3)
    picture_from_crop = np.array([[k, 0, (k - 1) / 2], [0, k, (k - 1) / 2]])
    assert _shrunk(picture, picture_from_crop) == whole
    moved = picture_from_crop + np.array([0, 0, 1e-7])  # no longer exactly from the corner: warped
    assert _shrunk(picture, moved) is None
    outs = [np.full(spec.shape, np.nan, np.float32) for _ in range(2)]
    for out, crop in zip(outs, (picture_from_crop, moved), strict=True):
        CpuDevice().crop(picture, crop, spec, out)
    np.testing.assert_allclose(outs[0], outs[1], atol=1.0)


def test_a_whole_picture_larger_than_the_crop_is_cut_off() -> None:
    picture = np.random.default_rng(6).integers(0, 256, (48, 64, 3), np.uint8)
    spec = a_spec("NCHW", "RGB", 20, 30)
    out = np.full(spec.shape, np.nan, np.float32)
    CpuDevice().crop(picture, np.eye(2, 3), spec, out)
    np.testing.assert_allclose(out, by_hand(picture, 0, 0, spec), atol=1e-5)
