from __future__ import annotations

import gc
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from engines.card import decode_as, load_card
from engines.cpu import CpuDevice
from engines.errors import ModelError
from realtime import geometry
from realtime.detect import open_detector, prominence
from realtime.detect.letterbox import Letterbox
from realtime.detect.scrfd import ScrfdDetector, decode
from realtime.detect.whole import GridDecode, cells, looked_at, square
from realtime.types import F32, Size
from tests.letterboxed import laid

CARD = load_card("scrfd_500m")
RULE = decode_as(CARD, GridDecode)
INPUT = Size(128, 96)
GRIDS = [cells(INPUT, stride, 2) for stride in RULE.strides]

Outputs = list[NDArray[Any]]


def outputs_of(seed: int, faces: int, batch_axis: bool = False) -> Outputs:
    """Random outputs of one run in which some anchors see a face, often several the same."""
    rng = np.random.default_rng(seed)
    scores = [rng.uniform(0, 0.49, (len(grid), 1)).astype(np.float32) for grid in GRIDS]
    boxes = [rng.uniform(0, 5, (len(grid), 4)).astype(np.float32) for grid in GRIDS]
    points = [rng.uniform(-4, 4, (len(grid), 10)).astype(np.float32) for grid in GRIDS]
    for _ in range(faces):
        level = int(rng.integers(3))
        first = int(rng.integers(len(GRIDS[level])))
        for row in range(first, min(first + int(rng.integers(1, 5)), len(GRIDS[level]))):
            scores[level][row] = rng.uniform(0.5, 1)
    made = [*scores, *boxes, *points]
    return [part[None] for part in made] if batch_axis else made


def slowly(outputs: Outputs, input_size: Size, rule: GridDecode) -> list[tuple[float, list[float], list[float]]]:
    """What the outputs mean, one anchor at a time: faces best first."""
    found = []
    for level, stride in enumerate(rule.strides):
        row = 0
        for y in range(input_size.h // stride):
            for x in range(input_size.w // stride):
                for _ in range(rule.anchors_per_cell):
                    score = float(outputs[level].reshape(-1)[row])
                    if score >= rule.min_score:
                        left, top, right, bottom = outputs[level + 3].reshape(-1, 4)[row].astype(float) * stride
                        box = [x * stride - left, y * stride - top, x * stride + right, y * stride + bottom]
                        away = outputs[level + 6].reshape(-1, 10)[row].astype(float) * stride
                        points = [v + (x, y)[i % 2] * stride for i, v in enumerate(away)]
                        found.append((score, box, points))
                    row += 1
    found.sort(key=lambda face: -face[0])
    kept: list[tuple[float, list[float], list[float]]] = []
    for face in found:
        if all(overlap(face[1], other[1]) < rule.overlap_iou for other in kept):
            kept.append(face)
    return kept


def overlap(a: list[float], b: list[float]) -> float:
    wide = min(a[2], b[2]) - max(a[0], b[0])
    high = min(a[3], b[3]) - max(a[1], b[1])
    inner = max(wide, 0) * max(high, 0)
    total = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - inner
    return inner / total if total > 0 else 0


class FixedEngine:
    """Answers with the same outputs every time, and notes what it was given."""

    runtime, inputs, outputs = "fake", CARD.inputs, CARD.outputs

    def __init__(self, answer: Outputs) -> None:
        self.answer = answer
        self.given: list[F32] = []
        self.closed = False

    def run(self, *tensors: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        self.given.append(tensors[0])
        return tuple(self.answer)

    def close(self) -> None:
        self.closed = True


def detector_of(answer: Outputs) -> tuple[ScrfdDetector, FixedEngine]:
    engine = FixedEngine(answer)
    return ScrfdDetector(
        replace(CARD, decode={**CARD.decode, "side": 128, "close_up_side": 32}), engine, CpuDevice()
    ), engine


@given(st.integers(0, 10_000), st.integers(0, 12), st.booleans())
def test_decoding_says_what_a_loop_over_every_anchor_says(seed: int, faces: int, batch_axis: bool) -> None:
    outputs = outputs_of(seed, faces, batch_axis)
    candidates = decode(outputs, GRIDS, RULE)
    everything = replace(RULE, overlap_iou=2.0)
    expected = slowly(outputs, INPUT, everything)
    order = np.argsort(-candidates.scores, kind="stable")
    assert len(order) == len(expected)
    for index, (score, box, points) in zip(order, expected, strict=True):
        assert candidates.scores[index] == pytest.approx(score)
        np.testing.assert_allclose(candidates.boxes[index], box, atol=1e-3)
        np.testing.assert_allclose(candidates.points[index].ravel(), points, atol=1e-3)


@given(st.integers(0, 10_000), st.integers(0, 12))
def test_a_detector_keeps_what_a_loop_over_every_pair_keeps(seed: int, faces: int) -> None:
    outputs = outputs_of(seed, faces)
    detector, _ = detector_of(outputs)
    found = sorted(detector.detect(np.zeros((48, 64, 3), np.uint8)), key=lambda face: -face.score)  # half the input
    expected = slowly(outputs, INPUT, RULE)
    assert [face.score for face in found] == pytest.approx([score for score, _, _ in expected])
    for face, (_, box, points) in zip(found, expected, strict=True):
        np.testing.assert_allclose(face.points.ravel() * 2, points, atol=1e-2)
        side = max(box[2] - box[0], box[3] - box[1]) * RULE.square_scale
        assert float(face.box_xyxy[2] - face.box_xyxy[0]) * 2 == pytest.approx(side, abs=1e-2)
        assert float(face.box_xyxy[3] - face.box_xyxy[1]) * 2 == pytest.approx(side, abs=1e-2)


@given(st.floats(-3.1, 3.1), st.floats(20, 300))
def test_the_square_lies_between_eyes_and_mouth_however_the_head_is_turned(turn: float, height: float) -> None:
    upright = np.array([[-0.2, -0.15], [0.2, -0.15], [0, 0.1], [-0.15, 0.3], [0.15, 0.3]]) * height
    cos, sin = np.cos(turn), np.sin(turn)
    points = upright @ np.array([[cos, sin], [-sin, cos]]) + 500
    box = np.array([500 - height / 3, 500 - height / 2, 500 + height / 3, 500 + height / 2])
    left, top, right, bottom = square(box, points, 0.8)
    np.testing.assert_allclose([right - left, bottom - top], 0.8 * height)
    np.testing.assert_allclose([(left + right) / 2, (top + bottom) / 2], points[[0, 1, 3, 4]].mean(axis=0), atol=1e-6)


def test_numbers_that_are_none_are_no_face() -> None:
    outputs = outputs_of(3, 0)
    for row, value in ((4, np.nan), (40, np.inf), (90, 0.9)):
        outputs[0][row] = 0.9
        outputs[3][row] = value
    outputs[0][100] = np.nan
    detector, _ = detector_of(outputs)
    assert len(detector.detect(np.zeros((96, 128, 3), np.uint8))) == 1


@pytest.mark.parametrize(
    ("picture", "given"),
    [
        (Size(640, 480), Size(640, 480)),
        (Size(1280, 720), Size(640, 384)),
        (Size(1920, 1080), Size(640, 384)),
        (Size(1080, 1920), Size(384, 640)),
        (Size(320, 240), Size(640, 480)),
        (Size(640, 640), Size(640, 640)),
        (Size(4000, 2), Size(640, 32)),
    ],
)
def test_a_free_input_takes_the_aspect_of_the_picture(picture: Size, given: Size) -> None:
    assert Letterbox(CARD.inputs[0], 32).size_for(picture, 640) == given


@given(st.integers(1, 300), st.integers(1, 300), st.booleans())
def test_the_whole_picture_is_in_the_top_left_corner_and_black_beside(w: int, h: int, free: bool) -> None:
    spec = CARD.inputs[0] if free else replace(CARD.inputs[0], shape=(1, 3, 96, 128))
    tensor, frame_from_input = laid(spec, np.full((h, w, 3), 255, np.uint8), 128)
    size = Size(tensor.shape[3], tensor.shape[2])
    corner = geometry.apply(geometry.invert(frame_from_input), [w, h])
    assert corner[0] == pytest.approx(size.w) or corner[1] == pytest.approx(size.h) or free
    assert (corner <= np.array(size) + 1e-6).all()
    light, dark = np.float32(127.5 / 128), np.float32(-127.5 / 128)
    blend = int(np.ceil(1 / frame_from_input[0, 0])) + 1  # pixels at the border in which picture and black mix
    right, bottom = (int(v) for v in np.ceil(corner))
    inside = tensor[0, :, blend : max(blend, bottom - blend), blend : max(blend, right - blend)]
    np.testing.assert_array_equal(inside, np.full_like(inside, light))
    for outside in (tensor[0, :, bottom + blend :], tensor[0, :, :, right + blend :]):
        np.testing.assert_array_equal(outside, np.full_like(outside, dark))


def test_the_network_gets_red_first_less_127_5_over_128() -> None:
    detector, engine = detector_of(outputs_of(0, 0))
    detector.detect(np.full((96, 128, 3), (10, 60, 200), np.uint8))
    expected = np.array([(200 - 127.5) / 128, (60 - 127.5) / 128, (10 - 127.5) / 128], np.float32)
    assert engine.given[0].shape == (1, 3, 96, 128)
    np.testing.assert_allclose(
        engine.given[0][0, :, 3:-3, 3:-3], np.broadcast_to(expected[:, None, None], (3, 90, 122))
    )


def test_pictures_of_one_size_share_one_tensor() -> None:
    detector, engine = detector_of(outputs_of(0, 3))
    for _ in range(3):
        detector.detect(np.zeros((96, 128, 3), np.uint8))
    assert len(engine.given) == 3
    assert all(tensor is engine.given[0] for tensor in engine.given)


class CloseUpEngine(FixedEngine):
    """Sees one face in a small input, and what it was told in others."""

    def run(self, *tensors: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        self.given.append(tensors[0])
        if tensors[0].shape[3] == 128:
            return tuple(self.answer)
        size = Size(tensors[0].shape[3], tensors[0].shape[2])
        laid = [cells(size, stride, 2) for stride in RULE.strides]
        made = [np.zeros((len(grid), width), np.float32) for width in (1, 4, 10) for grid in laid]
        made[2][:] = [[0.9], [0.4]]
        made[5][:] = 0.4
        return tuple(made)


def close_up(answer: Outputs) -> tuple[ScrfdDetector, CloseUpEngine]:
    engine = CloseUpEngine(answer)
    card = replace(CARD, decode={**CARD.decode, "side": 128, "close_up_side": 32})
    return ScrfdDetector(card, engine, CpuDevice()), engine


PICTURE = np.zeros((96, 128, 3), np.uint8)


def test_where_nobody_is_seen_the_picture_is_looked_at_once_more_made_small() -> None:
    detector, engine = close_up(outputs_of(0, 0))
    (face,) = detector.detect(PICTURE)
    assert [tensor.shape[2:] for tensor in engine.given] == [(96, 128), (32, 32)]
    # At the corner of the first cell; the box reaches 0.4 strides of 32 around it, in pixels four times the size.
    np.testing.assert_allclose(face.points, 0)
    np.testing.assert_allclose(face.box_xyxy, np.array([-1, -1, 1, 1]) * 0.4 * 32 * 4 * RULE.square_scale, rtol=1e-5)


def test_where_somebody_is_seen_one_look_is_enough_in_passing() -> None:
    detector, engine = close_up(outputs_of(1, 2))
    assert detector.detect(PICTURE)
    assert len(engine.given) == 1


def test_a_search_everywhere_looks_twice_and_names_nobody_twice() -> None:
    detector, engine = close_up(outputs_of(1, 2))
    here = detector.detect(PICTURE)
    everyone = detector.detect_everywhere(PICTURE)
    assert len(engine.given) == 3
    boxes = np.array([face.box_xyxy for face in everyone])
    assert max(float(geometry.iou(box, np.delete(boxes, n, 0)).max()) for n, box in enumerate(boxes)) < RULE.overlap_iou
    assert {face.score for face in everyone} >= {max(face.score for face in here)}
    ranks = [prominence(face.box_xyxy, Size(128, 96)) for face in everyone]
    assert ranks == sorted(ranks, reverse=True)


def test_in_a_fixed_input_the_second_look_lies_in_the_corner() -> None:
    spec = replace(CARD.inputs[0], shape=(1, 3, 128, 128))
    tensor, frame_from_input = laid(spec, np.full((96, 128, 3), 255, np.uint8), 32)
    assert frame_from_input[0, 0] == 4
    assert (tensor[0, :, :24, :32] == np.float32(127.5 / 128)).all()
    assert tensor[0].sum() == pytest.approx(3 * (24 * 32 * 2 - 128 * 128) * 127.5 / 128)


def test_looking_again_and_again_leaves_nothing_behind() -> None:
    detector, engine = detector_of(outputs_of(1, 5))
    picture = np.zeros((96, 128, 3), np.uint8)
    for _ in range(20):
        detector.detect(picture)
    engine.given = []
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(500):
        detector.detect(picture)
        engine.given.clear()
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 20_000


def test_the_table_opens_it_and_closing_it_frees_the_network() -> None:
    engine = FixedEngine(outputs_of(0, 0))
    open_detector(CARD, engine, CpuDevice()).close()
    assert engine.closed


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"strides": [8, 16]}, "make outputs of shapes"),
        ({"strides": [8, 16, 32, 64]}, "make outputs of shapes"),
        ({"key_points": ["right_eye", "left_eye", "nose", "left_mouth", "right_mouth"]}, "key points are right_eye"),
        ({"close_up_side": 100}, "side 100 is no multiple"),
        ({"side": 600}, "side 600 is no multiple of its largest stride 32"),
        ({"strides": [8, 16, 128]}, "side 192 is no multiple of its largest stride 128"),
        ({"anchors": 2}, "anchors: Unexpected keyword argument"),
    ],
)
def test_a_card_whose_numbers_contradict_each_other_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        ScrfdDetector(replace(CARD, decode={**CARD.decode, **changes}), FixedEngine([]), CpuDevice())


@pytest.mark.parametrize(
    ("picture", "size"),
    [
        (Size(1280, 720), Size(640, 384)),
        (Size(640, 480), Size(640, 480)),
        (Size(720, 1280), Size(384, 640)),
        (Size(3840, 1080), Size(640, 192)),
        (Size(320, 320), Size(640, 640)),
    ],
)
def test_what_is_looked_at_has_the_aspect_of_the_picture(picture: Size, size: Size) -> None:
    assert looked_at(CARD, picture) == size
    fixed = replace(CARD, inputs=(replace(CARD.inputs[0], shape=(1, 3, 640, 640)),))
    assert looked_at(fixed, picture) is None


@pytest.mark.parametrize("name", ["scrfd_500m", "scrfd_2.5g", "scrfd_10g"])
@given(width=st.integers(100, 4000), height=st.integers(100, 4000))
def test_a_plan_of_several_sizes_serves_every_picture_up_to_32_to_9(name: str, width: int, height: int) -> None:
    card = load_card(name)
    size = looked_at(card, Size(width, height))
    assert card.sizes is not None
    assert size is not None
    assert max(width, height) * 9 > min(width, height) * 32 or not card.sizes.fault(size)


@pytest.mark.parametrize("rows", [12800, 6400])
def test_fixed_outputs_have_a_row_for_each_anchor_or_are_refused(rows: int) -> None:
    widths = [width for width in (1, 4, 10) for _ in range(3)]
    counts = [rows, 3200, 800] * 3
    outputs = tuple(
        replace(spec, shape=(1, n, width)) for spec, n, width in zip(CARD.outputs, counts, widths, strict=True)
    )
    card = replace(CARD, inputs=(replace(CARD.inputs[0], shape=(1, 3, 640, 640)),), outputs=outputs)
    if rows == 12800:
        ScrfdDetector(card, FixedEngine([]), CpuDevice())
    else:
        with pytest.raises(ModelError, match="make outputs of shapes"):
            ScrfdDetector(card, FixedEngine([]), CpuDevice())
