"""Unwrapping against OpenCV's ``remap``, and what it says about texels that it cannot see."""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engines.cpu import CpuDevice

F32 = NDArray[np.float32]
U8 = NDArray[np.uint8]
I32 = NDArray[np.int32]

SIDE = 24


class Surface(NamedTuple):
    """A mesh of random points and a texture of random texels on it; every fifth texel is on no surface."""

    mesh: F32
    facing: F32
    corners: I32
    weights: F32

    @property
    def place(self) -> F32:
        """(n, n, 2) where each texel lies in the picture."""
        return np.asarray(np.einsum("yxc,yxck->yxk", self.weights, self.mesh[self.corners][..., :2]), np.float32)


def a_surface(seed: int, low: tuple[float, float], high: tuple[float, float]) -> Surface:
    random = np.random.default_rng(seed)
    mesh = np.column_stack([random.uniform(low, high, (9, 2)), random.uniform(-9, 9, 9)]).astype(np.float32)
    corners = random.integers(0, 9, (SIDE, SIDE, 3)).astype(np.int32)
    corners[random.random((SIDE, SIDE)) < 0.2] = -1
    weights = random.dirichlet((1, 1, 1), (SIDE, SIDE)).astype(np.float32)
    return Surface(mesh, random.uniform(0, 1, 9).astype(np.float32), corners, weights)


def unwrap(picture: U8, surface: Surface, fill: float = -7.0) -> tuple[F32, F32]:
    out, seen = np.full((SIDE, SIDE, 3), fill, np.float32), np.full((SIDE, SIDE), fill, np.float32)
    CpuDevice().unwrap(picture, *surface, out, seen)
    return out, seen


def a_picture(width: int = 40, height: int = 28) -> U8:
    noise = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
    return np.asarray(cv2.blur(noise, (3, 3)), np.uint8)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40)
def test_texels_inside_the_picture_are_sampled_as_remap_does(seed: int) -> None:
    picture, surface = a_picture(), a_surface(seed, (0, 0), (39, 27))
    out, seen = unwrap(picture, surface)
    on = surface.corners[..., 0] >= 0
    place = surface.place
    expected = cv2.remap(picture.astype(np.float32), place[..., 0], place[..., 1], cv2.INTER_LINEAR)
    np.testing.assert_allclose(out[on], expected[on], atol=0.1)
    facing = np.einsum("yxc,yxc->yx", surface.weights, surface.facing[surface.corners])
    np.testing.assert_allclose(seen[on], facing[on], atol=1e-5)
    assert (seen[~on] == 0).all()
    assert (out[~on] == -7).all()


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40)
def test_texels_outside_the_picture_are_unseen_and_left_alone(seed: int) -> None:
    surface = a_surface(seed, (-60, -50), (100, 80))
    surface.mesh[:, 1] *= 28 / max(28, float(np.ptp(surface.mesh[:, 1])))  # not so tall that it is scaled down
    out, seen = unwrap(a_picture(), surface)
    x, y = np.moveaxis(surface.place, -1, 0)
    beside = (x < -0.01) | (y < -0.01) | (x > 39.01) | (y > 27.01) | (surface.corners[..., 0] < 0)
    inside = (x > 0.01) & (y > 0.01) & (x < 38.99) & (y < 26.99) & (surface.corners[..., 0] >= 0)
    assert (seen[beside] == 0).all()
    assert (out[beside] == -7).all()
    assert (out[inside] >= 0).all()


def test_a_part_of_a_larger_picture_is_unwrapped_like_a_copy() -> None:
    part, surface = a_picture(90, 60)[11:39, 20:60], a_surface(1, (0, 0), (39, 27))
    assert not part.flags.c_contiguous
    for view, copy in zip(unwrap(part, surface), unwrap(part.copy(), surface), strict=True):
        np.testing.assert_array_equal(view, copy)


@pytest.mark.parametrize("height", [150, 400])
def test_a_picture_much_finer_than_the_texture_is_averaged_and_not_shifted(height: int) -> None:
    y, x = np.mgrid[:height, :height]
    ramp = (200.0 * np.stack([x, y, (x + y) / 2], -1) / (height - 1)).astype(np.uint8)
    checks = (8 * ((x + y) % 2) - 4)[..., None]  # what sampling alone would pick up
    surface = a_surface(2, (3, 3), (height - 4, height - 4))
    out, _ = unwrap((ramp + 20 + checks).astype(np.uint8), surface)
    on = surface.corners[..., 0] >= 0
    place = surface.place
    expected = 20 + 200 * np.stack([place[..., 0], place[..., 1], place.mean(-1)], -1) / (height - 1)
    np.testing.assert_allclose(out[on], expected[on], atol=1.5)
    # The ramp was cut to whole levels, and each halving rounds half a level up.
    assert -0.6 < float((out[on] - expected[on]).mean()) < 0


@pytest.mark.parametrize("size", [(2, 2), (2, 40), (40, 2)])
def test_a_picture_of_two_pixels_is_enough(size: tuple[int, int]) -> None:
    out, seen = unwrap(np.full((*size, 3), 77, np.uint8), a_surface(3, (-20, -20), (20, 900)))
    assert np.isfinite(seen).all()
    np.testing.assert_allclose(out[seen > 0], 77, atol=1e-3)
