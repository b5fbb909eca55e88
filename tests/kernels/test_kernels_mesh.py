"""The kernels that draw a mesh and a mark against the processor's device, built by g++."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engines.cuda.blocks import Rectangle
from realtime.types import F32
from tests.faces import Eyes, pictures_of
from tests.kernels import runs
from tests.kernels.host import HostKernels
from tests.kernels.material import DEVICE, apart, beyond, noise

pytestmark = pytest.mark.kernels_host
ON_EDGES = 2e-3
"""Share of pixels that differ by more than a grey level: where two triangles meet a pixel may go to the other one."""


def head(turn_rad: float, across: float, x: float, y: float) -> F32:
    """The mesh of a face, bent like a head and turned."""
    from realtime import topology

    uv = topology.face_mesh().uv
    sideways, z = (uv[:, 0] - 0.5) * across, 0.3 * across * (2 * uv[:, 0] - 1) ** 2
    c, s = np.cos(turn_rad), np.sin(turn_rad)
    points = [x + sideways * c + z * s, y + (uv[:, 1] - 0.5) * across * 1.2, z * c - sideways * s]
    return np.stack(points, axis=1).astype(np.float32)


def triangles() -> NDArray[np.int32]:
    from realtime import topology

    return np.ascontiguousarray(topology.closed_triangles(), np.int32)


def attributes(seed: int) -> F32:
    """See ``raster.ATTRIBUTES``."""
    from realtime import topology

    random, made = np.random.default_rng(seed), np.zeros((468, 8), np.float32)
    made[:, :2] = topology.face_mesh().uv
    made[:, 2] = random.uniform(0.5, 1, 468)
    made[:, 3:5] = random.uniform(-2, 2, 2)
    made[:, 5:] = random.uniform(0.8, 1.2, 3)
    return made


@pytest.mark.parametrize("seed", range(4))
def test_a_mesh_is_drawn_as_the_processor_draws_it(kernels: HostKernels, seed: int) -> None:
    random = np.random.default_rng(seed)
    picture, texture = noise(seed, 140, 160), noise(seed + 9, 96, 96)
    mesh = head(random.uniform(-0.6, 0.6), 90, 60, 55)
    opacity = random.uniform(0, 1, (32, 32, 2)).astype(np.float32)
    left, top, width, height = box = (12, 9, 121, 117)
    ours, right = picture.copy(), picture.copy()
    runs.draw(kernels, ours, box, mesh, attributes(seed), triangles(), texture, opacity)
    part = right[top : top + height, left : left + width]
    DEVICE.draw(part, mesh, attributes(seed), triangles(), texture, opacity)
    difference = np.abs(ours.astype(int) - right)
    assert (ours != picture).any(axis=2).sum() > 5000
    assert (difference.max(axis=2) > 1).mean() < ON_EDGES
    assert difference.mean() < 0.02
    rectangle = Rectangle(left, top, left + width, top + height)
    np.testing.assert_array_equal(beyond(ours, rectangle), beyond(picture, rectangle))


@settings(max_examples=20)
@given(st.floats(-2, 2), st.floats(1, 400), st.floats(-300, 300), st.floats(-300, 300), st.integers(2, 60))
def test_a_mesh_may_lie_anywhere(
    kernels: HostKernels, turn: float, across: float, x: float, y: float, height: int
) -> None:
    picture, texture, opacity = noise(1, 80, 90), noise(2, 32, 32), np.full((4, 4, 2), 0.9, np.float32)
    ours, right, box = picture.copy(), picture.copy(), (7, 5, 71, height)
    mesh, points = head(turn, across, x, y), attributes(3)
    runs.draw(kernels, ours, box, mesh, points, triangles(), texture, opacity)
    DEVICE.draw(right[5 : 5 + height, 7:78], mesh, points, triangles(), texture, opacity)
    assert (np.abs(ours.astype(int) - right).max(axis=2) > 1).mean() < ON_EDGES
    rectangle = Rectangle(7, 5, 78, 5 + height)
    np.testing.assert_array_equal(beyond(ours, rectangle), beyond(picture, rectangle))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
def test_points_that_are_no_places_are_not_drawn(kernels: HostKernels, bad: float) -> None:
    picture, mesh = noise(1, 80, 90), head(0, 60, 40, 40)
    mesh[:, 0] = bad
    ours = picture.copy()
    texture, opacity = noise(2, 32, 32), np.ones((4, 4, 2), np.float32)
    runs.draw(kernels, ours, (0, 0, 90, 80), mesh, attributes(3), triangles(), texture, opacity)
    np.testing.assert_array_equal(ours, picture)


@pytest.mark.data
def test_a_real_face_is_drawn_as_the_processor_draws_it(kernels: HostKernels, eyes: Eyes, data_dir: Path) -> None:
    frames = pictures_of(data_dir / "clips" / "help.mkv", 12)
    mesh, picture = eyes.follow(frames)[-1].mesh, frames[-1]
    left, top = np.floor(mesh[:, :2].min(axis=0)).astype(int) - 2
    width, height = (np.ceil(np.ptp(mesh[:, :2], axis=0)) + 5).astype(int)
    texture, points, opacity = noise(4, 128, 128), attributes(5), np.ones((16, 16, 2), np.float32)
    local = (mesh - np.array([left, top, 0])).astype(np.float32)
    ours, right = picture.copy(), picture.copy()
    runs.draw(kernels, ours, (left, top, width, height), local, points, triangles(), texture, opacity)
    DEVICE.draw(right[top : top + height, left : left + width], local, points, triangles(), texture, opacity)
    difference = np.abs(ours.astype(int) - right).max(axis=2)
    assert (ours != picture).any(axis=2).sum() > 3000
    assert (difference > 1).mean() < ON_EDGES


def test_a_mark_is_a_smooth_pattern_of_light(kernels: HostKernels) -> None:
    picture = np.clip(noise(4, 97, 161), 20, 230)
    cells = np.random.default_rng(1).uniform(-3, 3, (9, 16)).astype(np.float32)
    ours = picture.copy()
    runs.mark(kernels, ours, cells)
    steps = cv2.resize(cells, (161, 97), interpolation=cv2.INTER_LINEAR)
    most, share = apart(ours, np.clip(np.floor(picture + steps[..., None] + 0.5), 0, 255).astype(np.uint8))
    assert most <= 1
    assert share < 0.01


def test_a_mark_stays_within_black_and_white(kernels: HostKernels) -> None:
    for level, step in ((254, 3.0), (1, -3.0)):
        picture = np.full((5, 7, 3), level, np.uint8)
        runs.mark(kernels, picture, np.full((1, 1), step, np.float32))
        assert (picture == (255 if step > 0 else 0)).all()
