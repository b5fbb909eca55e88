from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from engines.card import load_card
from engines.cpu import CpuDevice
from realtime import geometry
from realtime.detect import Detection
from realtime.landmarks import MeshNet, decode, points5
from realtime.types import F32

CARD = load_card("face_landmark")


class FlatFaceEngine:
    """Answers with one fixed mesh in crop pixels and a fixed logit."""

    runtime, inputs, outputs = "fake", CARD.inputs, CARD.outputs

    def __init__(self, mesh: F32, logit: float) -> None:
        self._mesh, self._logit = mesh, logit

    def run(self, *tensors: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        return self._mesh.reshape(1, 1, 1, -1), np.full((1, 1, 1, 1), self._logit, np.float32)

    def close(self) -> None:
        pass


def a_mesh(seed: int = 1) -> F32:
    return np.random.default_rng(seed).uniform(20, 170, (468, 3)).astype(np.float32)


def a_net(mesh: F32, logit: float = 0.0) -> MeshNet:
    return MeshNet(CARD, FlatFaceEngine(mesh, logit), CpuDevice())


@given(st.floats(10, 2000), st.floats(-3, 3), st.floats(-500, 500))
def test_depth_is_scaled_like_width(side: float, turn: float, shift: float) -> None:
    frame_from_crop = geometry.square_crop((shift, -shift), side, (np.cos(turn), np.sin(turn)), 192)
    crop = a_mesh()
    mesh = decode(crop.ravel(), frame_from_crop)
    a, b = 5, 300
    assert np.linalg.norm(mesh[a] - mesh[b]) == pytest.approx(np.linalg.norm(crop[a] - crop[b]) * side / 192, rel=1e-3)
    assert mesh[7, 2] == pytest.approx(crop[7, 2] * side / 192, rel=1e-5)


@pytest.mark.parametrize(("logit", "presence"), [(0.0, 0.5), (2.0, 0.8807970779), (-900.0, 0.0), (900.0, 1.0)])
def test_presence_is_the_sigmoid_of_the_logit(logit: float, presence: float) -> None:
    _, found = a_net(a_mesh(), logit).locate(np.zeros((50, 50, 3), np.uint8), np.eye(2, 3))
    assert found == pytest.approx(presence)


def test_the_mesh_is_a_fresh_array_in_frame_pixels() -> None:
    crop, picture = a_mesh(), np.zeros((50, 50, 3), np.uint8)
    net = a_net(crop)
    first, _ = net.locate(picture, np.array([[0.5, 0, 10], [0, 0.5, 20]]))
    second, _ = net.locate(picture, np.eye(2, 3))
    np.testing.assert_allclose(first, crop * 0.5 + (10, 20, 0), rtol=1e-6)
    np.testing.assert_array_equal(second, crop)


def test_the_crop_of_a_detection_is_larger_centred_and_level_with_the_eyes() -> None:
    points = np.zeros((6, 2), np.float32)
    points[:2] = (90, 100), (110, 110)
    face = Detection(np.array([60, 70, 140, 130], np.float32), 0.9, points)
    frame_from_crop = a_net(a_mesh()).crop_of_detection(face)
    corners = geometry.apply(frame_from_crop, [[0, 0], [192, 0], [96, 96]])
    np.testing.assert_allclose(corners[2], (100, 100), atol=1e-4)
    assert np.linalg.norm(corners[1] - corners[0]) == pytest.approx(80 * 1.5)
    direction = corners[1] - corners[0]
    assert direction[1] / direction[0] == pytest.approx(10 / 20)


def test_the_next_crop_follows_the_mesh_and_levels_its_eyes() -> None:
    mesh = a_mesh()
    frame_from_crop = a_net(mesh).crop_of_mesh(mesh)
    left, right = geometry.apply(geometry.invert(frame_from_crop), mesh[[33, 263], :2])
    assert left[1] == pytest.approx(right[1], abs=1e-3)
    assert left[0] < right[0]
    box = geometry.bounds(mesh)
    side = np.hypot(*frame_from_crop[:, 0]) * 192
    assert side == pytest.approx(1.5 * float((box[2:] - box[:2]).max()), rel=1e-5)


def test_points5_are_eye_centres_nose_and_mouth_corners() -> None:
    mesh = np.zeros((468, 3), np.float32)
    mesh[[33, 133], 0] = 10, 26
    mesh[[1, 61, 291]] = (5, 6, 7), (1, 2, 3), (3, 4, 5)
    five = points5(mesh)
    assert five.shape == (5, 2)
    assert five.dtype == np.float32
    np.testing.assert_allclose(five, np.array([[36 / 16, 0], [0, 0], [5, 6], [1, 2], [3, 4]]))
