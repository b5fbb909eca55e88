from __future__ import annotations

from collections.abc import Collection

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime import reduced
from realtime.swappers import Look, Painted
from realtime.types import U8, Face, Size
from tests.stage import Actor

BLUE = (255, 0, 0)


class PaintBox:
    """Paints the box of a face in one colour, or refuses."""

    painted: Painted | None = None

    def __init__(self, *, refuse: bool = False) -> None:
        self.refuse = refuse
        self.seen: list[tuple[Size, Face]] = []

    def swap(self, pixels: U8, face: Face, now_s: float, steps: Collection[str]) -> bool:
        self.seen.append((Size(pixels.shape[1], pixels.shape[0]), face))
        if not self.refuse:
            left, top, right, bottom = (round(float(v)) for v in face.box_xyxy)
            cv2.rectangle(pixels, (left, top), (right - 1, bottom - 1), BLUE, -1)
        return not self.refuse

    def forget(self, followed: Collection[int]) -> None:
        pass

    def relook(self, look: Look) -> bool:
        return True


def a_face(x: float, y: float, height: float) -> Face:
    actor = Actor(x, y, height)
    return Face(actor.box, 0.9, actor.mesh[:5, :2].copy(), actor.mesh, 1, 0)


def noise(size: Size) -> U8:
    return np.random.default_rng(3).integers(0, 256, (size.h, size.w, 3), dtype=np.uint8)


def test_only_the_painted_part_of_the_picture_changes_and_it_changes_wholly() -> None:
    before = noise(Size(640, 480))
    pixels = before.copy()
    painter = PaintBox()
    assert reduced.swap(painter, pixels, a_face(300, 200, 200), 0.0, (), 0.5)
    np.testing.assert_array_equal(pixels[102:298, 202:398], np.broadcast_to(BLUE, (196, 196, 3)))
    far = np.ones((480, 640), bool)
    far[85:315, 185:415] = False
    np.testing.assert_array_equal(pixels[far], before[far])


def test_the_face_is_where_it_was_in_the_smaller_copy() -> None:
    painter, face = PaintBox(), a_face(300, 200, 200)
    reduced.swap(painter, noise(Size(640, 480)), face, 0.0, (), 0.5)
    ((size, small),) = painter.seen
    assert size == Size(150, 150)
    np.testing.assert_allclose(small.box_xyxy, [25, 25, 125, 125], atol=0.5)
    np.testing.assert_allclose(small.mesh, (face.mesh - (150, 50, 0)) / 2, atol=0.5)
    np.testing.assert_allclose(small.points5, (face.points5 - (150, 50)) / 2, atol=0.5)


@pytest.mark.parametrize(("height", "scale"), [(200, 1.0), (90, 0.5), (96, 0.25)])
def test_at_full_scale_and_for_small_faces_the_frame_itself_is_painted(height: float, scale: float) -> None:
    painter, face = PaintBox(), a_face(300, 200, height)
    reduced.swap(painter, noise(Size(640, 480)), face, 0.0, (), scale)
    assert painter.seen == [(Size(640, 480), face)]


def test_a_face_that_was_not_painted_leaves_the_frame_as_it_was() -> None:
    before = noise(Size(640, 480))
    pixels = before.copy()
    assert not reduced.swap(PaintBox(refuse=True), pixels, a_face(300, 200, 200), 0.0, (), 0.5)
    np.testing.assert_array_equal(pixels, before)


@given(st.floats(-400, 1000), st.floats(-400, 900), st.floats(0.5, 900), st.floats(0.05, 1))
def test_a_face_anywhere_is_painted_or_refused(x: float, y: float, height: float, scale: float) -> None:
    pixels = np.full((48, 64, 3), 128, np.uint8)
    reduced.swap(PaintBox(), pixels, a_face(x, y, height), 0.0, (), scale)
