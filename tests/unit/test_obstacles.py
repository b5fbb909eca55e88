"""What the memory of a face says of the crop: placed, carried on, forgotten, and never too strange."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.cpu import CpuDevice
from realtime import geometry, topology
from realtime.opacity.obstacles import Obstacles
from realtime.types import F32, U8, Face
from tests.actor import FRAME_S, Actor, pose, room
from tests.faces import face_of
from tests.masks import SIDE, at

CARD_BGR = (60, 190, 40)


def remembered(picture: U8, face: Face, side: int = SIDE) -> Obstacles:
    """A memory that has seen this face for a while."""
    obstacles = Obstacles(CpuDevice(), side)
    for number in range(20):
        obstacles.shown(picture, face, at(face, side), number * FRAME_S)
    return obstacles


def before_chin(picture: U8, mesh: F32) -> U8:
    covered = picture.copy()
    covered[int(mesh[17, 1]) :] = CARD_BGR  # from below the lower lip
    return covered


@pytest.mark.parametrize("side", [128, 256, 512])
def test_a_card_before_the_chin_is_in_front_and_the_rest_is_not(actor: Actor, side: int) -> None:
    mesh = pose()
    face, picture = face_of(mesh), actor.picture(mesh)
    obstacles = remembered(picture, face, side)
    assert obstacles.shown(picture, face, at(face, side), 0.7).min() > 250
    shown = obstacles.shown(before_chin(picture, mesh), face, at(face, side), 0.7 + FRAME_S)
    assert shown.shape == (side, side)
    chin, brow = (geometry.apply(geometry.invert(at(face, side)), mesh[n, :2] - 0.5).astype(int) for n in (175, 9))
    assert shown[chin[1], chin[0]] < 20
    assert shown[brow[1], brow[0]] > 250


def test_it_goes_on_beyond_the_mesh_where_a_hand_does(actor: Actor) -> None:
    mesh = pose()
    face, picture = face_of(mesh), actor.picture(mesh)
    obstacles = remembered(picture, face)
    shown = obstacles.shown(before_chin(picture, mesh), face, at(face), 0.7)
    x, y = geometry.apply(geometry.invert(at(face)), mesh[152, :2] - 0.5).astype(int)
    assert shown[min(y + 4, SIDE - 1), x] < 60


def test_a_mouth_that_opens_is_no_obstacle_but_a_card_over_it_is(actor: Actor) -> None:
    mesh, wide = pose(), pose(mouth=0.12)
    face = face_of(mesh)
    obstacles = remembered(actor.picture(mesh), face)
    assert obstacles.shown(actor.picture(wide), face_of(wide), at(face_of(wide)), 0.7).mean() > 240
    covered = actor.picture(mesh)
    covered[int(mesh[2, 1]) :] = CARD_BGR  # from below the nose
    shown = obstacles.shown(covered, face, at(face), 0.7 + FRAME_S)
    x, y = geometry.apply(geometry.invert(at(face)), mesh[13, :2] - 0.5).astype(int)
    assert shown[y, x] < 60


def test_who_is_forgotten_is_seen_for_the_first_time(actor: Actor) -> None:
    mesh = pose()
    face, picture = face_of(mesh), actor.picture(mesh)
    covered = before_chin(picture, mesh)
    for followed, kept in (([face.track_id], True), ([99], False)):
        obstacles = remembered(picture, face)
        obstacles.forget(followed)
        shown = obstacles.shown(covered, face, at(face), 0.7)
        assert (shown.min() < 60) == kept


def test_two_people_do_not_share_a_memory(actor: Actor) -> None:
    mesh = pose()
    face, picture = face_of(mesh), actor.picture(mesh)
    obstacles = remembered(picture, face)
    covered = before_chin(picture, mesh)
    assert obstacles.shown(covered, replace(face, track_id=2), at(face), 0.7).min() > 250
    assert obstacles.shown(covered, face, at(face), 0.7).min() < 60


@pytest.mark.parametrize("spoil", [np.nan, np.inf])
def test_a_mesh_without_numbers_hides_nothing_and_spoils_nothing(actor: Actor, spoil: float) -> None:
    mesh = pose()
    face, picture = face_of(mesh), actor.picture(mesh)
    obstacles = remembered(picture, face)
    broken = mesh.copy()
    broken[5] = spoil
    assert (obstacles.shown(picture, replace(face, mesh=broken), at(face), 0.7) == 255).all()
    assert obstacles.shown(picture, face, at(face), 0.8).min() > 250


@given(
    x=st.floats(-400, 1000),
    y=st.floats(-400, 900),
    height_px=st.floats(12, 900),
    yaw_rad=st.floats(-1.6, 1.6),
    roll_rad=st.floats(-3.1, 3.1),
)
@settings(max_examples=60)
def test_no_place_size_or_turn_is_too_strange(
    x: float, y: float, height_px: float, yaw_rad: float, roll_rad: float
) -> None:
    picture, obstacles = room(), Obstacles(CpuDevice(), SIDE)
    for number in range(3):
        face = face_of(pose(at=(x + number, y), height_px=height_px, yaw_rad=yaw_rad, roll_rad=roll_rad))
        shown = obstacles.shown(picture, face, at(face), number * FRAME_S)
        assert shown.shape == (SIDE, SIDE)
    if (topology.facing(face.mesh) == 0).all():
        assert (shown == 255).all()
