"""The tone of a new face follows that of the person: casts go, noise does not flicker, a lamp is followed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.assets import demo_photo, sample_source
from realtime.identity import Portrait
from realtime.opacity import outline
from realtime.swappers import OBSTACLES, Look, Swapper
from realtime.tone import MOST_GAIN, SETTLE_S, ToneTransfer
from realtime.types import F32, U8, Face
from tests import effects, facenets
from tests.actor import FRAME_S
from tests.effects import Effect
from tests.facenets import Graph
from tests.faces import Eyes, face_of
from tests.masks import at
from tests.swapstage import SwapStage

AS_SEEN = Look(colour=1)


def tone(mean: float, deviation: float) -> F32:
    return np.array([[mean] * 3, [deviation] * 3], np.float32)


def shifted(level: float, result: tuple[F32, F32]) -> float:
    gain, offset = result
    return float((level * gain + offset)[0])


@given(st.floats(0, 255), st.floats(0, 80), st.floats(0, 255), st.floats(0, 80))
def test_at_full_share_the_mean_is_the_persons_from_the_first_frame(a: float, b: float, c: float, d: float) -> None:
    result = ToneTransfer().step(tone(a, b), tone(c, d), 1.0, 0.0)
    assert shifted(c, result) == pytest.approx(a, abs=1e-2)
    assert 1 / MOST_GAIN - 1e-5 <= result[0][0] <= MOST_GAIN + 1e-5


@given(st.floats(0, 255), st.floats(0, 255), st.floats(0, 1))
def test_the_share_is_how_far_it_goes(person: float, made: float, share: float) -> None:
    result = ToneTransfer().step(tone(person, 20), tone(made, 20), share, 0.0)
    assert shifted(made, result) == pytest.approx(made + share * (person - made), abs=1e-2)


@pytest.mark.parametrize("made", [1e30, -1e30, 1e7])
def test_what_no_picture_can_have_is_soon_forgotten(made: float) -> None:
    transfer = ToneTransfer()
    transfer.step(tone(120, 20), tone(100, 20), 1.0, 0.0)
    transfer.step(tone(120, 20), tone(made, abs(made)), 1.0, 1 / 30)
    for _ in range(30):
        result = transfer.step(tone(120, 20), tone(100, 20), 1.0, 1 / 30)
    assert shifted(100, result) == pytest.approx(120, abs=3)


def test_a_change_arrives_within_the_time_constant_whatever_the_rate() -> None:
    for rate_hz in (10, 30, 120):
        transfer = ToneTransfer()
        transfer.step(tone(100, 20), tone(100, 20), 1.0, 0.0)
        steps = round(rate_hz * SETTLE_S)
        for _ in range(steps):
            result = transfer.step(tone(140, 20), tone(100, 20), 1.0, 1 / rate_hz)
        assert shifted(100, result) == pytest.approx(140 - 40 * np.exp(-steps / rate_hz / SETTLE_S), abs=0.1)


def test_what_is_not_seen_teaches_nothing() -> None:
    transfer = ToneTransfer()
    before = [part.copy() for part in transfer.step(tone(100, 20), tone(90, 20), 1.0, 0.0)]
    after = transfer.step(tone(20, 60), tone(90, 20), 1.0, 0.0)
    np.testing.assert_array_equal(before, after)


def cast(g: Graph, x: str) -> str:
    """The crop in a strong orange light: red and green up, blue down; the channels come red first."""
    factors = g.constant(np.array([1.15, 1.0, 0.75], np.float32).reshape(1, 3, 1, 1))
    lift = g.constant(np.array([0.06, 0.02, -0.04], np.float32).reshape(1, 3, 1, 1))
    return g.add("Add", g.add("Mul", x, factors), lift)


@pytest.fixture
def swapper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eyes: Eyes) -> Callable[[Effect, Look], Swapper]:
    monkeypatch.setenv("DOPPELCAM_MODELS", str(tmp_path))
    photo = Portrait(str(demo_photo()), *eyes.portrait(demo_photo()), 1)

    def make(effect: Effect, look: Look) -> Swapper:
        return SwapStage(tmp_path).swapper(effects.with_effect(facenets.inswapper(), effect), [photo], look)

    return make


@pytest.fixture
def scene(eyes: Eyes) -> tuple[U8, Face]:
    pixels, mesh = eyes.portrait(sample_source())
    return pixels, face_of(mesh)


def skin_of(picture: U8, face: Face) -> F32:
    """Mean colour of the skin of a face, (3,) BGR."""
    crop = cv2.warpAffine(picture, at(face), (128, 128), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
    weight = outline.skin("arcface_128", 128)[..., None]
    return np.asarray((crop * weight).sum((0, 1)) / weight.sum(), np.float32)


def test_a_network_that_tints_its_picture_is_corrected(
    swapper: Callable[[Effect, Look], Swapper], scene: tuple[U8, Face]
) -> None:
    pixels, face = scene
    off = {}
    for share in (0.0, 0.5, 1.0):
        out = pixels.copy()
        assert swapper(cast, Look(colour=share)).swap(out, face, 0.0, ())
        off[share] = np.abs(skin_of(out, face) - skin_of(pixels, face)).max()
    assert off[0.0] > 20
    assert off[0.5] == pytest.approx(off[0.0] / 2, rel=0.25)
    assert off[1.0] < 3


def test_sensor_noise_does_not_flicker(swapper: Callable[[Effect, Look], Swapper], scene: tuple[U8, Face]) -> None:
    (pixels, face), rng, seen = scene, np.random.default_rng(0), []
    made = swapper(cast, AS_SEEN)
    for number in range(25):
        noisy = np.clip(pixels + rng.normal(0, 8, pixels.shape), 0, 255).astype(np.uint8)
        before = skin_of(noisy, face)
        assert made.swap(noisy, face, number * FRAME_S, ())
        seen.append(skin_of(noisy, face) - before)
    assert np.std(seen, axis=0).max() < 0.3
    assert np.abs(np.diff(seen, axis=0)).max() < 1


def test_a_lamp_that_is_switched_is_followed(
    swapper: Callable[[Effect, Look], Swapper], scene: tuple[U8, Face]
) -> None:
    pixels, face = scene
    dim = (pixels * 0.5).astype(np.uint8)
    made, off = swapper(cast, AS_SEEN), []
    for number in range(60):
        picture = (dim if number >= 20 else pixels).copy()
        before = skin_of(picture, face)
        assert made.swap(picture, face, number * FRAME_S, ())
        off.append(np.abs(skin_of(picture, face) - before).max())
    assert max(off[:20]) < 3
    assert max(off[20:]) < 25  # the network sees the new light at once; what is left is its own cast
    assert max(off[20 + round(2 * SETTLE_S / FRAME_S) :]) < 5


def always(crop: U8) -> Effect:
    """A network that makes the same face whatever is before it."""

    def effect(g: Graph, x: str) -> str:
        made = crop[..., ::-1].transpose(2, 0, 1)[None].astype(np.float32) / 255
        return g.add("Add", g.scalar(x, "Mul", 0.0), g.constant(made))

    return effect


@pytest.mark.parametrize(("steps", "most"), [((OBSTACLES,), 6), ((), 255)])
def test_a_card_before_half_the_face_does_not_tint_the_other_half(
    swapper: Callable[[Effect, Look], Swapper], scene: tuple[U8, Face], steps: tuple[str, ...], most: float
) -> None:
    pixels, face = scene
    crop = cv2.warpAffine(pixels, at(face), (128, 128), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
    covered = pixels.copy()
    covered[int(face.mesh[2, 1]) :] = 30, 60, 20  # a dark green card from below the nose
    made = swapper(always(crop), AS_SEEN)
    left, right = sorted(int(x) for x in face.mesh[[50, 280], 0])
    upper = np.s_[int(face.mesh[10, 1]) : int(face.mesh[2, 1]) - 12, left:right]
    tones = []
    for number in range(60):
        picture = (covered if number >= 30 else pixels).copy()
        assert made.swap(picture, face, number * FRAME_S, steps)
        tones.append(picture[upper].mean((0, 1)))
    drift = np.abs(np.array(tones[31:]) - tones[29]).max()
    assert drift < most
    if not steps:
        assert drift > 12  # what the mask prevents
