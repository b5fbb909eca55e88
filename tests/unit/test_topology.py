"""The surface is whole, symmetric and laid out without folds; what is computed on it keeps its promises."""

from __future__ import annotations

from itertools import pairwise

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from realtime import topology
from realtime.types import F32, F64

MESH = topology.face_mesh()
HOLES = (topology.EYE_LEFT, topology.EYE_RIGHT, topology.LIPS_INNER)
ROUNDS = 6
Edge = tuple[int, int]


def edges_of(loop: tuple[int, ...]) -> set[frozenset[int]]:
    return {frozenset(edge) for edge in pairwise((*loop, loop[0]))}


def directed(triangles: NDArray[np.int32]) -> list[Edge]:
    return [edge for a, b, c in triangles.tolist() for edge in ((a, b), (b, c), (c, a))]


def border_of(triangles: NDArray[np.int32]) -> set[frozenset[int]]:
    edges = set(directed(triangles))
    return {frozenset((a, b)) for a, b in edges if (b, a) not in edges}


def areas(xy: F32) -> F64:
    a, b, c = (xy[MESH.triangles[:, k], :2].astype(np.float64) for k in range(3))
    return np.asarray(((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]) / 2)


def test_all_but_two_tiny_triangles_face_the_viewer_in_the_texture() -> None:
    folded = np.flatnonzero(areas(MESH.uv) <= 0)
    assert {frozenset(t) for t in MESH.triangles[folded].tolist()} == {
        frozenset((191, 78, 62)),
        frozenset((415, 308, 292)),
    }
    assert -areas(MESH.uv)[folded].sum() < 2e-4 * areas(MESH.uv).sum()  # in the corners of the mouth


def test_all_but_a_few_triangles_of_the_mean_face_face_the_camera() -> None:
    assert (areas(MESH.canonical) <= 0).mean() < 0.03


def test_each_edge_belongs_to_one_triangle_on_either_side() -> None:
    edges = directed(topology.closed_triangles())
    assert len(edges) == len(set(edges))


def test_the_only_openings_are_the_eyes_the_mouth_and_the_border() -> None:
    assert border_of(MESH.triangles) == set.union(*map(edges_of, (*HOLES, topology.OVAL)))


def test_closing_closes_the_eyes_and_the_mouth_and_nothing_else() -> None:
    closed = topology.closed_triangles()
    np.testing.assert_array_equal(closed[: len(MESH.triangles)], MESH.triangles)
    assert len(closed) == len(MESH.triangles) + sum(len(loop) - 2 for loop in HOLES)
    assert border_of(closed) == edges_of(topology.OVAL)


def test_the_mirror_map_is_an_involution_that_mirrors_layout_and_shape() -> None:
    np.testing.assert_array_equal(MESH.mirror[MESH.mirror], np.arange(468))
    np.testing.assert_allclose(MESH.uv[MESH.mirror], MESH.uv * (-1, 1) + (1, 0), atol=1e-6)
    np.testing.assert_allclose(MESH.canonical[MESH.mirror], MESH.canonical * (-1, 1, 1), atol=1e-6)


def test_the_mirror_map_takes_edges_to_edges_but_for_six_diagonals() -> None:
    edges = {frozenset(edge) for edge in directed(MESH.triangles)}
    alone = [edge for edge in edges if frozenset(MESH.mirror[list(edge)].tolist()) not in edges]
    assert len(alone) == 6


@pytest.mark.parametrize("loop", [*HOLES, topology.OVAL, topology.LIPS_OUTER])
def test_the_named_loops_follow_edges_and_are_clockwise(loop: tuple[int, ...]) -> None:
    assert edges_of(loop) <= {frozenset(edge) for edge in directed(MESH.triangles)}
    x, y = MESH.uv[list(loop)].T
    assert (x * np.roll(y, -1) - y * np.roll(x, -1)).sum() > 0


def test_the_named_points_lie_where_their_names_say() -> None:
    x, y = MESH.canonical[:, 0], MESH.canonical[:, 1]
    assert (x[list(topology.EYE_LEFT)] < 0).all()
    assert (x[list(topology.EYE_RIGHT)] > 0).all()
    np.testing.assert_array_equal(MESH.mirror[list(topology.BROW_LEFT_TOP)], topology.BROW_RIGHT_TOP[::-1])
    eyes = y[list(topology.EYE_LEFT + topology.EYE_RIGHT)]
    assert y[list(topology.BROW_LEFT_TOP)].max() < eyes.min()
    assert eyes.max() < y[list(topology.CHEEKS)].min()
    mouth = y[list(topology.LIPS_OUTER)]
    assert y[topology.steady_points()].max() < mouth.min()
    assert len(topology.steady_points()) > 200


def test_the_surface_cannot_be_changed_by_its_users() -> None:
    for array in (MESH.triangles, MESH.uv, MESH.mirror, MESH.canonical):
        assert not array.flags.writeable


@pytest.mark.parametrize("n", [32, 64, 256])
def test_every_texel_on_the_surface_knows_its_own_place(n: int) -> None:
    texels = topology.texel_map(n)
    inside = texels.inside
    centres = (np.stack(np.meshgrid(np.arange(n), np.arange(n)), -1) + 0.5) / n
    np.testing.assert_allclose(texels.interpolate(MESH.uv)[inside], centres[inside], atol=1e-5)
    np.testing.assert_allclose(texels.weights[inside].sum(-1), 1, atol=1e-5)
    assert texels.weights.min() >= -1e-5
    assert not texels.interpolate(np.ones((468, 2), np.float32))[~inside].any()


@pytest.mark.parametrize("n", [32, 64, 256])
def test_texels_cover_the_surface_and_leave_its_openings_out(n: int) -> None:
    inside = topology.texel_map(n).inside
    outline, holes = topology.region(n, topology.OVAL) > 127, topology.region(n, *HOLES) > 127
    odd = (inside ^ (outline & ~holes)).astype(np.uint8)
    assert not cv2.erode(odd, np.ones((3, 3), np.uint8)).any()  # OpenCV fills half a texel more
    np.testing.assert_array_equal(inside, inside[:, ::-1])
    assert inside.mean() == pytest.approx(areas(MESH.uv).sum(), rel=0.02)


@pytest.mark.parametrize("loop", [*HOLES, topology.OVAL, topology.FOREHEAD])
def test_a_region_has_the_area_and_the_place_of_its_loop(loop: tuple[int, ...]) -> None:
    n = 256
    x, y = MESH.uv[list(loop)].T.astype(np.float64) * n
    cross = x * np.roll(y, -1) - y * np.roll(x, -1)
    centre = [((v + np.roll(v, -1)) * cross).sum() / (3 * cross.sum()) for v in (x, y)]
    mask = topology.region(n, loop).astype(np.float64) / 255
    length = float(np.hypot(x - np.roll(x, -1), y - np.roll(y, -1)).sum())
    assert abs(mask.sum() - abs(cross.sum()) / 2) < 0.8 * length  # OpenCV fills its borders, too
    rows, columns = np.mgrid[:n, :n] + 0.5
    assert (columns * mask).sum() / mask.sum() == pytest.approx(centre[0], abs=0.75)
    assert (rows * mask).sum() / mask.sum() == pytest.approx(centre[1], abs=0.75)


def test_regions_of_several_loops_are_their_union() -> None:
    both = topology.region(64, topology.EYE_LEFT, topology.EYE_RIGHT)
    alone = [topology.region(64, eye) for eye in (topology.EYE_LEFT, topology.EYE_RIGHT)]
    np.testing.assert_array_equal(both, np.maximum(*alone))


def random_shifts(seed: int) -> F32:
    return np.random.default_rng(seed).normal(0, 1, (468, 3)).astype(np.float32)


@given(st.integers(0, 1000))
@settings(max_examples=20)
def test_smoothed_shifts_leave_openings_open_and_the_border_in_place(seed: int) -> None:
    moved = topology.smooth_shifts(random_shifts(seed), ROUNDS)
    for loop in (*HOLES, topology.LIPS_OUTER):
        half = len(loop) // 2
        for upper, lower in zip(loop[1:half], reversed(loop[half + 1 :]), strict=True):
            np.testing.assert_allclose(moved[upper], moved[lower], atol=1e-6)
    assert np.abs(moved[list(topology.OVAL)]).max() < 0.01


def test_a_common_shift_arrives_whole_in_the_middle_and_in_part_at_the_mouth() -> None:
    moved = topology.smooth_shifts(np.tile(np.array([1, -2, 3], np.float32), (468, 1)), ROUNDS)
    share = moved / np.array([1, -2, 3], np.float32)
    np.testing.assert_allclose(share[[6, 197, 50, 280]], 1, atol=1e-5)  # nose and cheeks
    lips = share[list(topology.LIPS_INNER)]
    assert 0.5 < lips.min() <= lips.max() < 1
    assert share.min() >= 0


@given(st.integers(0, 1000), st.floats(-3, 3))
@settings(max_examples=20)
def test_smoothing_is_linear_and_calms(seed: int, factor: float) -> None:
    a, b = random_shifts(seed), random_shifts(seed + 1)
    together = topology.smooth_shifts(a + np.float32(factor) * b, ROUNDS)
    apart = topology.smooth_shifts(a.copy(), ROUNDS) + np.float32(factor) * topology.smooth_shifts(b.copy(), ROUNDS)
    np.testing.assert_allclose(together, apart, atol=1e-4)
    assert topology.smooth_shifts(a.copy(), ROUNDS).std() < 0.4 * a.std()


def turn(yaw: float, pitch: float) -> F64:
    rotation = cv2.Rodrigues(np.array([pitch, 0.0, 0.0]))[0] @ cv2.Rodrigues(np.array([0.0, yaw, 0.0]))[0]
    return np.asarray(rotation, np.float64)


@given(yaw=st.floats(-1.5, 1.5), pitch=st.floats(-1, 1), scale=st.floats(10, 2000), rounds=st.integers(0, 9))
@settings(max_examples=30)
def test_broad_normals_turn_with_the_head_and_know_no_size(yaw: float, pitch: float, scale: float, rounds: int) -> None:
    rotation = turn(yaw, pitch)
    moved = (scale * MESH.canonical @ rotation.T + (5, -7, 3)).astype(np.float32)
    turned = topology.broad_normals(moved, rounds)
    np.testing.assert_allclose(turned, topology.broad_normals(MESH.canonical, rounds) @ rotation.T, atol=5e-3)
    np.testing.assert_allclose(np.linalg.norm(turned, axis=1), 1, atol=1e-3)


def test_the_whole_face_is_broadly_turned_to_the_camera_and_away_when_it_turns_round() -> None:
    assert (topology.broad_normals(MESH.canonical)[:, 2] < 0).all()
    assert (topology.broad_normals((MESH.canonical * (-1, 1, -1)).astype(np.float32))[:, 2] > 0).all()


def test_the_far_side_of_a_profile_looks_away() -> None:
    profile = (MESH.canonical @ turn(1.2, 0).T).astype(np.float32)
    z = topology.broad_normals(profile)[:, 2]
    sides = z[[234, 127, 93]].mean(), z[[454, 356, 323]].mean()
    assert min(sides) < 0 < max(sides)
