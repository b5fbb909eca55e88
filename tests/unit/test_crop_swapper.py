"""The path of a crop where things go wrong: broken networks, cards that contradict themselves, faces at the limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from engines.errors import EngineError, ModelError
from realtime.align import picture_from_crop
from realtime.assets import demo_photo, sample_source
from realtime.identity import Portrait
from realtime.swappers import LEAST_FACE_PX, Look, Swapper
from realtime.swappers.image import most_frontal
from realtime.types import F32, U8, Face
from tests import effects
from tests.effects import BROKEN, Effect, with_effect
from tests.facenets import EVERY, hyperswap, image_swapper, inswapper
from tests.faces import Eyes, face_of
from tests.swapstage import PLAIN, SwapStage

Scene = tuple[U8, Face]
Open = Callable[..., Swapper]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SwapStage:
    monkeypatch.setenv("DOPPELCAM_MODELS", str(tmp_path))
    return SwapStage(tmp_path)


@pytest.fixture
def photo(eyes: Eyes) -> Portrait:
    return Portrait(str(demo_photo()), *eyes.portrait(demo_photo()), 1)


@pytest.fixture
def opened(stage: SwapStage, photo: Portrait) -> Open:
    """Opens a family with a network that does something plain."""

    def opened(name: str, effect: Effect, look: Look = PLAIN, mask: float = 1.0) -> Swapper:
        return stage.swapper(with_effect(EVERY[name](1), effect, mask=mask), [photo], look)

    return opened


@pytest.fixture
def scene(eyes: Eyes) -> Scene:
    pixels, mesh = eyes.portrait(sample_source())
    return pixels, face_of(mesh)


def moved(face: Face, picture_from_face: np.ndarray[Any, Any]) -> Face:
    """The face after a similarity (2, 3)."""
    mesh = face.mesh.copy()
    mesh[:, :2] = mesh[:, :2] @ picture_from_face[:, :2].T + picture_from_face[:, 2]
    mesh[:, 2] *= np.sqrt(abs(np.linalg.det(picture_from_face[:, :2])))
    return replace(
        face_of(mesh), points5=(face.points5 @ picture_from_face[:, :2].T + picture_from_face[:, 2]).astype(np.float32)
    )


@pytest.mark.parametrize("effect", BROKEN)
@pytest.mark.parametrize("name", ["inswapper", "hyperswap", "simswap", "uniface", "dfm"])
def test_a_network_that_makes_no_picture_is_found_out_before_a_pixel_changes(
    name: str, effect: Effect, opened: Open, scene: Scene
) -> None:
    pixels, face = scene
    picture = pixels.copy()
    with pytest.raises(EngineError, match=r"made (values that are no numbers|one flat colour|nothing but)"):
        opened(name, effect).swap(picture, face, 0.0, ())
    np.testing.assert_array_equal(picture, pixels)


def test_one_colour_is_no_picture_though_its_channels_differ(opened: Open, scene: Scene) -> None:
    with pytest.raises(EngineError, match="made one flat colour: red"):
        opened("inswapper", effects.one_colour).swap(scene[0], scene[1], 0.0, ())


@pytest.mark.parametrize(("mask", "words"), [(np.nan, "no numbers"), (0.1, "shows nothing: at most 0.10")])
@pytest.mark.parametrize("name", ["hyperswap", "dfm"])
def test_a_mask_that_is_broken_or_would_bare_the_person_is_found_out(
    name: str, mask: float, words: str, opened: Open, scene: Scene
) -> None:
    pixels, face = scene
    picture = pixels.copy()
    with pytest.raises(EngineError, match=words):
        opened(name, effects.invert, mask=mask).swap(picture, face, 0.0, ())
    np.testing.assert_array_equal(picture, pixels)


def test_a_network_that_fails_in_one_frame_of_five_leaves_the_others_as_they_would_be(
    opened: Open, scene: Scene
) -> None:
    """What is remembered of the tone is not touched by what is no picture."""
    pixels, face = scene
    dark: U8 = np.full_like(pixels, 3)
    swapper, undisturbed = (
        opened("inswapper", effects.broken_when_dark, Look()),
        opened("inswapper", effects.invert, Look()),
    )
    for number in range(15):
        now_s = number / 30
        if number % 5 == 4:
            spoilt = dark.copy()
            with pytest.raises(EngineError, match="no numbers"):
                swapper.swap(spoilt, face, now_s, ())
            np.testing.assert_array_equal(spoilt, dark)
            continue
        painted, other = pixels.copy(), pixels.copy()
        assert swapper.swap(painted, face, now_s, ())
        assert undisturbed.swap(other, face, now_s, ())
        assert np.abs(painted.astype(int) - other).max() <= 2
        assert np.abs(painted.astype(int) - pixels).mean() > 1


POSES = {
    "half out to the left": (1.0, 0.0, (-210.0, 0.0)),
    "a corner is in": (1.0, 0.0, (260.0, 400.0)),
    "upside down": (1.0, np.pi, (512.0, 512.0)),
    "on its side": (0.8, np.pi / 2, (512.0, 0.0)),
    "1500 pixels": (14.0, 0.0, (-2800.0, -1500.0)),
    "13 pixels": (0.12, 0.3, (100.0, 100.0)),
}


@pytest.mark.parametrize("pose", POSES)
@pytest.mark.parametrize("name", ["inswapper", "hififace", "uniface", "dfm"])
def test_a_face_at_the_limit_is_painted_in_its_crop_and_nowhere_else(
    name: str, pose: str, opened: Open, scene: Scene
) -> None:
    pixels, face = scene
    scale, turn, shift = POSES[pose]
    linear = scale * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    there = np.column_stack([linear, shift])
    picture: U8 = cv2.warpAffine(pixels, there, (512, 512), borderValue=(90, 110, 130))
    face = moved(face, there)
    painted = picture.copy()
    assert opened(name, effects.invert).swap(painted, face, 0.0, ())
    template, side = EVERY[name](1).card.decode["template"], 100
    at = picture_from_crop(face.points5, template, side)
    corners = np.array([(0, 0), (side, 0), (side, side), (0, side)]) @ at[:, :2].T + at[:, 2]
    inside = cv2.fillConvexPoly(np.zeros((512, 512), np.uint8), np.rint(corners).astype(np.int32), 1)
    inside = cv2.dilate(inside, np.ones((5, 5), np.uint8)).astype(bool)
    changed = (painted != picture).any(-1)
    assert changed.any()
    assert not (changed & ~inside).any()


def test_what_is_too_small_or_outside_or_nowhere_is_left_to_others(opened: Open, scene: Scene) -> None:
    pixels, face = scene
    swapper = opened("inswapper", effects.invert)
    height = float(np.ptp(face.mesh[:, :2], axis=0).max())
    small = moved(face, np.array([[1.0, 0, 0], [0, 1.0, 0]]) * (LEAST_FACE_PX - 1) / height)
    away = moved(face, np.array([[1.0, 0, 5000], [0, 1, 0]]))
    nowhere = replace(face, points5=np.full((5, 2), np.nan, np.float32))
    one_place = replace(face, points5=np.full((5, 2), 100, np.float32))
    for lost in (small, away, nowhere, one_place):
        picture = pixels.copy()
        assert not swapper.swap(picture, lost, 0.0, ())
        np.testing.assert_array_equal(picture, pixels)


@pytest.mark.parametrize(
    ("net", "decode", "words"),
    [
        (inswapper(), {"template": "passport"}, "template is 'passport'"),
        (inswapper(), {"target": "source"}, "target is 'source'"),
        (inswapper(), {"picture": "image"}, "picture is 'image'"),
        (inswapper(), {"source": "identity"}, "an input is 'identity'"),
        (hyperswap(), {"mask": "outline"}, "mask is 'outline'"),
        (inswapper(), {"boost": (2, 4)}, "cannot work at 1 times its own size"),
        (image_swapper(), {"source": "portrait"}, "source is 'portrait'"),
        (image_swapper(), {"source_template": "passport"}, "source_template is 'passport'"),
        (EVERY["amp"](1), {"morph": ""}, r"\[decode\] does not say what goes into morph_value:0"),
        (EVERY["dfm"](1), {"celeb_mask": "out"}, "mask is 'out'"),
        (inswapper(), {"blur": 3}, "blur"),
    ],
)  # fmt: skip
def test_a_card_that_contradicts_itself_says_where(
    net: Any, decode: dict[str, Any], words: str, stage: SwapStage, photo: Portrait
) -> None:
    net = replace(net, card=replace(net.card, decode={**net.card.decode, **decode}))
    with pytest.raises(ModelError, match=words):
        stage.swapper(net, [photo])


def test_the_most_frontal_photo_is_shown_and_the_largest_of_those(photo: Portrait, scene: Scene, eyes: Eyes) -> None:
    def turned(rad: float, scale: float = 1.0) -> Portrait:
        c, s = np.cos(rad), np.sin(rad)
        mesh: F32 = (photo.mesh @ np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]]) * scale).astype(np.float32)
        return replace(photo, mesh=mesh)

    frontal, aside, large_aside, large = turned(0), turned(0.7), turned(0.7, 2), turned(0.05, 1.5)
    assert most_frontal([aside, frontal, large_aside]) is frontal
    assert most_frontal([aside, frontal, large]) is large
    assert most_frontal([aside]) is aside
