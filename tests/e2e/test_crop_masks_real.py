"""What stands before a face stays before it on real clips, with the crops of a network as with the mesh."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from engines.cpu import CpuDevice
from realtime import topology
from realtime.meter import Meter
from realtime.opacity import Opacity
from realtime.opacity.obstacles import Obstacles
from realtime.swappers import OBSTACLES
from realtime.swappers.mesh import MeshIdentity
from realtime.types import U8, Face
from tests.actor import AS_IT_IS, FRAME_S, a_swapper, inside, off
from tests.faces import Eyes, pictures_of
from tests.masks import SIDE, TEMPLATE, at

pytestmark = pytest.mark.data


def shown_in(pictures: list[U8], faces: list[Face]) -> list[U8]:
    """Opacity of the new face of a network in each picture, (H, W) uint8."""
    opacity = Opacity(TEMPLATE, SIDE, Meter(), parts=[Obstacles(CpuDevice(), SIDE)])
    out, patch = [], np.zeros((SIDE, SIDE, 4), np.uint8)
    for number, (picture, face) in enumerate(zip(pictures, faces, strict=True)):
        opacity.write(picture, face, at(face), None, number * FRAME_S, {OBSTACLES}, patch[..., 3])
        out.append(cv2.warpAffine(patch[..., 3].copy(), at(face), picture.shape[1::-1]))
    return out


def middle(picture: U8, face: Face) -> NDArray[np.bool_]:
    """Well inside the face."""
    return inside(picture.shape, face.mesh, topology.OVAL, int(0.12 * np.ptp(face.mesh[:, 1])))


@pytest.mark.parametrize("name", ["again", "brother", "milk"])
def test_a_card_before_the_chin_stays_before_it(eyes: Eyes, data_dir: Path, name: str) -> None:
    pictures = pictures_of(data_dir / "clips" / f"{name}.mkv", 45)
    clean = eyes.follow(pictures)
    still = clean[30].mesh
    (left, _), (right, _) = still[:, :2].min(0), still[:, :2].max(0)
    card = np.zeros(pictures[0].shape[:2], bool)
    card[int(still[17, 1]) :, max(int(left) - 40, 0) : int(right) + 40] = True  # from below the lower lip
    for picture in pictures[31:]:
        picture[card] = 60, 190, 40
    faces = eyes.follow(pictures)
    kept, painted = [], []
    for picture, shown, face, before in list(zip(pictures, shown_in(pictures, faces), faces, clean, strict=True))[32:]:
        kept.append((shown[card & inside(picture.shape, before.mesh, topology.OVAL, 3)] <= 40).mean())
        painted.append((shown[~card & middle(picture, face)] >= 200).mean())
    assert np.mean(kept) > 0.9
    assert np.mean(painted) > 0.9


@pytest.mark.parametrize("name", ["bird", "brother", "eat", "help"])
def test_a_hand_stays_where_the_mesh_swapper_keeps_it(
    eyes: Eyes, source: MeshIdentity, data_dir: Path, name: str
) -> None:
    pictures = pictures_of(data_dir / "clips" / f"{name}.mkv", 75)
    faces = eyes.follow(pictures)
    with_steps, without = a_swapper(source, look=AS_IT_IS), a_swapper(source, look=AS_IT_IS)
    hidden, hand_px, frames = 0, 0, 0
    for number, (picture, shown, face) in enumerate(zip(pictures, shown_in(pictures, faces), faces, strict=True)):
        kept, bare = picture.copy(), picture.copy()
        assert with_steps.swap(kept, face, number * FRAME_S, {OBSTACLES})
        assert without.swap(bare, face, number * FRAME_S, ())
        hand = (off(picture, bare, np.ones(picture.shape[:2], bool)).reshape(picture.shape[:2]) > 12) & (
            off(picture, kept, np.ones(picture.shape[:2], bool)).reshape(picture.shape[:2]) <= 3
        )
        hand = cv2.erode(hand.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
        if hand.sum() > 40:
            frames += 1
            hand_px += int(hand.sum())
            hidden += int((shown[hand] > 90).sum())
    assert frames >= 5
    assert hidden < 0.1 * hand_px


@pytest.mark.parametrize("name", ["please", "sister", "walk", "want", "hungry", "no"])
def test_where_nothing_is_in_front_nothing_is_kept(eyes: Eyes, data_dir: Path, name: str) -> None:
    """Talking, turning, glasses and blinks are no obstacles."""
    pictures = pictures_of(data_dir / "clips" / f"{name}.mkv", 60)
    faces = eyes.follow(pictures)
    alone = Opacity(TEMPLATE, SIDE, Meter())
    patch = np.zeros((SIDE, SIDE, 4), np.uint8)
    alone.write(pictures[0], faces[0], at(faces[0]), None, 0.0, (), patch[..., 3])
    outline = patch[..., 3].copy()
    less = []
    for shown, face in zip(shown_in(pictures, faces), faces, strict=True):
        whole = cv2.warpAffine(outline, at(face), shown.shape[::-1])
        less.append(1 - shown.sum() / whole.sum())
    assert np.mean(less) < 0.01
    assert np.max(less) < 0.08
