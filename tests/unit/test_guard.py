from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.guard import Guard, OnLost, Outcome, is_sound
from realtime.types import F32, U8, Frame, Size
from tests.fakes import picture

POLICIES: tuple[OnLost, ...] = ("hold", "blur", "card", "raw")
CARD_GREY = 7
SMALL, LARGE = Size(48, 32), Size(64, 48)


def make_card(size: Size) -> U8:
    return picture(CARD_GREY, size)


def textured(seq: int, size: Size = SMALL) -> Frame:
    """A picture that no frosting leaves as it is, and no two alike."""
    return Frame(seq, float(seq), np.random.default_rng(seq).integers(20, 250, (size.h, size.w, 3), dtype=np.uint8))


@dataclass(frozen=True)
class Step:
    outcome: Outcome
    wait_s: float
    size: Size
    lost_box: bool


STEP = st.builds(
    Step,
    outcome=st.sampled_from(Outcome),
    wait_s=st.floats(0, 0.4),
    size=st.sampled_from([SMALL, SMALL, SMALL, LARGE]),
    lost_box=st.booleans(),
)
WHOLE: F32 = np.array([0, 0, 30, 30], np.float32)


@settings(max_examples=150, deadline=None)
@given(policy=st.sampled_from(POLICIES), steps=st.lists(STEP, max_size=30))
def test_nothing_unswapped_is_shown_unaltered_and_nothing_shown_is_painted_again(
    policy: OnLost, steps: list[Step]
) -> None:
    guard = Guard(policy, 0.5, make_card)
    now_s = last_swap_s = 0.0
    shown: list[tuple[Frame, U8]] = []
    safe: list[U8] = []
    for seq, step in enumerate(steps):
        now_s += step.wait_s if seq else 0.0
        frame = textured(seq, step.size)
        original = frame.pixels.copy()
        boxes = [WHOLE] if step.lost_box and step.outcome is Outcome.SWAPPED else []
        out = guard.settle(now_s, frame, step.outcome, boxes)
        assert (out.seq, out.size) == (seq, step.size)
        unaltered = np.array_equal(out.pixels, original)
        if step.outcome is not Outcome.SWAPPED and unaltered:
            assert policy == "raw"
            assert now_s - last_swap_s > 0.5
        if boxes and np.array_equal(out.pixels[:30, :30], original[:30, :30]):
            assert policy == "raw"
        if step.outcome is Outcome.SWAPPED:
            last_swap_s = now_s
            if not boxes:
                assert unaltered
                assert out.t_capture_s == frame.t_capture_s
            if not (boxes and unaltered):
                safe.append(out.pixels)
        elif out.t_capture_s != frame.t_capture_s:
            assert any(out.pixels is kept for kept in safe), "only a swapped picture is ever held"
        shown.append((out, out.pixels.copy()))
    for out, as_shown in shown:
        np.testing.assert_array_equal(out.pixels, as_shown)


@pytest.mark.parametrize("outcome", [Outcome.NO_FACE, Outcome.LOST, Outcome.FAILED])
@pytest.mark.parametrize("policy", POLICIES)
def test_the_last_swap_is_held_first_and_then_the_policy_rules(policy: OnLost, outcome: Outcome) -> None:
    guard = Guard(policy, 0.5, make_card)
    swapped = textured(0)
    guard.settle(10.0, swapped, Outcome.SWAPPED)
    held = guard.settle(10.5, textured(1), outcome)
    assert held.pixels is swapped.pixels
    assert (held.seq, held.t_capture_s) == (1, swapped.t_capture_s)

    frame = textured(2)
    original = frame.pixels.copy()
    late = guard.settle(10.51, frame, outcome)
    assert (late.pixels is swapped.pixels) == (policy == "hold")
    assert np.array_equal(late.pixels, original) == (policy == "raw")
    assert bool((late.pixels == CARD_GREY).all()) == (policy == "card")
    assert (late.t_capture_s == frame.t_capture_s) == (policy != "hold")


def test_the_newest_swap_is_the_one_that_is_held() -> None:
    guard = Guard("blur", 0.5, make_card)
    guard.settle(0.0, textured(0), Outcome.SWAPPED)
    newest = guard.settle(0.1, textured(1), Outcome.SWAPPED)
    assert guard.settle(0.2, textured(2), Outcome.LOST).pixels is newest.pixels


@pytest.mark.parametrize("policy", POLICIES)
def test_before_the_first_face_nothing_bare_is_shown(policy: OnLost) -> None:
    guard = Guard(policy, 0.5, make_card)
    frame = textured(0)
    original = frame.pixels.copy()
    assert not np.array_equal(guard.settle(0.0, frame, Outcome.NO_FACE).pixels, original)


def test_a_held_picture_of_another_size_is_not_shown() -> None:
    guard = Guard("blur", 0.5, make_card)
    guard.settle(0.0, textured(0, SMALL), Outcome.SWAPPED)
    frame = textured(1, LARGE)
    original = frame.pixels.copy()
    out = guard.settle(0.1, frame, Outcome.LOST)
    assert out.size == LARGE
    assert fine_detail(out.pixels) < 0.02 * fine_detail(original)


def test_only_the_lost_face_is_frosted_in_a_picture_with_another_swapped_face() -> None:
    guard = Guard("blur", 0.5, make_card)
    frame = textured(0, Size(400, 200))
    original = frame.pixels.copy()
    box = np.array([60, 60, 120, 140], np.float32)
    out = guard.settle(0.0, frame, Outcome.SWAPPED, [box])
    inside, before = out.pixels[60:140, 60:120], original[60:140, 60:120]
    assert fine_detail(inside) < 0.02 * fine_detail(before)
    np.testing.assert_array_equal(out.pixels[:, 150:], original[:, 150:])
    np.testing.assert_array_equal(out.pixels[:30], original[:30])
    assert guard.settle(0.1, textured(1, Size(400, 200)), Outcome.FAILED).pixels is out.pixels


@pytest.mark.parametrize(
    "box",
    [
        [-500, -500, -400, -400],
        [-50, -50, 20, 20],
        [30, 20, 900, 900],
        [10, 10, 10, 10],
        [20, 20, 10, 10],
        [math.nan, 0, 10, 10],
        [0, 0, math.inf, 10],
    ],
)
def test_any_box_of_a_lost_face_is_survived(box: list[float]) -> None:
    frame = textured(0)
    original = frame.pixels.copy()
    out = Guard("blur", 0.5, make_card).settle(0.0, frame, Outcome.SWAPPED, [np.array(box, np.float32)])
    if not np.isfinite(box).all():
        assert fine_detail(out.pixels) < 0.02 * fine_detail(original)


def fine_detail(pixels: U8) -> float:
    """Energy of everything finer than three cycles per short side: what is left of a face when its outline is gone."""
    grey = pixels.mean(axis=2)
    grey = grey - grey.mean()
    short = min(grey.shape)
    rows = np.fft.fftfreq(grey.shape[0])[:, None] * short
    columns = np.fft.fftfreq(grey.shape[1])[None, :] * short
    spectrum = np.abs(np.fft.fft2(grey * np.hanning(grey.shape[0])[:, None] * np.hanning(grey.shape[1]))) ** 2
    return float(spectrum[np.hypot(rows, columns) > 3].sum())


def face_like(size: Size, share: float) -> U8:
    """Eyes, brows, nose and mouth as dark features on a bright oval, ``share`` of the height tall."""
    rows, columns = np.mgrid[: size.h, : size.w]
    tall = share * size.h / 2
    y, x = (rows - size.h / 2) / tall, (columns - size.w / 2) / (tall * 0.75)
    grey = np.where(x * x + y * y < 1, 200.0, 60.0)
    for cx, cy, rx, ry in (
        (-0.4, -0.2, 0.18, 0.08),
        (0.4, -0.2, 0.18, 0.08),
        (0, 0.15, 0.1, 0.15),
        (0, 0.5, 0.35, 0.1),
    ):
        grey[((x - cx) / rx) ** 2 + ((y - cy) / ry) ** 2 < 1] = 30
    return np.repeat(grey[:, :, None], 3, axis=2).astype(np.uint8)


@pytest.mark.parametrize("size", [Size(640, 480), Size(1280, 720), Size(720, 1280)])
@pytest.mark.parametrize("share", [0.08, 0.2, 0.5, 0.9])
def test_a_frosted_face_has_no_features_left_at_any_size(size: Size, share: float) -> None:
    pixels = face_like(size, share)
    eyes_and_mouth = face_like(size, share).astype(float) - features_removed(size, share)
    out = Guard("blur", 0.5, make_card).settle(0.0, Frame(0, 0.0, pixels), Outcome.NO_FACE)
    plain = Guard("blur", 0.5, make_card).settle(
        0.0, Frame(0, 0.0, features_removed(size, share).astype(np.uint8)), Outcome.NO_FACE
    )
    assert fine_detail(out.pixels) < 0.02 * fine_detail(face_like(size, share))
    left_over = out.pixels.astype(float) - plain.pixels
    assert np.abs(left_over).max() < 0.35 * np.abs(eyes_and_mouth).max()
    assert np.std(left_over) < 0.6 * np.std(eyes_and_mouth)


def features_removed(size: Size, share: float) -> U8:
    """The same oval without features."""
    pixels = face_like(size, share)
    rows, columns = np.mgrid[: size.h, : size.w]
    tall = share * size.h / 2
    inside = ((columns - size.w / 2) / (tall * 0.75)) ** 2 + ((rows - size.h / 2) / tall) ** 2 < 1
    pixels[inside] = 200
    return pixels


@pytest.mark.parametrize(
    ("made", "sound"),
    [
        (np.full((4, 4, 3), 100, np.uint8), True),
        (np.full((4, 4, 3), 100, np.float32), True),
        (np.zeros((4, 4, 3), np.uint8), False),
        (np.zeros((4, 4, 3), np.float32), False),
        (np.full((4, 4, 3), np.nan, np.float32), False),
        (np.array([[1.0, 200.0, np.inf]], np.float32), False),
        (np.empty((0, 0, 3), np.float32), False),
    ],
)
def test_a_broken_picture_is_told_from_a_sound_one(made: U8, sound: bool) -> None:
    assert is_sound(made) is sound


@settings(max_examples=100, deadline=None)
@given(policy=st.sampled_from(POLICIES), steps=st.lists(st.tuples(STEP, st.booleans()), max_size=30))
def test_a_blank_shows_a_card_and_nothing_from_before_it_afterwards(
    policy: OnLost, steps: list[tuple[Step, bool]]
) -> None:
    guard, now_s = Guard(policy, 0.5, make_card, lambda size: picture(99, size)), 0.0
    since_blank: list[int] = []
    for seq, (step, blank) in enumerate(steps, 1):
        now_s += step.wait_s
        frame = textured(seq, step.size)
        own = frame.pixels.copy()
        guard.blank = blank
        shown = guard.settle(now_s, frame, step.outcome, [WHOLE] if step.lost_box else [])
        assert shown.size == step.size
        if blank:
            since_blank = []
            assert (shown.pixels == 99).all()
            continue
        since_blank.append(seq)
        held = [n for n in since_blank if (shown.pixels == textured(n, step.size).pixels).all()]
        if shown.t_capture_s != frame.t_capture_s:
            assert shown.t_capture_s in since_blank, "what was held was shown after the blank"
        if step.outcome is Outcome.SWAPPED and not step.lost_box:
            assert (shown.pixels == own).all()
            assert held
