from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.smoothing import LONGEST_GAP_S, MeshSmoother
from realtime.types import F32

LIPS = np.arange(20, 60)
JITTER = 0.003  # standard deviation of the network's points on a still face, over the face's height


def a_face(height_px: float) -> F32:
    mesh = np.random.default_rng(0).uniform(0, 1, (468, 3)).astype(np.float32)
    mesh[:2, 1] = 0, 1
    return mesh * np.float32(height_px)


@pytest.mark.parametrize("height_px", [40.0, 300.0])
@pytest.mark.parametrize(("fps", "least"), [(15, 2.0), (30, 3.0), (60, 4.5)])
@pytest.mark.parametrize("together", [False, True], ids=["each point", "whole face"])
def test_a_still_face_hardly_jitters(fps: int, least: float, height_px: float, together: bool) -> None:
    face, random, smoother = a_face(height_px), np.random.default_rng(1), MeshSmoother()
    measured, shown = [], []
    for frame in range(5 * fps):
        noise = random.normal(0, JITTER * height_px, (1, 3) if together else (468, 3))
        measured.append((face + noise).astype(np.float32))
        shown.append(smoother.smooth(measured[-1], frame / fps))

    def flicker(meshes: list[F32]) -> float:
        return float(np.diff(np.stack(meshes[fps:])[..., :2], axis=0).std())

    assert flicker(measured) > least * flicker(shown)


@pytest.mark.parametrize("fps", [15, 30, 60])
@pytest.mark.parametrize("height_px", [40.0, 300.0])
@pytest.mark.parametrize("direction", [(1.0, 0.0), (0.6, -0.8)])
def test_a_moving_face_is_not_trailed(fps: int, height_px: float, direction: tuple[float, float]) -> None:
    face, smoother = a_face(height_px), MeshSmoother()
    for frame in range(2 * fps):
        way = np.array([*direction, 0.0], np.float32) * np.float32(frame / fps * height_px)  # one height per second
        lag = np.abs(smoother.smooth(face + way, frame / fps) - face - way)
    assert lag.max() < 0.015 * height_px


@pytest.mark.parametrize("fps", [15, 30, 60])
def test_a_fast_mouth_is_open_within_two_frames(fps: int) -> None:
    face, smoother, opened = a_face(200.0), MeshSmoother(), 0.0
    for frame in range(fps + round(0.1 * fps) + 2):
        mesh = face.copy()
        mesh[LIPS, 1] += np.clip(frame / fps - 1, 0, 0.1) * 200  # a tenth of the height in a tenth of a second
        opened = float((smoother.smooth(mesh, frame / fps) - face)[LIPS, 1].mean())
    assert opened > 0.9 * 0.1 * 200


def test_the_rest_of_the_face_stays_still_while_the_mouth_opens() -> None:
    face, smoother = a_face(200.0), MeshSmoother()
    for frame in range(40):
        mesh = face.copy()
        mesh[LIPS, 1] += 10 * (frame >= 30)
        shown = smoother.smooth(mesh, frame / 30)
    assert np.abs(np.delete(shown - face, LIPS, axis=0)).max() < 1e-3


@given(st.lists(st.sampled_from([0.0, -1.0, -0.01, 1e-9, 0.01, 1 / 30, 0.2, 0.3, 60.0]), max_size=20))
def test_no_time_stamp_breaks_it_and_a_gap_starts_anew(steps: list[float]) -> None:
    smoother, now_s = MeshSmoother(), 100.0
    smoother.smooth(a_face(50.0), now_s)
    for number, step_s in enumerate(steps):
        now_s += step_s
        measured = a_face(50.0) + np.float32(5 * number)
        shown = smoother.smooth(measured, now_s)
        assert np.isfinite(shown).all()
        if not 0 < step_s <= LONGEST_GAP_S:
            np.testing.assert_array_equal(shown, measured)


def test_the_mesh_given_out_is_the_callers() -> None:
    smoother = MeshSmoother()
    measured = a_face(50.0)
    for frame in range(3):
        shown = smoother.smooth(measured, frame / 30)
        np.testing.assert_allclose(shown, a_face(50.0), atol=1e-3)
        shown += 1000
    np.testing.assert_array_equal(measured, a_face(50.0))
