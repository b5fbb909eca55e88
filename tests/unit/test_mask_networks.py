"""Networks that say what of a crop is face: what they are fed, when they run, and what is made of their answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from engines.card import ModelCard
from engines.contract import TensorSpec
from engines.cpu import CpuDevice
from engines.errors import EngineError, ModelError
from realtime.assets import sample_source
from realtime.meter import Meter
from realtime.models import Models
from realtime.opacity import opacity_for
from realtime.opacity.networks import NetworkMask, soften
from realtime.swappers import OCCLUSION, REGIONS, Kit, Look, Masks
from realtime.types import U8
from tests import cards, helpernets
from tests.faces import Eyes, face_of
from tests.masks import FACE, PICTURE, SIDE, ScriptedEngine, at

FACE_CLASSES = (1, 2, 3, 4, 5, 10, 11, 12, 13)


def xseg() -> ModelCard:
    return helpernets.xseg().card


def bisenet() -> ModelCard:
    return helpernets.bisenet().card


def asked(step: str, answer: NDArray[Any], every_n: int = 1, side: int = SIDE) -> tuple[NetworkMask, ScriptedEngine]:
    """A mask network that gives this answer, and its engine."""
    card = xseg() if step == OCCLUSION else bisenet()
    engine = ScriptedEngine(card.inputs, card.outputs, answer)
    return NetworkMask(step, card, engine, CpuDevice(), side, every_n), engine


def a_mask(left: float = 1.0, right: float = 1.0) -> NDArray[np.float32]:
    """XSeg's answer: one value on each half."""
    mask = np.full((1, 256, 256, 1), left, np.float32)
    mask[:, :, 128:] = right
    return mask


def logits(left: int, right: int) -> NDArray[np.float32]:
    """BiSeNet's answer: the likeliest class on each half."""
    values = np.full((1, 19, 512, 512), -1.0, np.float32)
    values[:, left, :, :256] = 3
    values[:, right, :, 256:] = 3
    return values


def slow(mask: NDArray[np.float32], side: int) -> U8:
    """The published rule, at the crop's own size: blur by 5 of 256 pixels, keep the upper half."""
    wide = cv2.resize(mask, (256, 256))
    blurred = cv2.GaussianBlur(wide, (0, 0), 5)
    return np.rint(cv2.resize((np.clip(blurred, 0.5, 1) - 0.5) * 2, (side, side)) * 255).astype(np.uint8)


def test_xseg_is_fed_the_swappers_crop_at_256_blue_first_0_to_1(eyes: Eyes) -> None:
    pixels, mesh = eyes.portrait(sample_source())
    face, side = face_of(mesh), 512
    mask, engine = asked(OCCLUSION, a_mask(), side=side)
    mask.shown(pixels, face, at(face, side), 0.0)
    ((fed,),) = engine.told
    crop_from_own = np.array([[2.0, 0, 0.5], [0, 2.0, 0.5], [0, 0, 1]])  # pixel 0 of 256 covers pixels 0 and 1 of 512
    where = at(face, side) @ crop_from_own
    cut = cv2.warpAffine(pixels, where, (256, 256), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
    assert fed.shape == (1, 256, 256, 3)
    np.testing.assert_allclose(fed[0], cut / 255, atol=1e-6)


def test_bisenet_is_fed_red_first_by_the_statistics_of_imagenet(eyes: Eyes) -> None:
    pixels, mesh = eyes.portrait(sample_source())
    face = face_of(mesh)
    mask, engine = asked(REGIONS, logits(1, 1), side=512)
    mask.shown(pixels, face, at(face, 512), 0.0)
    ((fed,),) = engine.told
    cut = cv2.warpAffine(pixels, at(face, 512), (512, 512), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
    golden = (cut[..., ::-1] / 255 - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)
    np.testing.assert_allclose(fed[0], golden.transpose(2, 0, 1), atol=1e-5)


@pytest.mark.parametrize("side", [128, 256, 1024])
def test_the_mask_is_softened_as_published(side: int) -> None:
    y, x = np.mgrid[:256, :256]
    disc = (np.hypot(x - 110, y - 130) < 60).astype(np.float32)
    mask, _ = asked(OCCLUSION, disc[None, ..., None], side=side)
    shown = mask.shown(PICTURE, FACE, at(side=side), 0.0)
    assert shown.shape == (side, side)
    difference = np.abs(shown.astype(int) - slow(disc, side))
    assert difference.max() <= 16
    assert difference.mean() < 1


def test_both_layouts_of_a_mask_are_read() -> None:
    mask, _ = asked(OCCLUSION, a_mask(1, 0).reshape(1, 1, 256, 256))
    shown = mask.shown(PICTURE, FACE, at(), 0.0)
    assert shown[:, :50].min() == 255
    assert shown[:, 78:].max() == 0


@pytest.mark.parametrize("number", range(19))
def test_a_class_of_the_face_shows_the_new_face_and_any_other_does_not(number: int) -> None:
    mask, _ = asked(REGIONS, logits(number, 17))
    shown = mask.shown(PICTURE, FACE, at(), 0.0)
    assert shown[:, :50].min() == shown[:, :50].max() == (255 if number in FACE_CLASSES else 0)
    assert shown[:, 78:].max() == 0


def test_what_lies_beyond_0_and_1_is_cut() -> None:
    np.testing.assert_array_equal(soften(np.full((256, 256), -3, np.float32)), 0)
    np.testing.assert_array_equal(soften(np.full((256, 256), 1.2, np.float32)), 255)


@pytest.mark.parametrize("spoil", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("step", [OCCLUSION, REGIONS])
def test_values_that_are_no_numbers_are_an_error_and_are_not_kept(step: str, spoil: float) -> None:
    good, bad = (a_mask(), a_mask()) if step == OCCLUSION else (logits(1, 1), logits(1, 1))
    bad[..., 8, 8, :] = spoil
    if step == REGIONS:
        bad[:, :, 8, 8] = spoil
    mask, engine = asked(step, bad)
    with pytest.raises(EngineError, match="no numbers"):
        mask.shown(PICTURE, FACE, at(), 0.0)
    engine.answers = (good,)
    assert mask.shown(PICTURE, FACE, at(), 0.1).max() == 255
    engine.answers = (bad,)
    with pytest.raises(EngineError, match="no numbers"):
        mask.shown(PICTURE, FACE, at(), 0.2)


def test_a_runtime_that_fails_is_the_error_it_raised() -> None:
    mask, engine = asked(OCCLUSION, a_mask())
    engine.broken = EngineError("out of memory", "close something")
    with pytest.raises(EngineError, match="out of memory"):
        mask.shown(PICTURE, FACE, at(), 0.0)


@pytest.mark.parametrize("every_n", [1, 2, 3, 7])
def test_a_network_runs_at_its_beat_for_each_face_and_keeps_what_it_said(every_n: int) -> None:
    mask, engine = asked(OCCLUSION, a_mask(), every_n)
    people = [replace(FACE, track_id=number) for number in (1, 2, 3)]
    runs: list[list[int]] = [[] for _ in people]
    for frame in range(22):
        for number, face in enumerate(people):
            engine.answers = (a_mask(0, 1 - frame / 100),)
            before = len(engine.told)
            shown = mask.shown(PICTURE, face, at(), frame / 30)
            if len(engine.told) > before:
                runs[number].append(frame)
            assert shown[:, 78:].max() == pytest.approx(255 * (1 - 2 * runs[number][-1] / 100), abs=2)
    for frames in runs:
        assert frames[0] == 0
        assert frames[1] <= every_n
        assert set(np.diff(frames[1:])) <= {every_n}
    if every_n > 2:
        assert len({frames[1] for frames in runs}) == 3  # not all in the same frame


def test_who_is_forgotten_is_looked_at_anew() -> None:
    mask, engine = asked(OCCLUSION, a_mask(), 60)
    for _ in range(2):
        mask.shown(PICTURE, FACE, at(), 0.0)
    assert len(engine.told) == 1
    mask.forget([FACE.track_id])
    mask.shown(PICTURE, FACE, at(), 0.0)
    assert len(engine.told) == 1
    mask.forget([])
    mask.shown(PICTURE, FACE, at(), 0.0)
    assert len(engine.told) == 2


def regions(classes: tuple[int, ...]) -> dict[str, Any]:
    return {"decode": {"target": "input", "logits": "output", "face_classes": classes}}


@pytest.mark.parametrize(
    ("step", "wrong", "says"),
    [
        (OCCLUSION, {"family": "regions"}, "masks.occlusion: its card says family 'regions'"),
        (OCCLUSION, {"decode": {"target": "x", "mask": "output"}}, "target is 'x'"),
        (OCCLUSION, {"decode": {"target": "input", "mask": "y"}}, "mask is 'y'"),
        (OCCLUSION, {"decode": {"target": "input"}}, "mask"),
        (REGIONS, {"decode": {"target": "input", "logits": "y", "face_classes": [1]}}, "logits is 'y'"),
        (REGIONS, regions(()), "face_classes .*not some of the 19 classes, 0 to 18"),
        (REGIONS, regions((1, 19)), "face_classes .* some of the 19 classes"),
        (REGIONS, regions((-1,)), "face_classes .* some of the 19 classes"),
        (REGIONS, regions(tuple(range(19))), "face_classes .*not some of the 19 classes"),
        (REGIONS, {"outputs": (TensorSpec("output", (1, 19)),)}, r"logits of the shape \[1, 19\]"),
        (OCCLUSION, {"outputs": (TensorSpec("output", (1, 256, 256, 3)),)}, r"mask of the shape \[1, 256, 256, 3\]"),
    ],
)
def test_a_card_that_cannot_be_used_is_refused(step: str, wrong: dict[str, Any], says: str) -> None:
    card = replace(xseg() if step == OCCLUSION else bisenet(), **wrong)
    engine = ScriptedEngine(card.inputs, card.outputs)
    with pytest.raises(ModelError, match=says):
        NetworkMask(step, card, engine, CpuDevice(), SIDE, 1)


@pytest.fixture
def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kit:
    """A kit with a folder of built networks."""
    monkeypatch.setenv("DOPPELCAM_MODELS", str(tmp_path))
    for built in (helpernets.xseg(), helpernets.bisenet()):
        cards.put(tmp_path, built)
    return Kit(CpuDevice(), Models(), "", Look(), Meter())


@pytest.mark.parametrize(
    ("masks", "laps"),
    [
        (Masks(obstacles=False), set()),
        (Masks(), {"obstacles"}),
        (Masks(regions="test_bisenet"), {"regions", "obstacles"}),
        (Masks(occlusion="test_xseg"), {"occlusion"}),
        (Masks(occlusion="test_xseg", regions="test_bisenet", obstacles=False), {"occlusion", "regions"}),
    ],
)
def test_the_settings_say_which_masks_there_are_and_each_has_its_lap(kit: Kit, masks: Masks, laps: set[str]) -> None:
    opacity = opacity_for(replace(kit, masks=masks), "arcface_128", SIDE)
    patch = np.zeros((SIDE, SIDE, 4), np.uint8)
    opacity.write(PICTURE, FACE, at(), None, 0.0, {"occlusion", "regions", "obstacles"}, patch[..., 3])
    assert set(kit.meter.snapshot().steps) == laps
    assert patch[..., 3].max() > 0
    assert kit.models.facts == tuple((name, runs) for name, runs in kit.models.facts if name in repr(masks))


def test_a_model_of_another_family_is_refused_by_name(kit: Kit) -> None:
    with pytest.raises(ModelError, match=r"masks\.occlusion: its card says family 'regions'"):
        opacity_for(replace(kit, masks=Masks(occlusion="test_bisenet")), "arcface_128", SIDE)
