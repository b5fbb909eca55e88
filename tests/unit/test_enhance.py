"""Enhancers: what they are fed, where their picture is shown, and that a broken one changes nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from engines.cpu import CpuDevice
from engines.errors import EngineError, ModelError
from realtime.assets import sample_source
from realtime.enhance import Enhancer, open_enhancer
from realtime.meter import Meter
from realtime.opacity import outline
from realtime.swappers import ENHANCE, Painted
from realtime.types import U8, Face
from tests import cards, effects, helpernets
from tests.faces import Eyes, face_of
from tests.masks import SIDE, at
from tests.swapstage import Listening

STEPS = {ENHANCE}


@pytest.fixture
def scene(eyes: Eyes) -> tuple[U8, Face]:
    pixels, mesh = eyes.portrait(sample_source())
    return pixels, face_of(mesh)


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Listening:
    monkeypatch.setenv("DOPPELCAM_MODELS", str(tmp_path))
    cards.put(tmp_path, helpernets.enhancer("plain"))
    cards.put(tmp_path, helpernets.enhancer("weighed", weight=True))
    cards.put(tmp_path, helpernets.xseg())
    cards.put(tmp_path, effects.with_effect(helpernets.enhancer(), effects.invert, "negative"))
    for effect in effects.BROKEN:
        cards.put(tmp_path, effects.with_effect(helpernets.enhancer(), effect, effect.__name__))
    small = effects.with_effect(helpernets.enhancer(side=256), effects.invert, "small")
    cards.put(tmp_path, small, template="arcface_128")
    return Listening()


def opened(models: Listening, name: str, amount: float = 1.0, fidelity: float = 0.7) -> Enhancer:
    return open_enhancer(name, fidelity, amount, CpuDevice(), models, Meter())


@pytest.mark.parametrize(("name", "template", "side"), [("negative", "ffhq_512", 512), ("small", "arcface_128", 256)])
def test_it_is_fed_its_own_crop_and_pasted_where_the_face_is(
    models: Listening, scene: tuple[U8, Face], name: str, template: str, side: int
) -> None:
    pixels, face = scene
    out = pixels.copy()
    opened(models, name).enhance(out, face, None, STEPS)
    where = at(face, side, template)
    cut = cv2.warpAffine(pixels, where, (side, side), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
    (fed,) = models.heard[name].told
    np.testing.assert_allclose(fed[0], (cut[..., ::-1] / 127.5 - 1).transpose(2, 0, 1), atol=1e-5)

    shown = cv2.warpAffine(outline.face(template, side), where, pixels.shape[1::-1])[..., None]
    expected = pixels * (1 - shown) + (255.0 - pixels) * shown
    off = np.abs(out - expected)
    assert np.percentile(off, 99) < 12  # the crop is coarser than the photo, which shows at edges
    assert off.mean() < 1.5
    np.testing.assert_array_equal(out[shown[..., 0] == 0], pixels[shown[..., 0] == 0])


def test_a_network_that_can_be_told_is_told_how_close_to_stay(models: Listening, scene: tuple[U8, Face]) -> None:
    opened(models, "weighed", fidelity=0.3).enhance(scene[0].copy(), scene[1], None, STEPS)
    _, weight = models.heard["weighed"].told
    assert weight.dtype == np.float64
    np.testing.assert_array_equal(weight, [0.3])


def test_without_its_step_nothing_runs(models: Listening, scene: tuple[U8, Face]) -> None:
    out = scene[0].copy()
    opened(models, "negative").enhance(out, scene[1], None, {"obstacles"})
    np.testing.assert_array_equal(out, scene[0])
    assert models.heard["negative"].told == ()


@pytest.mark.parametrize("amount", [0.0, 0.25, 0.5])
def test_the_amount_is_how_much_of_it_is_shown(models: Listening, scene: tuple[U8, Face], amount: float) -> None:
    (pixels, face), (x, y) = scene, scene[1].points5[2].astype(int)
    changed = []
    for share in (amount, 1.0):
        out = pixels.copy()
        opened(models, "negative", share).enhance(out, face, None, STEPS)
        changed.append(out[y - 5 : y + 5, x - 5 : x + 5].astype(float) - pixels[y - 5 : y + 5, x - 5 : x + 5])
    np.testing.assert_allclose(changed[0], amount * changed[1], atol=1.5)


def test_only_what_was_painted_is_made_finer(models: Listening, scene: tuple[U8, Face]) -> None:
    """A hand before the face is no face, and stays as it is."""
    pixels, face = scene
    opacity = np.rint(outline.face("arcface_128", SIDE) * 255).astype(np.uint8)
    opacity[SIDE // 2 :] = 0
    out = pixels.copy()
    opened(models, "negative").enhance(out, face, Painted(opacity, at(face)), STEPS)
    shown = cv2.warpAffine(opacity, at(face), pixels.shape[1::-1])
    far = cv2.dilate(shown, np.ones((9, 9), np.uint8)) == 0
    np.testing.assert_array_equal(out[far], pixels[far])
    assert np.abs(out[shown == 255].astype(int) - pixels[shown == 255]).mean() > 20


@pytest.mark.parametrize("effect", effects.BROKEN)
def test_a_broken_picture_is_an_error_and_changes_nothing(
    models: Listening, scene: tuple[U8, Face], effect: effects.Effect
) -> None:
    out = scene[0].copy()
    with pytest.raises(EngineError, match=effect.__name__):
        opened(models, effect.__name__).enhance(out, scene[1], None, STEPS)
    np.testing.assert_array_equal(out, scene[0])


@pytest.mark.parametrize("shift", [(-180.0, 0.0), (180.0, 100.0), (0.0, -120.0), (0.0, 260.0)])
def test_a_face_partly_outside_is_made_finer_inside(
    models: Listening, scene: tuple[U8, Face], shift: tuple[float, float]
) -> None:
    pixels, face = scene
    move = np.array(shift, np.float32)
    moved = cv2.warpAffine(pixels, np.array([[1, 0, shift[0]], [0, 1, shift[1]]]), pixels.shape[1::-1])
    out = np.asarray(moved, np.uint8).copy()
    opened(models, "negative").enhance(out, replace(face, points5=face.points5 + move), None, STEPS)
    assert (out != moved).any()


def test_a_model_that_is_no_enhancer_is_refused(models: Listening) -> None:
    with pytest.raises(ModelError, match=r"enhance\.model: its card says family 'occlusion'"):
        opened(models, "test_xseg")
