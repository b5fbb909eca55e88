"""How masks combine on the crop of a face, where the new face ends, and when masks are not believed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.errors import EngineError
from realtime import geometry, topology
from realtime.align import TEMPLATES, picture_from_crop
from realtime.meter import Meter
from realtime.opacity import LEAST_SHOWN, NOT_BELIEVED, Opacity, outline
from realtime.swappers import OBSTACLES, OCCLUSION, OPTIONAL_STEPS, REGIONS
from realtime.types import F32, F64, U8, Face
from tests.actor import pose
from tests.faces import Eyes, face_of, pictures_of
from tests.masks import FACE, PICTURE, SIDE, TEMPLATE, Scripted, at


def written(
    opacity: Opacity, made: F32 | None = None, steps: tuple[str, ...] = OPTIONAL_STEPS, face: Face = FACE
) -> U8:
    """What is shown, written into a patch as the swapper does."""
    patch = np.full((SIDE, SIDE, 4), 77, np.uint8)
    opacity.write(PICTURE, face, at(face), made, 0.0, steps, patch[..., 3])
    assert (patch[..., :3] == 77).all()
    return patch[..., 3].copy()


def an_opacity(*parts: Scripted, amount: float = 1.0, own_mouth: bool = False, meter: Meter | None = None) -> Opacity:
    return Opacity(TEMPLATE, SIDE, meter or Meter(), amount, parts, own_mouth)


def static() -> U8:
    return written(an_opacity())


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("side", [64, 128, 256, 512])
def test_the_outline_holds_the_features_and_ends_before_the_crop_does(template: str, side: int) -> None:
    for mask in (outline.face(template, side), outline.edge(side)):
        assert mask.shape == (side, side)
        assert max(mask[0].max(), mask[-1].max(), mask[:, 0].max(), mask[:, -1].max()) == 0
        assert mask.max() <= 1
        for x, y in TEMPLATES[template]:
            assert mask[int(y * side), int(x * side)] > 0.98
    assert (outline.face(template, side) <= outline.edge(side) + 1e-6).all()


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_outline_only_falls_from_the_nose_outwards(template: str) -> None:
    mask, (x, y) = outline.face(template, 256), 256 * np.array(TEMPLATES[template][2])
    for angle in np.linspace(0, 2 * np.pi, 90):
        reach = np.arange(0, 256)
        columns, rows = np.rint(x + reach * np.cos(angle)).astype(int), np.rint(y + reach * np.sin(angle)).astype(int)
        inside = (columns >= 0) & (rows >= 0) & (columns < 256) & (rows < 256)
        ray = mask[rows[inside], columns[inside]]
        assert (np.diff(ray) < 0.05).all()
        assert ray[-1] < 0.01


def test_skin_is_inside_the_outline_and_neither_eye_nor_mouth() -> None:
    skin, mask = outline.skin(TEMPLATE, 128), outline.face(TEMPLATE, 128)
    assert 0.1 < skin.mean() < 0.4
    assert mask[skin > 0.5].min() > 0.5
    left, right, nose, *mouth = (int(y * 128) * 128 + int(x * 128) for x, y in TEMPLATES[TEMPLATE])
    assert skin.ravel()[[left, right, *mouth]].max() < 0.05
    assert skin.ravel()[nose] > 0.9


@pytest.mark.data
@pytest.mark.parametrize("name", ["eat", "walk", "want", "yes"])
def test_on_real_faces_the_outline_covers_the_face_and_little_else(eyes: Eyes, data_dir: Path, name: str) -> None:
    side, mask = 256, outline.face(TEMPLATE, 256)
    for face in eyes.follow(pictures_of(data_dir / "clips" / f"{name}.mkv", 40))[::8]:
        crop_from_picture = geometry.invert(picture_from_crop(face.points5, TEMPLATE, side))
        points = geometry.apply(crop_from_picture, face.mesh[:, :2] - 0.5).astype(np.float32)
        inside = outline.filled(points[list(topology.OVAL)], side) > 127
        assert mask[~inside].sum() / inside.sum() < 0.06
        assert outline.edge(side)[~inside].sum() / inside.sum() > 0.5  # what a square paints beside the face
        features = outline.filled(points[[*topology.BROW_LEFT_TOP, *reversed((291, 263)), 61]], side) > 127
        assert mask[features].mean() > 0.9


def test_without_masks_it_is_the_outline_and_nobody_is_asked() -> None:
    part = Scripted(0)
    np.testing.assert_array_equal(static(), np.rint(outline.face(TEMPLATE, SIDE) * 255))
    np.testing.assert_array_equal(written(an_opacity(part), steps=()), static())
    assert part.asked == []


@given(st.lists(st.integers(80, 255), max_size=3), st.integers(80, 255) | st.none())
def test_the_least_of_all_masks_counts(says: list[int], own: int | None) -> None:
    made = None if own is None else np.full((SIDE, SIDE), own / 255, np.float32)
    base = np.rint(outline.edge(SIDE) * 255) if made is not None else static()
    shown = written(an_opacity(*(Scripted(level) for level in says)), made)
    expected = np.minimum(base, min([255, *says, *([own] if own is not None else [])]))
    np.testing.assert_array_equal(shown, expected)
    assert max(shown[0].max(), shown[-1].max(), shown[:, 0].max(), shown[:, -1].max()) == 0


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_of_the_new_face_is_never_less(one: float, other: float) -> None:
    less, more = (written(an_opacity(Scripted(200), amount=amount)) for amount in sorted((one, other)))
    assert (less <= more).all()
    assert np.abs(more - max(one, other) * np.minimum(static(), 200).astype(float)).max() <= 0.51


def test_a_network_that_draws_its_own_outline_is_held_to_no_other() -> None:
    shown = written(an_opacity(), np.ones((SIDE, SIDE), np.float32))
    assert shown[20, 20] == 255  # a corner that no face reaches
    assert static()[20, 20] == 0


def test_a_step_that_is_shed_forgets_and_the_others_go_on() -> None:
    parts = Scripted(200, OCCLUSION), Scripted(150, REGIONS), Scripted(100, OBSTACLES)
    opacity = an_opacity(*parts)
    assert written(opacity).max() == 100
    assert written(opacity, steps=(OCCLUSION, REGIONS)).max() == 150
    assert written(opacity, steps=(OCCLUSION,)).max() == 200
    assert [len(part.asked) for part in parts] == [3, 2, 1]
    assert [part.followed for part in parts] == [[], [()], [(), ()]]
    opacity.forget([4, 5])
    assert all(part.followed[-1] == (4, 5) for part in parts)


def blocking(share: float) -> U8:
    """A mask that lets the new face be shown on the left only: so much of the middle of the face."""
    core = outline.face(TEMPLATE, SIDE) > 0.9
    columns = np.cumsum(core.sum(0)) / core.sum()
    return np.where(columns <= share, 255, 0).astype(np.uint8)[None].repeat(SIDE, 0)


@pytest.mark.parametrize(("share", "believed"), [(0.0, False), (0.1, False), (0.3, True), (0.6, True), (1.0, True)])
def test_masks_that_would_bare_the_face_are_not_believed(share: float, believed: bool) -> None:
    meter, mask = Meter(), blocking(share)
    shown = written(an_opacity(Scripted(mask), meter=meter))
    np.testing.assert_array_equal(shown, np.minimum(static(), mask) if believed else static())
    assert meter.snapshot().counters == ({} if believed else {NOT_BELIEVED: 1})
    assert 0.1 < LEAST_SHOWN < 0.3


def test_nor_are_masks_that_bare_it_together_or_the_swappers_own() -> None:
    left = blocking(0.5)
    np.testing.assert_array_equal(written(an_opacity(Scripted(left), Scripted(255 - left))), static())
    np.testing.assert_array_equal(written(an_opacity(), np.zeros((SIDE, SIDE), np.float32)), static())


def test_a_network_that_fails_is_an_error_and_nothing_is_shown() -> None:
    class Broken(Scripted):
        def shown(self, pixels: U8, face: Face, picture_from_crop: F64, now_s: float) -> U8:
            raise EngineError("broken", "mend it")

    patch = np.full((SIDE, SIDE, 4), 77, np.uint8)
    with pytest.raises(EngineError, match="broken"):
        an_opacity(Broken()).write(PICTURE, FACE, at(), None, 0.0, OPTIONAL_STEPS, patch[..., 3])
    assert (patch == 77).all()


def lips(face: Face) -> U8:
    """Where the lips are in the crop, 1 there."""
    points = geometry.apply(geometry.invert(at(face)), face.mesh[list(topology.LIPS_OUTER), :2] - 0.5)
    return (outline.filled(points.astype(np.float32), SIDE) > 127).astype(np.uint8)


@pytest.mark.parametrize("mouth", [0.0, 0.03, 0.12])
@pytest.mark.parametrize("turn", [{}, {"yaw_rad": 0.6}, {"roll_rad": 0.5}, {"at": (640, 240)}, {"at": (320, 470)}])
def test_the_persons_own_mouth_stays_shut_or_open_turned_or_half_outside(mouth: float, turn: dict[str, float]) -> None:
    face = face_of(pose(mouth=mouth, **turn))  # type: ignore[arg-type]  # places are pairs
    kept, plain = written(an_opacity(own_mouth=True), face=face), static()
    inside = lips(face)
    far = cv2.dilate(inside, np.ones((25, 25), np.uint8)) == 0
    assert kept[inside > 0].mean() < 30
    assert np.abs(kept[far].astype(int) - plain[far]).max() <= 6
    assert np.abs(np.diff(kept.astype(int), axis=0)).max() < 100  # soft


@pytest.mark.parametrize("spoil", [np.nan, np.inf, 1e30, 0.0])
def test_a_mouth_that_is_nowhere_keeps_the_new_one(spoil: float) -> None:
    mesh = FACE.mesh.copy()
    mesh[list(topology.LIPS_OUTER)] = spoil
    opacity = an_opacity(own_mouth=True)
    patch = np.zeros((SIDE, SIDE, 4), np.uint8)
    opacity.write(PICTURE, replace(FACE, mesh=mesh), at(), None, 0.0, (), patch[..., 3])
    np.testing.assert_array_equal(patch[..., 3], static())


@given(st.floats(-3000, 3000), st.floats(-3000, 3000), st.floats(1, 3000), st.floats(-3, 3), st.floats(-1.5, 1.5))
def test_no_mouth_is_too_strange(x: float, y: float, height_px: float, roll_rad: float, yaw_rad: float) -> None:
    face = face_of(pose(at=(x, y), height_px=height_px, roll_rad=roll_rad, yaw_rad=yaw_rad))
    written(an_opacity(own_mouth=True), face=face)


def test_a_mouth_that_trembles_by_a_pixel_is_no_other_mouth() -> None:
    opacity, shaken = an_opacity(own_mouth=True), FACE.mesh + np.float32(0.5)
    still = written(opacity).astype(int)
    patch = np.zeros((SIDE, SIDE, 4), np.uint8)
    opacity.write(PICTURE, replace(FACE, mesh=shaken), at(), None, 0.0, (), patch[..., 3])
    assert np.abs(still - patch[..., 3]).max() < 40
