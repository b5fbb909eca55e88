"""Faces are taken apart into shape and pose and put together again; what is moved is never the expression."""

from __future__ import annotations

from itertools import pairwise

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime import topology
from realtime.swappers.shape import Shape, ShapeTransfer, rigid_fit
from realtime.types import F32, F64

CANONICAL = topology.face_mesh().canonical
FRAME_S = 1 / 30

angles = st.floats(-1.2, 1.2)
sizes = st.floats(12, 2000)
seeds = st.integers(0, 10_000)


def rotation(yaw: float, pitch: float, roll: float) -> F64:
    """Turn a head: yaw to the right of the picture, pitch up, roll clockwise."""
    turns = [cv2.Rodrigues(np.array(axis, np.float64))[0] for axis in ((0, -yaw, 0), (-pitch, 0, 0), (0, 0, roll))]
    return np.asarray(turns[2] @ turns[1] @ turns[0], np.float64)


def a_face(seed: int = 0, amount: float = 0.02) -> F32:
    """A face of its own, height 1: the mean face with smooth differences."""
    random = np.random.default_rng(seed)
    waves = np.sin(CANONICAL @ random.normal(0, 4, (3, 3)) + random.uniform(0, 6, 3))
    return (CANONICAL + amount * waves).astype(np.float32)


def posed(points: F32, yaw: float = 0, pitch: float = 0, roll: float = 0, size: float = 200) -> F32:
    return (size * points @ rotation(yaw, pitch, roll).T + (320, 240, 0)).astype(np.float32)


@given(seed=seeds, yaw=angles, pitch=angles, roll=st.floats(-3.1, 3.1), size=sizes)
@settings(max_examples=40)
def test_the_fit_finds_the_similarity_that_was_applied(
    seed: int, yaw: float, pitch: float, roll: float, size: float
) -> None:
    src, turn = a_face(seed), rotation(yaw, pitch, roll)
    dst = (size * src @ turn.T + (7, -900, 40)).astype(np.float32)
    found, scale, shift = rigid_fit(src, dst)
    np.testing.assert_allclose(found, turn, atol=1e-3)
    assert scale == pytest.approx(size, rel=1e-3)
    np.testing.assert_allclose(scale * src @ found.T + shift, dst, atol=size * 1e-3 + 1e-2)


@given(seed=seeds, yaw=angles, pitch=angles)
@settings(max_examples=30)
def test_the_fit_never_mirrors_and_nothing_near_fits_better(seed: int, yaw: float, pitch: float) -> None:
    random = np.random.default_rng(seed)
    src = a_face(seed).astype(np.float64)
    dst = src[topology.face_mesh().mirror] @ rotation(yaw, pitch, 0).T + random.normal(0, 0.05, src.shape)
    found, scale, shift = rigid_fit(src.astype(np.float32), dst.astype(np.float32))
    assert np.linalg.det(found) == pytest.approx(1)

    def error(turn: F64, k: float, moved: F64) -> float:
        return float(((k * src @ turn.T + moved - dst) ** 2).sum())

    best = error(found, scale, shift)
    for _ in range(5):
        nudge = rotation(*random.normal(0, 0.03, 3))
        assert error(nudge @ found, scale, shift) >= best - 1e-4
        assert error(found, scale * random.uniform(0.95, 1.05), shift) >= best - 1e-4
        assert error(found, scale, shift + random.normal(0, 0.02, 3)) >= best - 1e-4


@given(seed=seeds, yaw=angles, pitch=angles, roll=st.floats(-3.1, 3.1), size=sizes)
@settings(max_examples=40)
def test_a_shape_does_not_know_pose_place_and_size(
    seed: int, yaw: float, pitch: float, roll: float, size: float
) -> None:
    face = a_face(seed)
    front, turned = Shape(posed(face)), Shape(posed(face, yaw, pitch, roll, size))
    np.testing.assert_allclose(turned.points, front.points, atol=2e-3)


@given(seed=seeds, yaw=angles, pitch=angles, size=sizes)
@settings(max_examples=30)
def test_what_is_moved_in_the_shape_arrives_in_the_picture(seed: int, yaw: float, pitch: float, size: float) -> None:
    mesh = posed(a_face(seed), yaw, pitch, size=size)
    shape, offsets = Shape(mesh), a_face(seed + 1) - a_face(seed)
    offsets[topology.steady_points()] = 0  # they carry the pose
    moved = Shape(mesh + shape.to_picture(offsets))
    np.testing.assert_allclose(moved.points - shape.points, offsets, atol=1e-3)


@given(yaw=angles, pitch=angles, roll=st.floats(-3.1, 3.1))
@settings(max_examples=30)
def test_the_yaw_does_not_depend_on_nod_and_tilt(yaw: float, pitch: float, roll: float) -> None:
    assert Shape(posed(CANONICAL, yaw, pitch, roll)).yaw_rad == pytest.approx(yaw, abs=0.01)


@pytest.mark.parametrize("yaw", [-0.8, -0.1, 0.1, 0.8])
def test_the_yaw_is_positive_when_the_nose_points_right_in_the_picture(yaw: float) -> None:
    mesh = posed(CANONICAL, yaw)
    nose, ears = mesh[1, 0], mesh[[234, 454], 0].mean()
    assert (nose > ears) == (Shape(mesh).yaw_rad > 0) == (yaw > 0)


def raised(face: F32, points: tuple[int, ...], by: float) -> F32:
    moved = face.copy()
    moved[list(points), 1] -= by
    return moved


def steady(transfer: ShapeTransfer, source: Shape, face: F32, frames: int = 90) -> F32:
    for _ in range(frames):
        offsets = transfer.offsets(source, Shape(posed(face)), FRAME_S)
    return offsets.copy()


def test_the_features_go_to_where_the_source_has_them() -> None:
    source, person = Shape(posed(a_face(1))), Shape(posed(a_face(2))).points
    offsets = steady(ShapeTransfer(), source, person)
    inner = np.array([1, 4, 5, 6, 195, 197, 50, 280])  # nose and cheeks: far from the border, the lids and the lips
    before = np.linalg.norm((source.points - person)[inner], axis=1).mean()
    after = np.linalg.norm((source.points - person - offsets)[inner], axis=1).mean()
    assert after < 0.5 * before
    assert np.abs(offsets[list(topology.OVAL)]).max() < 1e-3  # the outline stays the person's


def test_a_person_who_is_the_source_is_not_moved() -> None:
    source = Shape(posed(a_face(1)))
    assert np.abs(steady(ShapeTransfer(), source, a_face(1))).max() < 1e-4


@pytest.mark.parametrize(
    ("points", "by"),
    [(topology.BROW_LEFT_TOP, 0.05), (topology.LIPS_INNER[11:], -0.08), (topology.EYE_LEFT[1:8], -0.02)],
)
def test_an_expression_of_a_moment_is_kept_as_it_is(points: tuple[int, ...], by: float) -> None:
    source, person, transfer = Shape(posed(a_face(1))), a_face(2), ShapeTransfer()
    at_rest = person + steady(transfer, source, person)
    made = raised(person, points, by)
    shown = made + steady(transfer, source, made, frames=3)
    np.testing.assert_allclose((shown - at_rest)[list(points), 1], -by, atol=0.1 * abs(by))


def test_openings_stay_the_persons_own_whatever_the_source_does() -> None:
    gaping = raised(a_face(1), topology.LIPS_INNER[11:], -0.15)
    person = a_face(2)
    shown = person + steady(ShapeTransfer(), Shape(posed(gaping)), person)
    for loop in (topology.LIPS_INNER, topology.EYE_LEFT, topology.EYE_RIGHT):
        half = len(loop) // 2
        upper, lower = list(loop[1:half]), list(loop[:half:-1])
        own = person[lower, 1] - person[upper, 1]
        np.testing.assert_allclose(shown[lower, 1] - shown[upper, 1], own, atol=0.004)


def test_a_turned_head_teaches_little() -> None:
    source, person, other = Shape(posed(a_face(1))), a_face(2), a_face(5)
    taught = {}
    for yaw in (0.0, 1.3):
        transfer = ShapeTransfer()
        before = steady(transfer, source, person)
        for _ in range(60):
            after = transfer.offsets(source, Shape(posed(other, yaw)), FRAME_S)
        taught[yaw] = float(np.abs(after - before).mean())
    assert taught[1.3] < 0.1 * taught[0.0]


def test_another_photo_moves_the_features_without_a_jump() -> None:
    first, second, person, transfer = Shape(posed(a_face(1))), Shape(posed(a_face(7))), a_face(2), ShapeTransfer()
    steps = [steady(transfer, first, person)]
    steps += [transfer.offsets(second, Shape(posed(person)), FRAME_S).copy() for _ in range(60)]
    whole = float(np.abs(steps[-1] - steps[0]).max())
    assert max(float(np.abs(b - a).max()) for a, b in pairwise(steps)) < 0.25 * whole
    np.testing.assert_allclose(steps[-1], steady(ShapeTransfer(), second, person), atol=2e-3)
