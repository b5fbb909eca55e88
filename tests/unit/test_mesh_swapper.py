"""The mesh swap on a drawn person whose every point is known: what is painted and what stays."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from realtime import topology
from realtime.assets import sample_source
from realtime.swappers import Look
from realtime.swappers.mesh import MeshIdentity
from realtime.types import F32, U8
from tests.actor import (
    AS_IT_IS,
    EYE_BGR,
    MOUTH_BGR,
    Actor,
    a_swapper,
    brightness,
    cheeks,
    inside,
    off,
    pose,
    swapped,
)
from tests.faces import Eyes, face_of

UNDER_THE_NOSE, LOWER_LIP, UNDER_THE_LIP, ON_THE_CHIN = 2, 14, 17, 200


def test_the_source_face_takes_the_place_of_the_persons(source: MeshIdentity, actor: Actor) -> None:
    mesh = pose()
    picture = actor.picture(mesh)
    glasses = inside(picture.shape, mesh, (*topology.BROW_LEFT_TOP, 55, 65, 52, 53, 46))
    out = swapped(a_swapper(source, look=AS_IT_IS), picture, mesh, 10)
    assert off(picture, out, glasses).mean() > 20
    alone = Actor(source.texture).picture(mesh)
    level = out[cheeks(mesh)].mean(0) / alone[cheeks(mesh)].mean(0)  # the light of the scene
    nose = inside(picture.shape, mesh, (9, 55, 129, 2, 358, 285))
    assert np.abs(out[nose] - np.clip(alone[nose] * level, 0, 255)).mean() < 8


@pytest.mark.parametrize("opening", [0.06, 0.15])
@pytest.mark.parametrize("yaw_rad", [0.0, 0.5])
def test_an_open_mouth_shows_the_persons_own_inside(
    source: MeshIdentity, actor: Actor, opening: float, yaw_rad: float
) -> None:
    mesh = pose(mouth=opening, yaw_rad=yaw_rad)
    picture = actor.picture(mesh)
    out = swapped(a_swapper(source, look=AS_IT_IS), picture, mesh, 10)
    mouth = inside(picture.shape, mesh, topology.LIPS_INNER, 2)
    assert mouth.any()
    assert off(picture, out, mouth).max() <= 6


def test_a_mouth_that_opens_is_the_persons_own_where_the_new_lips_are(source: MeshIdentity, actor: Actor) -> None:
    swapper, shut, wide = a_swapper(source), pose(), pose(mouth=0.12)
    swapped(swapper, actor.picture(shut), shut, 30)
    out = swapped(swapper, actor.picture(wide), wide, start_s=1)
    own = np.abs(out.astype(np.float32) - MOUTH_BGR).max(-1) < 12
    hole = inside(out.shape, wide, topology.LIPS_INNER)
    assert own.sum() == pytest.approx(hole.sum(), rel=0.2)


def teeth(picture: U8, mesh: F32) -> float:
    """Share of the mouth's pixels that are brighter and paler than skin."""
    mouth = inside(picture.shape, mesh, topology.LIPS_OUTER)
    hsv = cv2.cvtColor(picture, cv2.COLOR_BGR2HSV).astype(np.float32)
    skin = np.median(hsv[cheeks(mesh)], axis=0)
    return float(((hsv[..., 2] > skin[2] - 25) & (hsv[..., 1] < 0.55 * skin[1]))[mouth].mean())


def test_a_shut_mouth_shows_no_teeth_of_the_source(eyes: Eyes, source: MeshIdentity, actor: Actor) -> None:
    photo, found = eyes.portrait(sample_source())
    scale = 200 / float(np.ptp(found[:, 1]))
    smile, there = cv2.resize(photo, None, fx=scale, fy=scale), found * np.float32(scale)
    window = np.asarray(smile[:480, 100:740], np.uint8)
    assert teeth(window, there - np.array([100, 0, 0], np.float32)) > 0.05  # the photo does show them
    mesh = pose()
    assert teeth(swapped(a_swapper(source), actor.picture(mesh), mesh, 10), mesh) < 0.01


@pytest.mark.parametrize("yaw_rad", [-0.5, 0.0, 0.5])
def test_the_eyes_are_the_persons_own(source: MeshIdentity, actor: Actor, yaw_rad: float) -> None:
    mesh = pose(yaw_rad=yaw_rad)
    picture = actor.picture(mesh)
    out = swapped(a_swapper(source, look=AS_IT_IS), picture, mesh, 10)
    for eye in (topology.EYE_LEFT, topology.EYE_RIGHT):
        pupil = inside(picture.shape, mesh, eye, 2)
        assert pupil.any()
        assert off(picture, out, pupil).max() <= 6


def test_eyes_that_are_moved_to_the_sources_place_are_still_the_persons_own(source: MeshIdentity, actor: Actor) -> None:
    mesh = pose()
    picture = actor.picture(mesh)
    out = swapped(a_swapper(source), picture, mesh, 10)
    for shown, least in ((picture, 1.0), (out, 0.8)):
        blue = np.abs(shown.astype(np.float32) - EYE_BGR).max(-1) < 20
        eyes = inside(picture.shape, mesh, topology.EYE_LEFT) | inside(picture.shape, mesh, topology.EYE_RIGHT)
        assert blue.sum() >= least * eyes.sum()


@pytest.mark.parametrize("light", [0.35, 0.5, 0.75])
def test_the_face_is_as_dark_as_the_scene(source: MeshIdentity, actor: Actor, light: float) -> None:
    mesh = pose()
    bright = swapped(a_swapper(source), actor.picture(mesh), mesh, 30)
    dark = swapped(a_swapper(source), actor.picture(mesh, light=light), mesh, 30)
    assert brightness(dark, mesh) / brightness(bright, mesh) == pytest.approx(light, rel=0.1)


def test_a_lamp_that_goes_out_darkens_the_face_within_a_second(source: MeshIdentity, actor: Actor) -> None:
    mesh, swapper = pose(), a_swapper(source)
    before = brightness(swapped(swapper, actor.picture(mesh), mesh, 30), mesh)
    after = brightness(swapped(swapper, actor.picture(mesh, light=0.5), mesh, 45, start_s=1.0), mesh)
    assert after / before == pytest.approx(0.5, rel=0.15)


def test_light_from_one_side_stays_on_that_side(source: MeshIdentity, actor: Actor) -> None:
    mesh = pose()

    def right_over_left(light: tuple[float, float]) -> float:
        out = swapped(a_swapper(source), actor.picture(mesh, light=light), mesh, 30)
        left, right = (
            float(out[int(mesh[point, 1]), int(mesh[point, 0]) - 6 : int(mesh[point, 0]) + 6].mean())
            for point in (50, 280)
        )
        return right / left

    assert right_over_left((0.5, 1.1)) > 1.1 * right_over_left((0.8, 0.8)) > 1.2 * right_over_left((1.1, 0.5))


def test_the_tone_of_the_scene_is_left_alone_when_asked(source: MeshIdentity, actor: Actor) -> None:
    mesh = pose()
    looks = {
        light: brightness(
            swapped(a_swapper(source, look=Look(colour=0)), actor.picture(mesh, light=light), mesh, 30), mesh
        )
        for light in (1.0, 0.4)
    }
    assert looks[0.4] == pytest.approx(looks[1.0], rel=0.03)


def stripes(picture: U8, mesh: F32, from_point: int = UNDER_THE_LIP) -> tuple[U8, NDArray[np.bool_]]:
    """A striped card before the lower face, and where it is."""
    card = np.zeros(picture.shape[:2], bool)
    card[int(mesh[from_point, 1]) :, 180:460] = True
    y, _ = np.mgrid[: picture.shape[0], : picture.shape[1]]
    colour = np.where((y // 9 % 2 == 0)[..., None], (60, 190, 40), (30, 30, 40))
    return np.where(card[..., None], colour, picture).astype(np.uint8), card


@pytest.mark.parametrize("from_point", [UNDER_THE_NOSE, LOWER_LIP, UNDER_THE_LIP, ON_THE_CHIN])
def test_a_card_before_the_face_stays_before_it(source: MeshIdentity, actor: Actor, from_point: int) -> None:
    mesh, swapper = pose(), a_swapper(source, look=AS_IT_IS)
    picture = actor.picture(mesh)
    swapped(swapper, picture, mesh, 30)
    covered, card = stripes(picture, mesh, from_point)
    out = swapped(swapper, covered, mesh, 5, start_s=1.0)
    on_face = card & inside(picture.shape, mesh, topology.OVAL, 4)
    kept = off(covered, out, on_face) <= 12
    assert kept.mean() > 0.9
    above = inside(picture.shape, mesh, topology.OVAL, 4) & ~card
    above[int(mesh[from_point, 1]) - 25 :] = False
    clean = swapped(a_swapper(source, look=AS_IT_IS), picture, mesh, 5)
    assert off(clean, out, above).mean() < 6  # and the face goes on above it


def test_without_that_step_it_is_painted_over(source: MeshIdentity, actor: Actor) -> None:
    mesh, swapper = pose(), a_swapper(source, look=AS_IT_IS)
    picture = actor.picture(mesh)
    swapped(swapper, picture, mesh, 30)
    covered, card = stripes(picture, mesh)
    out = covered.copy()
    swapper.swap(out, face_of(mesh), 1.0, ())
    on_face = card & inside(picture.shape, mesh, topology.OVAL, 15)
    assert (off(covered, out, on_face) <= 12).mean() < 0.5


def test_the_face_comes_back_when_the_card_goes(source: MeshIdentity, actor: Actor) -> None:
    mesh, swapper = pose(), a_swapper(source, look=AS_IT_IS)
    picture = actor.picture(mesh)
    clean = swapped(swapper, picture, mesh, 30)
    swapped(swapper, stripes(picture, mesh)[0], mesh, 15, start_s=1.0)
    out = swapped(swapper, picture, mesh, 30, start_s=1.5)
    assert off(clean, out, inside(picture.shape, mesh, topology.OVAL)).mean() < 3
