from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from realtime import geometry as g
from realtime.types import F64

number = st.floats(-1000, 1000)
scale = st.floats(0.05, 20)
angle = st.floats(-np.pi, np.pi)


@st.composite
def similarities(draw: st.DrawFn) -> F64:
    k, a = draw(scale), draw(angle)
    cos, sin = k * np.cos(a), k * np.sin(a)
    return np.array([[cos, -sin, draw(number)], [sin, cos, draw(number)]])


@st.composite
def affines(draw: st.DrawFn) -> F64:
    """A similarity with shear: never close to degenerate."""
    m = draw(similarities())
    m[:, :2] = m[:, :2] @ np.array([[1.0, draw(st.floats(-1, 1))], [0.0, draw(st.floats(0.5, 2))]])
    return m


@st.composite
def clouds(draw: st.DrawFn) -> F64:
    count = draw(st.integers(2, 12))
    values = draw(st.lists(st.tuples(number, number), min_size=count, max_size=count))
    points = np.array(values)
    assume(np.ptp(points, axis=0).max() > 1)
    return points


@st.composite
def boxes(draw: st.DrawFn) -> NDArray[np.float32]:
    x, y, w, h = draw(number), draw(number), draw(st.floats(1, 500)), draw(st.floats(1, 500))
    return np.array([x, y, x + w, y + h], np.float32)


@given(affines(), clouds())
def test_an_inverse_takes_points_back(m: F64, points: F64) -> None:
    np.testing.assert_allclose(g.apply(g.invert(m), g.apply(m, points)), points, atol=1e-6)


@given(affines(), affines(), clouds())
def test_composing_is_applying_one_after_the_other(a: F64, b: F64, points: F64) -> None:
    np.testing.assert_allclose(g.apply(g.compose(a, b), points), g.apply(a, g.apply(b, points)), rtol=1e-9, atol=1e-6)


@given(similarities(), clouds())
def test_a_similarity_is_recovered_from_points_it_moved(m: F64, points: F64) -> None:
    np.testing.assert_allclose(g.similarity(points, g.apply(m, points)), m, rtol=1e-6, atol=1e-5)


@given(clouds(), st.integers(0, 1000))
def test_no_nearby_similarity_fits_better(points: F64, seed: int) -> None:
    rng = np.random.default_rng(seed)
    target = points @ [[0.8, 0.3], [-0.3, 0.8]] + rng.normal(0, 5, points.shape)
    best = g.similarity(points, target)
    error = float(((g.apply(best, points) - target) ** 2).sum())
    for _ in range(10):
        k, a, x, y = rng.normal(0, 0.01, 4)
        turn = np.array([[np.cos(a), -np.sin(a), x], [np.sin(a), np.cos(a), y]]) * (1 + k)
        assert ((g.apply(g.compose(turn, best), points) - target) ** 2).sum() >= error - 1e-6


@given(similarities())
def test_the_two_origins_agree_on_every_pixel_centre(m: F64) -> None:
    centres = np.array([[0, 0], [3, 7], [100, 20]])
    np.testing.assert_allclose(g.apply(g.between_centres(m), centres), g.apply(m, centres + 0.5) - 0.5, atol=1e-9)


def test_opencv_warps_by_the_transform_between_centres() -> None:
    picture = np.zeros((40, 40), np.float32)
    picture[10:20, 20:30] = 1  # corners at (20, 10) and (30, 20)
    doubled = cv2.warpAffine(picture, g.between_centres(np.array([[2.0, 0, 0], [0, 2.0, 0]])), (80, 80))
    rows, columns = np.nonzero(doubled > 0.5)
    assert (columns.min(), columns.max() + 1, rows.min(), rows.max() + 1) == (40, 60, 20, 40)


@given(st.tuples(number, number), st.floats(1, 2000), angle)
def test_a_square_crop_is_centred_of_its_side_and_level(centre: tuple[float, float], side: float, a: float) -> None:
    m = g.square_crop(centre, side, (np.cos(a), np.sin(a)), 192)
    corners = g.apply(m, [[0, 0], [192, 0], [192, 192], [0, 192]])
    np.testing.assert_allclose(corners.mean(axis=0), centre, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(corners - np.roll(corners, 1, axis=0), axis=1), side, rtol=1e-9)
    np.testing.assert_allclose((corners[1] - corners[0]) / side, (np.cos(a), np.sin(a)), atol=1e-6)


def test_a_crop_without_a_direction_is_upright() -> None:
    np.testing.assert_allclose(g.square_crop((50, 50), 100, (0, 0), 100), np.eye(2, 3), atol=1e-12)


@given(boxes(), boxes())
def test_iou_is_symmetric_and_one_only_for_the_same_box(a: NDArray[np.float32], b: NDArray[np.float32]) -> None:
    ab, ba = float(g.iou(a, b)[0]), float(g.iou(b, a)[0])
    assert ab == pytest.approx(ba)
    assert 0 <= ab <= 1 + 1e-9
    assert float(g.iou(a, a)[0]) == pytest.approx(1)


def test_iou_of_boxes_worked_out_by_hand() -> None:
    others = [[5, 0, 15, 10], [10, 0, 20, 10], [2, 2, 4, 4], [3, 3, 3, 3]]
    np.testing.assert_allclose(g.iou([0, 0, 10, 10], others), [50 / 150, 0, 4 / 100, 0])


@given(st.lists(boxes(), max_size=12), st.floats(0.1, 0.9))
def test_groups_split_the_boxes_and_keep_rivals_apart(found: list[NDArray[np.float32]], limit: float) -> None:
    scores = np.linspace(0.5, 1, len(found))
    groups = g.groups(found, scores, limit)
    assert sorted(int(i) for group in groups for i in group) == list(range(len(found)))
    best = [int(group[0]) for group in groups]
    assert best == sorted(best, reverse=True)  # scores rise with the index
    for n, i in enumerate(best):
        assert all(float(g.iou(found[i], found[j])[0]) < limit for j in best[:n])


@given(clouds())
def test_bounds_touch_the_outermost_points(points: F64) -> None:
    left, top, right, bottom = g.bounds(points)
    assert (left, right) == (np.float32(points[:, 0].min()), np.float32(points[:, 0].max()))
    assert (top, bottom) == (np.float32(points[:, 1].min()), np.float32(points[:, 1].max()))
