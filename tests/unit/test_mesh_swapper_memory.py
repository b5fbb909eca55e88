"""The mesh swap over time and at its limits: what it remembers of whom, and that it never breaks and never strays."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime import geometry, topology
from realtime.swappers import LEAST_FACE_PX, OBSTACLES, Look
from realtime.swappers.mesh import FADE_S, MeshIdentity, identity_of
from realtime.swappers.texture import build_texture
from realtime.types import F32, U8, Size
from tests.actor import AS_IT_IS, FRAME_S, Actor, a_swapper, brightness, cheeks, inside, off, pose, swapped
from tests.faces import face_of


def test_without_likeness_and_opacity_nothing_changes_and_with_likeness_the_features_move(
    source: MeshIdentity, actor: Actor
) -> None:
    mesh = pose()
    picture = actor.picture(mesh)
    still = swapped(a_swapper(source, look=Look(likeness=0, opacity=0)), picture, mesh, 3)
    moved = swapped(a_swapper(source, look=Look(likeness=1, opacity=0)), picture, mesh, 3)
    np.testing.assert_array_equal(still, picture)
    assert (moved != picture).any()


def test_the_same_pictures_give_the_same_result(source: MeshIdentity, actor: Actor) -> None:
    moments = [pose(at=(300 + 4 * k, 240), mouth=0.02 * (k % 3)) for k in range(6)]
    runs = []
    for _ in range(2):
        swapper = a_swapper(source)
        runs.append(
            [swapped(swapper, actor.picture(mesh), mesh, start_s=k * FRAME_S) for k, mesh in enumerate(moments)]
        )
    for one, other in zip(*runs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_forgotten_starts_afresh_and_the_others_go_on(source: MeshIdentity, actor: Actor) -> None:
    mesh = pose()
    bright, dark = actor.picture(mesh), actor.picture(mesh, light=0.5)

    def then(forgotten_but: Iterable[int], track_id: int) -> float:
        swapper = a_swapper(source)
        for person in (1, 2):
            for number in range(10):
                assert swapper.swap(bright.copy(), face_of(mesh, person), number * FRAME_S, {OBSTACLES})
        swapper.forget(list(forgotten_but))
        out = dark.copy()
        assert swapper.swap(out, face_of(mesh, track_id), 10 * FRAME_S, {OBSTACLES})
        return brightness(out, mesh)

    fresh = brightness(swapped(a_swapper(source), dark, mesh), mesh)
    assert then([2], track_id=1) == pytest.approx(fresh, abs=0.5)
    assert then([1], track_id=1) > 1.2 * fresh  # still has the light of before
    assert then([1, 2, 3], track_id=2) == pytest.approx(then([2], track_id=2))


def test_two_people_do_not_share_a_memory(source: MeshIdentity, actor: Actor) -> None:
    swapper, alone = a_swapper(source), a_swapper(source)
    here, there = pose(at=(200, 240)), pose(at=(440, 240), height_px=150)
    for number in range(10):
        now_s = number * FRAME_S
        both = np.where((np.arange(640) < 320)[:, None], actor.picture(here), actor.picture(there, light=0.4))
        single = both.copy()
        assert swapper.swap(both, face_of(there, 7), now_s, {OBSTACLES})
        assert swapper.swap(both, face_of(here, 3), now_s, {OBSTACLES})
        assert alone.swap(single, face_of(here, 3), now_s, {OBSTACLES})
        np.testing.assert_array_equal(both[:, :320], single[:, :320])


def test_of_several_photos_the_one_that_faces_like_the_person_is_shown(source: MeshIdentity, actor: Actor) -> None:
    red = a_tinted((60, 60, 220), yaw_rad=0.5)
    blue = a_tinted((220, 60, 60), yaw_rad=-0.5)
    look = Look(likeness=0, colour=0)
    for yaw_rad, channel in ((0.4, 2), (-0.4, 0)):
        mesh = pose(yaw_rad=yaw_rad)
        out = swapped(a_swapper(red, blue, look=look), actor.picture(mesh), mesh, 2)
        assert int(out[cheeks(mesh)].mean(0).argmax()) == channel


def test_one_photo_fades_into_another_and_does_not_flap(source: MeshIdentity, actor: Actor) -> None:
    red, blue = a_tinted((60, 60, 220), yaw_rad=0.5), a_tinted((220, 60, 60), yaw_rad=-0.5)
    swapper = a_swapper(red, blue, look=Look(likeness=0, colour=0))

    def redness(yaw_rad: float, now_s: float) -> float:
        mesh = pose(yaw_rad=yaw_rad)
        out = swapped(swapper, actor.picture(mesh), mesh, start_s=now_s)
        b, _, r = out[inside(out.shape, mesh, (50, 280, 1))].mean(0)
        return float(r - b)

    right = [redness(0.3, k * FRAME_S) for k in range(3)]
    middle = [redness(0.05 * (-1) ** k, (3 + k) * FRAME_S) for k in range(8)]
    left = [redness(-0.3, (11 + k) * FRAME_S) for k in range(int(FADE_S / FRAME_S) + 4)]
    assert min(right + middle) > 80
    assert left[-1] < -80
    assert np.abs(np.diff([*middle[-1:], *left])).max() < 0.5 * (right[0] - left[-1])


def a_tinted(bgr: tuple[int, int, int], yaw_rad: float) -> MeshIdentity:
    """A source of one colour, photographed turned."""
    mesh = pose(yaw_rad=yaw_rad, at=(150, 150), height_px=200)
    return identity_of(build_texture(np.full((300, 300, 3), bgr, np.uint8), mesh))


def assert_only_the_face_changed(before: U8, after: U8, mesh: F32) -> None:
    left, top, right, bottom = geometry.bounds(mesh)
    reach = 0.1 * float(bottom - top) + 3
    changed = np.argwhere((before != after).any(-1))
    if changed.size:
        assert changed[:, 0].min() >= top - reach
        assert changed[:, 0].max() <= bottom + reach
        assert changed[:, 1].min() >= left - reach
        assert changed[:, 1].max() <= right + reach


@given(
    x=st.floats(-200, 500),
    y=st.floats(-200, 400),
    height_px=st.floats(2, 900),
    yaw_rad=st.floats(-1.6, 1.6),
    roll_rad=st.floats(-3.1, 3.1),
    mouth=st.floats(0, 0.2),
)
@settings(max_examples=60)
def test_no_place_size_or_turn_is_too_strange(
    source: MeshIdentity, x: float, y: float, height_px: float, yaw_rad: float, roll_rad: float, mouth: float
) -> None:
    picture = np.random.default_rng(1).integers(0, 256, (200, 300, 3), np.uint8)
    swapper = a_swapper(source)
    for number in range(2):
        shift = 3.0 * number
        mesh = pose(at=(x + shift, y), height_px=height_px, yaw_rad=yaw_rad, roll_rad=roll_rad, mouth=mouth)
        out = picture.copy()
        painted = swapper.swap(out, face_of(mesh), number * FRAME_S, {OBSTACLES})
        if not painted:
            np.testing.assert_array_equal(out, picture)
        assert_only_the_face_changed(picture, out, mesh)


@pytest.mark.parametrize("at", [(0, 240), (640, 240), (320, 0), (320, 480), (0, 0), (640, 480)])
def test_a_face_half_outside_is_painted_on_the_half_inside(
    source: MeshIdentity, actor: Actor, at: tuple[float, float]
) -> None:
    mesh = pose(at=at)
    picture = actor.picture(mesh)
    out = swapped(a_swapper(source), picture, mesh, 5)
    face = inside(picture.shape, mesh, topology.OVAL, 20)
    assert off(picture, out, face).mean() > 8
    assert_only_the_face_changed(picture, out, mesh)


def test_a_face_larger_than_the_frame_is_painted(source: MeshIdentity, actor: Actor) -> None:
    mesh = pose(height_px=1500)
    picture = actor.picture(mesh)
    assert off(picture, swapped(a_swapper(source), picture, mesh, 3), np.ones((480, 640), bool)).mean() > 5


def test_what_is_too_small_or_outside_is_left_to_others(source: MeshIdentity) -> None:
    picture = np.full((480, 640, 3), 90, np.uint8)
    for mesh in (pose(height_px=LEAST_FACE_PX - 2), pose(at=(-500, 0)), pose(at=(320, 2000))):
        out = picture.copy()
        assert not a_swapper(source).swap(out, face_of(mesh), 0.0, {OBSTACLES})
        np.testing.assert_array_equal(out, picture)


def test_frames_may_change_their_size(source: MeshIdentity, actor: Actor) -> None:
    swapper = a_swapper(source)
    for number, (width, height) in enumerate([(640, 480), (1280, 720), (97, 61), (640, 480), (320, 700)]):
        mesh = pose(at=(width / 2, height / 2), height_px=0.6 * height)
        picture = actor.picture(mesh, Size(width, height))
        out = picture.copy()
        assert swapper.swap(out, face_of(mesh), number * FRAME_S, {OBSTACLES})
        assert off(picture, out, inside(picture.shape, mesh, topology.OVAL)).mean() > 3
        assert_only_the_face_changed(picture, out, mesh)


def test_time_may_stand_still_jump_and_run_backwards(source: MeshIdentity, actor: Actor) -> None:
    mesh, swapper = pose(), a_swapper(source)
    picture = actor.picture(mesh)
    for now_s in (5.0, 5.0, 5000.0, 4.0, 4.03):
        out = picture.copy()
        assert swapper.swap(out, face_of(mesh), now_s, {OBSTACLES})
        assert off(picture, out, inside(picture.shape, mesh, topology.OVAL)).mean() > 8


@pytest.mark.parametrize("at", [(320.0, -10.0), (0.0, 240.0), (640.0, 240.0), (320.0, 500.0)])
def test_what_comes_into_view_for_the_first_time_is_painted_at_once(
    source: MeshIdentity, actor: Actor, at: tuple[float, float]
) -> None:
    start, stop, swapper = pose(at=at), pose(), a_swapper(source, look=AS_IT_IS)
    for number in range(60):
        share = max(0.0, (number - 29) / 30)
        mesh = start * (1 - share) + stop * share
        out = actor.picture(mesh)
        assert swapper.swap(out, face_of(mesh), number * FRAME_S, {OBSTACLES})
    fresh = swapped(a_swapper(source, look=AS_IT_IS), actor.picture(stop), stop, 10)
    assert off(fresh, out, inside(out.shape, stop, topology.OVAL, 4)).mean() < 2
