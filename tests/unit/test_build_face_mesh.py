"""The shipped surface is what its script makes, as far as that can be shown without MediaPipe's wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from realtime.assets import ASSETS
from realtime.assets.build_face_mesh import (
    MEMBER,
    MEMBER_SHA256,
    PHOTO_SHA256,
    layout,
    mesh_of,
    mirror_of,
    symmetric,
    triangles_in,
)

SOURCE = """
FACEMESH_LIPS = frozenset([(61, 146), (146, 91)])
FACEMESH_TESSELATION = frozenset([
    (127, 34),  (34, 139),  (139, 127), (11, 0), (0, 37),
    (37, 11)])
"""


@pytest.fixture(scope="module")
def shipped() -> dict[str, NDArray[Any]]:
    with np.load(ASSETS / "face_mesh.npz") as data:
        return dict(data)


def test_triangles_are_read_from_the_list_of_edges_and_turned_to_the_camera() -> None:
    np.testing.assert_array_equal(triangles_in(SOURCE), [[139, 34, 127], [37, 0, 11]])


def test_a_list_in_another_order_is_refused() -> None:
    with pytest.raises(ValueError, match="one triangle after the other"):
        triangles_in(SOURCE.replace("(37, 11)", "(11, 37)"))


def test_the_mirror_map_follows_from_the_triangles(shipped: dict[str, NDArray[Any]]) -> None:
    np.testing.assert_array_equal(mirror_of(shipped["triangles"]), shipped["mirror"])


def test_a_walk_that_went_astray_is_noticed(shipped: dict[str, NDArray[Any]]) -> None:
    away = shipped["triangles"][:, ::-1]  # turned away, the triangles come in an order that meets a diagonal too early
    with pytest.raises(ValueError, match="have no opposite, expected 6"):
        mirror_of(away)


def test_the_layout_follows_from_the_shape(shipped: dict[str, NDArray[Any]]) -> None:
    uv = layout(shipped["canonical"], shipped["triangles"], shipped["mirror"])
    np.testing.assert_allclose(uv, shipped["uv"], atol=1e-6)


@given(seed=st.integers(0, 99), yaw=st.floats(-0.3, 0.3), roll=st.floats(-0.3, 0.3), size=st.floats(20, 500))
@settings(max_examples=20)
def test_any_face_becomes_symmetric_upright_and_of_height_one(seed: int, yaw: float, roll: float, size: float) -> None:
    with np.load(ASSETS / "face_mesh.npz") as data:
        canonical, mirror = data["canonical"], data["mirror"]
    lopsided = canonical + np.random.default_rng(seed).normal(0, 0.01, canonical.shape)
    turn = cv2.Rodrigues(np.array([0.0, yaw, 0.0]))[0] @ cv2.Rodrigues(np.array([0.0, 0.0, roll]))[0]
    face = (size * lopsided @ turn.T + (300, 200, 0)).astype(np.float32)
    made = symmetric(face, mirror)
    np.testing.assert_allclose(made, made[mirror] * (-1, 1, 1), atol=1e-4)
    np.testing.assert_allclose(made[152] - made[10], (0, 1, 0), atol=1e-4)
    assert made[454, 0] > 0 > made[1, 2]  # the right side is right, the nose points at the camera
    np.testing.assert_allclose(made, symmetric(lopsided.astype(np.float32), mirror), atol=1e-3)


@pytest.mark.data
def test_the_shape_is_that_of_the_photo(shipped: dict[str, NDArray[Any]], data_dir: Path) -> None:
    photo = np.asarray(cv2.imread(str(data_dir / "faces" / "astronaut.png")), np.uint8)
    np.testing.assert_allclose(symmetric(mesh_of(photo), shipped["mirror"]), shipped["canonical"], atol=1e-3)


def test_the_notice_names_what_was_taken_and_from_where() -> None:
    notice = (ASSETS / "NOTICE").read_text(encoding="utf-8")
    assert all(word in notice for word in (MEMBER, MEMBER_SHA256, PHOTO_SHA256, "face_mesh.npz", "Apache License"))
