"""The mesh swap on real clips, with the real networks and tracker: mouth, eyes, light, what is in front."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from realtime import geometry, topology
from realtime.swappers import OBSTACLES, Look
from realtime.swappers.mesh import MeshIdentity
from realtime.types import F32, U8, Face
from tests.actor import AS_IT_IS, FRAME_S, LOOK, a_swapper, inside, off
from tests.faces import Eyes, face_of, pictures_of

pytestmark = pytest.mark.data

Clip = tuple[list[U8], list[Face]]


@pytest.fixture(scope="module")
def clip(eyes: Eyes, data_dir: Path) -> Callable[[str], Clip]:
    """The pictures of a clip and the face followed in them."""

    @lru_cache
    def read(name: str) -> Clip:
        pictures = pictures_of(data_dir / "clips" / f"{name}.mkv", 60)
        return pictures, eyes.follow(pictures)

    return read


def swapped(source: MeshIdentity, pictures: list[U8], faces: list[Face], look: Look = LOOK) -> list[U8]:
    swapper = a_swapper(source, look=look)
    out = [picture.copy() for picture in pictures]
    for number, (picture, face) in enumerate(zip(out, faces, strict=True)):
        assert swapper.swap(picture, face, number * FRAME_S, {OBSTACLES})
    return out


def cheeks(picture: U8, mesh: F32) -> NDArray[np.bool_]:
    return inside(picture.shape, mesh, (50, 205, 187, 147)) | inside(picture.shape, mesh, (280, 425, 411, 376))


def mouth_opening(face: Face) -> float:
    return float(np.linalg.norm(face.mesh[13, :2] - face.mesh[14, :2]) / np.ptp(face.mesh[:, 1]))


@pytest.mark.parametrize("name", ["again", "bird", "book", "no", "want", "yes"])
def test_a_face_is_painted_in_every_picture_and_nothing_else_is_touched(
    source: MeshIdentity, clip: Callable[[str], Clip], name: str
) -> None:
    pictures, faces = clip(name)
    for before, after, face in zip(pictures, swapped(source, pictures, faces), faces, strict=True):
        left, top, right, bottom = geometry.bounds(face.mesh)
        reach = 0.1 * (bottom - top) + 3
        outside = np.ones(before.shape[:2], bool)
        box = np.array([left - reach, top - reach, right + reach, bottom + reach]).clip(0)
        outside[int(box[1]) : int(box[3]), int(box[0]) : int(box[2])] = False
        np.testing.assert_array_equal(before[outside], after[outside])
        middle = inside(before.shape, face.mesh, topology.OVAL, int(0.12 * (bottom - top)))
        assert off(before, after, middle).mean() > 4


@pytest.mark.parametrize("name", ["bird", "eat", "sister"])
def test_an_open_mouth_shows_the_persons_own_inside(
    source: MeshIdentity, clip: Callable[[str], Clip], name: str
) -> None:
    pictures, faces = clip(name)
    widest = max(range(1, len(faces)), key=lambda number: mouth_opening(faces[number]))
    assert mouth_opening(faces[widest]) > 0.05
    near = slice(max(0, widest - 10), widest + 1)
    large = [np.asarray(cv2.resize(picture, None, fx=3, fy=3), np.uint8) for picture in pictures[near]]
    mesh = faces[widest].mesh * np.float32(3)
    out = swapped(source, large, [face_of(face.mesh * np.float32(3)) for face in faces[near]], AS_IT_IS)
    mouth = inside(large[0].shape, mesh, topology.LIPS_INNER, 2)
    assert mouth.sum() > 200
    assert np.percentile(off(large[-1], out[-1], mouth), 95) <= 8


@pytest.mark.parametrize("name", ["again", "no", "yes"])
def test_the_eyes_are_the_persons_own(source: MeshIdentity, clip: Callable[[str], Clip], name: str) -> None:
    pictures, faces = clip(name)
    out = swapped(source, pictures, faces, AS_IT_IS)
    for before, after, face in list(zip(pictures, out, faces, strict=True))[::6]:
        for eye in (topology.EYE_LEFT, topology.EYE_RIGHT):
            pupil = inside(before.shape, face.mesh, eye, 1)
            if pupil.sum() > 12:
                assert np.percentile(off(before, after, pupil), 90) <= 12


@pytest.mark.parametrize("name", ["again", "book", "night"])
def test_half_the_light_in_the_room_is_half_the_light_on_the_face(
    source: MeshIdentity, clip: Callable[[str], Clip], name: str
) -> None:
    pictures, faces = clip(name)
    pictures, faces = pictures[:25], faces[:25]
    dim = [np.asarray(cv2.convertScaleAbs(picture, alpha=0.5), np.uint8) for picture in pictures]
    bright, dark = (swapped(source, scene, faces)[-1] for scene in (pictures, dim))
    skin = cheeks(bright, faces[-1].mesh)
    assert dark[skin].mean() / bright[skin].mean() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("name", ["again", "brother", "milk"])
def test_a_card_before_the_chin_stays_before_it(
    eyes: Eyes, source: MeshIdentity, clip: Callable[[str], Clip], name: str
) -> None:
    pictures, faces = clip(name)
    pictures, clean = [picture.copy() for picture in pictures[:45]], faces[:45]
    still = clean[30].mesh
    (left, _), (right, _) = still[:, :2].min(0), still[:, :2].max(0)
    card = np.zeros(pictures[0].shape[:2], bool)
    card[int(still[17, 1]) :, max(int(left) - 40, 0) : int(right) + 40] = True  # from below the lower lip
    for picture in pictures[31:]:
        picture[card] = 60, 190, 40
    out = swapped(source, pictures, eyes.follow(pictures))
    kept = []
    for before, after, face in list(zip(pictures, out, clean, strict=True))[32:]:
        kept.append((off(before, after, card & inside(before.shape, face.mesh, topology.OVAL, 3)) <= 12).mean())
    assert np.mean(kept) > 0.85
