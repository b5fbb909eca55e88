from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from engines.card import decode_as, load_card
from engines.contract import TensorSpec
from engines.cpu import CpuDevice
from engines.errors import ModelError
from realtime.detect import VIEWS_PER_CALL, prominence
from realtime.detect.search import SMALLEST_FACE, View, around, plan
from realtime.detect.ssd import SsdDecode, SsdDetector, anchors, decode
from realtime.types import F32, Size

CARD = load_card("face_detection_short_range")
RULE = decode_as(CARD, SsdDecode)
CENTRES = anchors(128, RULE.strides, RULE.anchors_per_cell)

sizes = st.builds(Size, st.integers(160, 4000), st.integers(160, 4000)).filter(lambda s: max(s) <= 3 * min(s))


def outputs(*faces: tuple[int, float, tuple[float, float, float, float]]) -> tuple[F32, F32]:
    """Network outputs with faces at some anchors: (anchor, logit, (x, y, w, h) in input pixels)."""
    regressors, logits = np.zeros((896, 16), np.float32), np.full(896, -20, np.float32)
    for index, logit, (x, y, w, h) in faces:
        logits[index] = logit
        regressors[index, :4] = x - CENTRES[index, 0], y - CENTRES[index, 1], w, h
        regressors[index, 4:] = np.tile((x, y) - CENTRES[index], 6)
    return regressors, logits


def test_anchors_lie_row_by_row_grid_by_grid() -> None:
    assert CENTRES.shape == (896, 2)
    np.testing.assert_array_equal(CENTRES[[0, 1, 2, 31, 32]], [[4, 4], [4, 4], [12, 4], [124, 4], [4, 12]])
    np.testing.assert_array_equal(CENTRES[[512, 517, 518, 895]], [[8, 8], [8, 8], [24, 8], [120, 120]])


def test_nothing_is_found_where_every_logit_is_low() -> None:
    assert decode(*outputs(), CENTRES, RULE) == []


def test_a_face_is_decoded_relative_to_its_anchor() -> None:
    (face,) = decode(*outputs((700, 2.0, (60, 70, 30, 40))), CENTRES, RULE)
    np.testing.assert_allclose(face.box_xyxy, [45, 50, 75, 90], atol=1e-4)
    np.testing.assert_allclose(face.points, np.tile([60, 70], (6, 1)), atol=1e-4)
    assert face.score == pytest.approx(1 / (1 + np.exp(-2.0)))


def test_candidates_of_one_face_are_averaged_by_score() -> None:
    (face,) = decode(*outputs((10, 0.1, (40, 40, 20, 20)), (11, 5.0, (44, 40, 20, 20))), CENTRES, RULE)
    weak, strong = 1 / (1 + np.exp(-0.1)), 1 / (1 + np.exp(-5.0))
    assert face.score == pytest.approx(strong)
    assert face.box_xyxy[0] == pytest.approx((30 * weak + 34 * strong) / (weak + strong), abs=1e-4)


def test_faces_apart_stay_apart_best_first() -> None:
    found = decode(*outputs((10, 1.0, (30, 30, 20, 20)), (600, 3.0, (90, 90, 20, 20))), CENTRES, RULE)
    assert [round(float(face.box_xyxy[0])) for face in found] == [80, 20]


def test_wild_logits_do_not_overflow() -> None:
    regressors, logits = outputs((3, 1e4, (60, 60, 20, 20)))
    logits[5:9] = -1e4
    assert [face.score for face in decode(regressors, logits, CENTRES, RULE)] == [1.0]


def box(x: float, y: float, side: float) -> F32:
    return np.array([x - side / 2, y - side / 2, x + side / 2, y + side / 2], np.float32)


def test_size_decides_and_the_middle_breaks_the_tie() -> None:
    frame = Size(1280, 720)
    assert prominence(box(100, 100, 300), frame) > prominence(box(640, 360, 150), frame)
    assert prominence(box(640, 360, 200), frame) > prominence(box(100, 360, 210), frame)


@given(sizes, st.floats(0, 1), st.floats(0, 1), st.floats(10, 300))
def test_left_and_right_count_the_same(size: Size, x: float, y: float, side: float) -> None:
    here, there = box(x * size.w, y * size.h, side), box((1 - x) * size.w, y * size.h, side)
    assert prominence(here, size) == pytest.approx(prominence(there, size), rel=1e-3)


def shown(view: View, x: float, y: float, side: float) -> float:
    """How much of a square face at (x, y) is inside a view, 0..1."""
    inner = [
        max(0.0, min(low + side, start + view.side) - max(low, start))
        for low, start in ((x - side / 2, view.x), (y - side / 2, view.y))
    ]
    return inner[0] * inner[1] / side**2


@given(sizes, st.floats(0, 1), st.floats(0, 1), st.floats(SMALLEST_FACE, 0.9))
def test_every_face_is_large_enough_and_whole_enough_in_some_view(size: Size, x: float, y: float, part: float) -> None:
    side = min(part * size.h, size.w)
    x, y = side / 2 + x * (size.w - side), side / 2 + y * (size.h - side)
    views = plan(size, RULE.smallest_face)
    good = [v for v in views if side >= RULE.smallest_face * v.side * 0.99 and shown(v, x, y, side) > 0.7]
    assert good


@pytest.mark.parametrize(("size", "calls"), [(Size(640, 480), 4), (Size(1280, 720), 5), (Size(1920, 1080), 5)])
def test_a_complete_search_takes_a_few_calls(size: Size, calls: int) -> None:
    assert -(-len(plan(size, RULE.smallest_face)) // VIEWS_PER_CALL) == calls


def test_the_first_views_are_the_whole_frame_and_the_largest_squares() -> None:
    views = plan(Size(1280, 720), RULE.smallest_face)
    assert views[:3] == (View(0, -280, 1280), View(0, 0, 720), View(560, 0, 720))


class RecordingDevice(CpuDevice):
    """Notes which part of the picture each crop showed."""

    def __init__(self) -> None:
        super().__init__()
        self.views: list[View] = []

    def crop(
        self, picture: NDArray[np.uint8], picture_from_crop: NDArray[np.float64], spec: TensorSpec, out: F32
    ) -> None:
        k = float(picture_from_crop[0, 0])
        x, y = (float(v) for v in picture_from_crop[:, 2] + 0.5 - 0.5 * k)
        self.views.append(View(round(x, 6), round(y, 6), round(k * 128, 6)))


class OneFaceEngine:
    """Sees one face in the middle of every view."""

    runtime, inputs, outputs = "fake", CARD.inputs, CARD.outputs
    closed = False

    def run(self, *tensors: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        regressors, logits = outputs((700, 3.0, (64, 64, 32, 32)))
        return regressors[None], logits[None, :, None]

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def device() -> RecordingDevice:
    return RecordingDevice()


@pytest.fixture
def detector(device: RecordingDevice) -> SsdDetector:
    return SsdDetector(CARD, OneFaceEngine(), device)


FRAME = np.zeros((480, 640, 3), np.uint8)


def test_calls_walk_through_the_whole_plan_and_start_again(detector: SsdDetector, device: RecordingDevice) -> None:
    calls = -(-len(plan(Size(640, 480), RULE.smallest_face)) // VIEWS_PER_CALL)
    for _ in range(calls):
        detector.detect(FRAME)
    assert len(device.views) == calls * VIEWS_PER_CALL
    expected = [View(*(round(v, 6) for v in view)) for view in plan(Size(640, 480), RULE.smallest_face)]
    assert device.views[: len(expected)] == expected
    assert set(device.views[len(expected) :]) <= set(expected)


def test_a_call_costs_the_same_with_lost_faces(detector: SsdDetector, device: RecordingDevice) -> None:
    detector.detect(FRAME, near=[box(100, 100, 40), box(200, 200, 40), box(300, 300, 40), box(400, 400, 40)])
    assert len(device.views) == VIEWS_PER_CALL
    assert device.views[:2] == [around(box(100, 100, 40)), around(box(200, 200, 40))]
    assert device.views[2] == plan(Size(640, 480), RULE.smallest_face)[0]


def test_a_picture_of_another_size_starts_a_new_search(detector: SsdDetector, device: RecordingDevice) -> None:
    detector.detect(FRAME)
    detector.detect(np.zeros((720, 1280, 3), np.uint8))
    assert device.views[VIEWS_PER_CALL] == View(0, -280, 1280)


def test_what_a_view_shows_comes_back_in_frame_pixels(detector: SsdDetector) -> None:
    faces = detector.detect(FRAME, near=[box(100, 200, 40)])
    (face,) = [f for f in faces if abs(float(f.box_xyxy[0]) - 80) < 0.01]
    np.testing.assert_allclose(face.box_xyxy, [80, 180, 120, 220], atol=1e-3)
    np.testing.assert_allclose(face.points, np.tile([100, 200], (6, 1)), atol=1e-3)


def test_faces_come_most_prominent_first(detector: SsdDetector) -> None:
    ranks = [prominence(face.box_xyxy, Size(640, 480)) for face in detector.detect_everywhere(FRAME)]
    assert len(ranks) > 2
    assert ranks == sorted(ranks, reverse=True)


def test_closing_frees_the_network(device: RecordingDevice) -> None:
    engine = OneFaceEngine()
    SsdDetector(CARD, engine, device).close()
    assert engine.closed


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("strides", [8, 32], r"make boxes of shape \(1, 608, 16\), its first output has \(1, 896, 16\)"),
        ("key_points", ["left_eye", "right_eye"], r"make boxes of shape \(1, 896, 8\)"),
        ("key_points", ["nose", "left_eye", "right_eye", "a", "b", "c"], "begin with nose, left_eye"),
        ("key_point", [], "key_point: Unexpected keyword argument"),
    ],
)
def test_a_card_whose_numbers_contradict_each_other_is_refused(
    device: RecordingDevice, key: str, value: list[Any], said: str
) -> None:
    with pytest.raises(ModelError, match=said):
        SsdDetector(replace(CARD, decode={**CARD.decode, key: value}), OneFaceEngine(), device)
