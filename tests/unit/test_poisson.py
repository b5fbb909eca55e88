"""Poisson blending: seams vanish, detail stays, and no place or mask is too strange for it."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.assets import sample_source
from realtime.blend import Poisson
from realtime.identity import Portrait
from realtime.opacity import outline
from realtime.swappers import Look
from realtime.types import F64, U8, Face
from tests import effects, facenets
from tests.actor import pose, room
from tests.faces import Eyes, face_of
from tests.masks import SIDE, TEMPLATE, at
from tests.swapstage import SwapStage

OUTLINE: U8 = np.rint(outline.face(TEMPLATE, SIDE) * 255).astype(np.uint8)
TINT = np.array([-30, 5, 35])


@pytest.fixture
def scene(eyes: Eyes) -> tuple[U8, Face]:
    pixels, mesh = eyes.portrait(sample_source())
    return pixels, face_of(mesh)


def cut(pixels: U8, where: F64, side: int = SIDE) -> U8:
    return np.asarray(cv2.warpAffine(pixels, where, (side, side), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP))


def a_patch(colours: U8) -> U8:
    return np.dstack([colours, np.full(colours.shape[:2], 77, np.uint8)])


@pytest.mark.parametrize("side", [64, 128, 256, 512])
def test_a_tint_goes_and_the_detail_stays(scene: tuple[U8, Face], side: int) -> None:
    pixels, face = scene
    crop = cut(pixels, at(face, side), side)
    patch = a_patch(np.clip(crop.astype(int) + TINT, 0, 255).astype(np.uint8))
    before = patch.copy()
    opacity = np.rint(outline.face(TEMPLATE, side) * 255).astype(np.uint8)
    assert Poisson(side).blend(pixels, at(face, side), opacity, patch)
    core = opacity > 250
    assert np.abs((patch[..., :3].astype(float) - crop)[core].mean(0)).max() < 6  # what was cut at 255 is lost
    assert np.abs((before[..., :3].astype(float) - crop)[core].mean(0)).max() > 25
    fine = [
        p[..., 1].astype(np.float32) - cv2.GaussianBlur(p[..., 1].astype(np.float32), (0, 0), 2)
        for p in (before, patch)
    ]
    assert np.abs(fine[0] - fine[1])[core].mean() < 0.8
    np.testing.assert_array_equal(patch[..., 3], before[..., 3])


def test_a_patch_that_fits_is_left_as_it_is(scene: tuple[U8, Face]) -> None:
    pixels, face = scene
    crop = cut(pixels, at(face))
    patch = a_patch(crop)
    assert Poisson(SIDE).blend(pixels, at(face), OUTLINE, patch)
    assert np.abs(patch[..., :3].astype(int) - crop)[OUTLINE > 0].mean() < 2


def test_outside_the_outline_nothing_is_shifted(scene: tuple[U8, Face]) -> None:
    pixels, face = scene
    patch = a_patch(np.clip(cut(pixels, at(face)).astype(int) + TINT, 0, 255).astype(np.uint8))
    before = patch.copy()
    assert Poisson(SIDE).blend(pixels, at(face), OUTLINE, patch)
    far = cv2.dilate(OUTLINE, np.ones((7, 7), np.uint8)) == 0
    np.testing.assert_array_equal(patch[far], before[far])


@pytest.mark.parametrize("place", [(0, 240), (640, 240), (320, 0), (320, 480), (0, 0), (640, 480)])
def test_a_face_half_outside_takes_the_tone_of_what_is_in_the_picture(place: tuple[float, float]) -> None:
    pixels, face = np.full((480, 640, 3), (90, 120, 160), np.uint8), face_of(pose(at=place))
    patch = a_patch(np.full((SIDE, SIDE, 3), (140, 100, 130), np.uint8))
    assert Poisson(SIDE).blend(pixels, at(face), OUTLINE, patch)
    seen = cut(np.full((480, 640, 3), 255, np.uint8), at(face))[..., 0]
    inside = cv2.erode(np.minimum(seen, OUTLINE), np.ones((9, 9), np.uint8)) > 200
    assert inside.sum() > 100
    assert np.abs(patch[..., :3][inside].astype(int) - (90, 120, 160)).max() <= 3


@pytest.mark.parametrize("opacity", [np.zeros((SIDE, SIDE), np.uint8), np.pad(np.full((6, 6), 255, np.uint8), 61)])
def test_without_enough_of_a_face_the_patch_stays_and_it_says_so(opacity: U8) -> None:
    face = face_of(pose())
    patch = a_patch(np.full((SIDE, SIDE, 3), 50, np.uint8))
    assert not Poisson(SIDE).blend(room(), at(face), opacity, patch)
    assert (patch[..., :3] == 50).all()
    away = face_of(pose(at=(5000, 240)))
    assert not Poisson(SIDE).blend(room(), at(away), OUTLINE, patch)


@given(
    x=st.floats(-300, 900),
    y=st.floats(-300, 800),
    height_px=st.floats(12, 1500),
    roll_rad=st.floats(-3.1, 3.1),
    band=st.tuples(st.integers(0, SIDE), st.integers(0, SIDE), st.booleans(), st.booleans()),
)
@settings(max_examples=80)
def test_no_place_and_no_mask_is_too_strange(
    x: float, y: float, height_px: float, roll_rad: float, band: tuple[int, int, bool, bool]
) -> None:
    face = face_of(pose(at=(x, y), height_px=height_px, roll_rad=roll_rad))
    first, last, upright, tilted = band
    opacity = OUTLINE.copy()
    (opacity.T if upright else opacity)[min(first, last) : max(first, last)] = 0
    if tilted:
        opacity[np.abs(np.subtract.outer(np.arange(SIDE), np.arange(SIDE)) + first - 64) > last / 16] = 0
    patch = a_patch(np.full((SIDE, SIDE, 3), (140, 100, 130), np.uint8))
    Poisson(SIDE).blend(room(), at(face), opacity, patch)
    assert (patch[..., 3] == 77).all()


def test_the_setting_brings_it_and_its_cost_is_shown(
    scene: tuple[U8, Face], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eyes: Eyes
) -> None:
    monkeypatch.setenv("DOPPELCAM_MODELS", str(tmp_path))
    photo = Portrait(str(sample_source()), *eyes.portrait(sample_source()), 1)
    (pixels, face), shown = scene, {}
    for blend in ("feather", "poisson"):
        stage = SwapStage(tmp_path)
        swapper = stage.swapper(
            effects.with_effect(facenets.inswapper(), effects.posterise), [photo], Look(colour=0, blend=blend)
        )
        shown[blend] = pixels.copy()
        assert swapper.swap(shown[blend], face, 0.0, ())
        assert ("poisson" in stage.meter.snapshot().steps) == (blend == "poisson")
        assert swapper.painted is not None
        np.testing.assert_array_equal(swapper.painted.opacity, OUTLINE)
    assert (shown["feather"] != shown["poisson"]).any()
