"""Pasting against plain numpy in double precision: where a patch lies, how it blends, and what it never touches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engines.contract import TensorSpec
from engines.cpu import CpuDevice

F64 = NDArray[np.float64]
U8 = NDArray[np.uint8]


def a_patch(seed: int, height: int, width: int) -> U8:
    """Noise of every opacity, with a transparent edge."""
    patch = np.random.default_rng(seed).integers(0, 256, (height, width, 4), np.uint8)
    patch[[0, -1], :, 3] = patch[:, [0, -1], 3] = 0
    return patch


def a_picture(seed: int, height: int, width: int) -> U8:
    return np.random.default_rng(seed + 1).integers(0, 256, (height, width, 3), np.uint8)


def a_similarity(scale: float, angle_rad: float, x: float, y: float) -> F64:
    cos, sin = scale * np.cos(angle_rad), scale * np.sin(angle_rad)
    return np.array([[cos, -sin, x], [sin, cos, y]])


def by_hand(picture: U8, patch: U8, picture_from_patch: F64) -> tuple[F64, NDArray[np.bool_]]:
    """The blend before rounding, and where the patch shows."""
    linear, shift = picture_from_patch[:, :2], picture_from_patch[:, 2]
    v, u = np.mgrid[: picture.shape[0], : picture.shape[1]].astype(np.float64)
    x, y = np.moveaxis((np.stack([u, v], -1) - shift) @ np.linalg.inv(linear).T, -1, 0)
    around = np.zeros((patch.shape[0] + 4, patch.shape[1] + 4, 4))
    around[2:-2, 2:-2] = patch
    x, y = np.clip(x, -1.5, patch.shape[1] + 0.5) + 2, np.clip(y, -1.5, patch.shape[0] + 0.5) + 2
    i, j = x.astype(int), y.astype(int)
    fx, fy = (x - i)[..., None], (y - j)[..., None]
    upper = around[j, i] * (1 - fx) + around[j, i + 1] * fx
    lower = around[j + 1, i] * (1 - fx) + around[j + 1, i + 1] * fx
    sample = upper * (1 - fy) + lower * fy
    return picture + (sample[..., :3] - picture) * sample[..., 3:] / 255, sample[..., 3] > 0


SCALES = st.floats(0.51, 6)
ANGLES = st.one_of(st.sampled_from([0.0, np.pi / 2, np.pi, -np.pi / 2]), st.floats(-np.pi, np.pi))
PLACES = st.floats(-60, 60)


@given(st.integers(0, 999), SCALES, ANGLES, PLACES, PLACES, st.integers(3, 20), st.integers(3, 20))
@settings(max_examples=200)
def test_a_patch_is_blended_within_a_grey_level_of_exact_and_touches_nothing_else(
    seed: int, scale: float, angle_rad: float, x: float, y: float, height: int, width: int
) -> None:
    patch, picture = a_patch(seed, height, width), a_picture(seed, 37, 41)
    picture_from_patch = a_similarity(scale, angle_rad, x, y)
    expected, painted = by_hand(picture, patch, picture_from_patch)
    before = picture.copy()
    CpuDevice().paste(picture, patch, picture_from_patch)
    # Exact would be off by half a level; patch and opacity are rounded before they are blended, half a level each.
    assert np.abs(picture - expected).max() <= 1.55
    np.testing.assert_array_equal(picture[~painted], before[~painted])


@pytest.mark.parametrize("shape", [(1, 1), (1, 30), (30, 1), (2, 2)])
@pytest.mark.parametrize("scale", [0.3, 1.0, 9.0])
def test_hardly_any_pixels_are_no_trouble(shape: tuple[int, int], scale: float) -> None:
    for patch in (a_patch(1, 9, 9), a_patch(2, 1, 1), a_patch(3, 2, 5)):
        picture = a_picture(1, *shape)
        expected, _ = by_hand(picture, patch, a_similarity(scale, 0.3, -2, -1))
        CpuDevice().paste(picture, patch, a_similarity(scale, 0.3, -2, -1))
        if scale > 0.5:
            assert np.abs(picture - expected).max() <= 1.55


def test_an_opaque_patch_at_whole_pixels_is_copied_and_a_transparent_one_is_not_seen() -> None:
    patch, picture = a_patch(1, 12, 15), a_picture(1, 30, 40)
    patch[1:-1, 1:-1, 3] = 255
    before = picture.copy()
    CpuDevice().paste(picture, patch, a_similarity(1, 0, 7, 4))
    np.testing.assert_array_equal(picture[5:15, 8:21], patch[1:-1, 1:-1, :3])
    picture[5:15, 8:21] = before[5:15, 8:21]
    np.testing.assert_array_equal(picture, before)
    patch[..., 3] = 0
    CpuDevice().paste(picture, patch, a_similarity(1, 0, 7, 4))
    np.testing.assert_array_equal(picture, before)


@given(st.integers(0, 255), st.integers(0, 255))
def test_a_blend_of_two_equal_colours_is_that_colour_at_any_opacity(colour: int, opacity: int) -> None:
    patch = np.full((8, 8, 4), colour, np.uint8)
    patch[..., 3] = opacity
    patch[[0, -1], :, 3] = patch[:, [0, -1], 3] = 0
    picture = np.full((40, 40, 3), colour, np.uint8)
    CpuDevice().paste(picture, patch, a_similarity(4.3, 0.2, 5, 3))
    # Only beside the patch do its colours fade to black, where its opacity is 0.
    assert np.abs(picture.astype(int) - colour).max() <= 1


@pytest.mark.parametrize("fineness", [2, 4, 8])
def test_a_patch_finer_than_the_picture_is_averaged_not_skipped(fineness: int) -> None:
    """Of a board of black and white pixels grey remains; single samples would show one or the other."""
    side = 16 * fineness
    patch = np.full((side, side, 4), 255, np.uint8)
    patch[::2, ::2, :3] = patch[1::2, 1::2, :3] = 0
    patch[[0, -1], :, 3] = patch[:, [0, -1], 3] = 0
    picture = np.full((30, 30, 3), 10, np.uint8)
    CpuDevice().paste(picture, patch, a_similarity(0.98 / fineness, 0.1, 7, 7))
    assert np.abs(picture[11:19, 11:19].astype(int) - 127).max() <= 2


@pytest.mark.parametrize("fineness", [1, 2, 4])
def test_halving_moves_nothing(fineness: int) -> None:
    """A ramp stays where it is, whichever resolution it was drawn at."""
    side = 40 * fineness
    ramp = (np.arange(side) + 0.5) / fineness * 5
    patch = np.full((side, side, 4), 255, np.uint8)
    patch[..., :3] = np.rint(ramp)[:, None]
    patch[[0, -1], :, 3] = patch[:, [0, -1], 3] = 0
    picture = np.zeros((60, 60, 3), np.uint8)
    shift = 10 + 0.5 * (1 / fineness - 1)  # the same corner
    CpuDevice().paste(picture, patch, a_similarity(1 / fineness, 0, shift, shift))
    inner = picture[14:46, 14:46, 0] - np.round((np.arange(14, 46) - 10 + 0.5) * 5)[None]
    assert np.abs(inner).max() <= 1.5


def test_a_part_of_a_larger_picture_is_painted_into_like_a_copy() -> None:
    large, patch = a_picture(5, 60, 90), a_patch(5, 12, 12)
    expected, copy = large.copy(), large[10:40, 20:60].copy()
    CpuDevice().paste(copy, patch, a_similarity(2.2, 0.4, 3, 1))
    expected[10:40, 20:60] = copy
    CpuDevice().paste(large[10:40, 20:60], patch, a_similarity(2.2, 0.4, 3, 1))
    np.testing.assert_array_equal(large, expected)


def test_a_device_pastes_the_same_after_larger_and_smaller_patches() -> None:
    device, patch = CpuDevice(), a_patch(6, 14, 11)
    pictures = [a_picture(6, 50, 50) for _ in range(2)]
    device.paste(pictures[0], patch, a_similarity(2, 0.3, 5, 5))
    for side, scale in ((40, 8.0), (5, 1.0), (64, 0.2)):
        device.paste(a_picture(7, 300, 300), a_patch(7, side, side), a_similarity(scale, 1, 100, 50))
    device.paste(pictures[1], patch, a_similarity(2, 0.3, 5, 5))
    np.testing.assert_array_equal(pictures[0], pictures[1])


@given(st.integers(0, 999), st.floats(0.8, 1.25), ANGLES)
@settings(max_examples=30)
def test_a_network_that_changes_nothing_leaves_a_picture_nearly_as_it_was(
    seed: int, scale: float, angle_rad: float
) -> None:
    """Crop, develop, paste: a picture without finer detail than the crop comes back."""
    y, x = np.mgrid[:64, :64]
    waves = np.random.default_rng(seed).uniform(-0.12, 0.12, (2, 3))
    picture = np.rint(127.5 + 100 * np.sin(x[..., None] * waves[0] + y[..., None] * waves[1])).astype(np.uint8)
    spec = TensorSpec("target", (1, 3, 32, 32), "float32", "NCHW", "RGB", (0.0,) * 3, (1 / 255,) * 3)
    tensor, patch = np.empty(spec.shape, np.float32), np.zeros((32, 32, 4), np.uint8)
    patch[1:-1, 1:-1, 3] = 255
    picture_from_crop = a_similarity(scale, angle_rad, 0, 0)
    picture_from_crop[:, 2] = 31.5 - picture_from_crop[:, :2] @ (15.5, 15.5)
    device, before = CpuDevice(), picture.copy()
    device.crop(picture, picture_from_crop, spec, tensor)
    device.develop(tensor, spec, np.ones(3, np.float32), np.zeros(3, np.float32), patch)
    device.paste(picture, patch, picture_from_crop)
    assert np.abs(picture.astype(int) - before).max() <= 3
