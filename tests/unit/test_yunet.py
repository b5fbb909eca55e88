from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.card import ModelCard, decode_as, load_card
from engines.cpu import CpuDevice
from engines.errors import ModelError
from engines.onnxrt import OnnxRuntimeEngine
from realtime.detect import open_detector
from realtime.detect.whole import GridDecode, cells
from realtime.detect.yunet import YuNetDetector, decode
from realtime.types import F32, U8, Size

CARD = load_card("yunet")
RULE = decode_as(CARD, GridDecode)
SIDE = 128
KEEP_ALL = 1.0
"""An overlap that no two candidates reach."""


def small_card(**changes: Any) -> ModelCard:
    """The card for an input of 128 by 128."""
    rows = [(SIDE // stride) ** 2 for stride in RULE.strides] * 4
    outputs = tuple(replace(spec, shape=(1, n, spec.shape[2])) for spec, n in zip(CARD.outputs, rows, strict=True))
    picture = replace(CARD.inputs[0], shape=(1, 3, SIDE, SIDE))
    return replace(
        CARD, inputs=(picture,), outputs=outputs, decode={**CARD.decode, "side": SIDE, "close_up_side": 32, **changes}
    )


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnx", reason="the tests build networks with onnx, which is in the extra dev")
    from tests.networks import write_yunet

    return write_yunet(tmp_path_factory.mktemp("yunet") / "yunet.onnx", SIDE)


def opencv_says(network: Path, picture: U8, min_score: float) -> F32:
    """(n, 15) of OpenCV's own detector, best first: left, top, width, height, five points, score."""
    theirs = cv2.FaceDetectorYN.create(str(network), "", (SIDE, SIDE), min_score, KEEP_ALL, 5000)
    _, faces = theirs.detect(picture)
    return np.asarray(faces, np.float32)


@pytest.mark.parametrize("seed", range(4))
def test_decoding_says_what_opencvs_own_detector_says(network: Path, seed: int) -> None:
    picture = np.random.default_rng(seed).integers(0, 256, (SIDE, SIDE, 3), np.uint8)
    theirs = opencv_says(network, picture, RULE.min_score)
    engine = OnnxRuntimeEngine(small_card(), network)
    tensor = np.ascontiguousarray(np.moveaxis(picture, -1, 0)[None]).astype(np.float32)
    grids = [cells(Size(SIDE, SIDE), stride, 1) for stride in RULE.strides]
    ours = decode(engine.run(tensor), grids, RULE)
    order = np.argsort(-ours.scores)
    assert len(order) == len(theirs) > 20
    np.testing.assert_allclose(ours.scores[order], theirs[:, 14], atol=1e-5)
    np.testing.assert_allclose(ours.boxes[order, :2], theirs[:, :2], atol=1e-3)
    np.testing.assert_allclose(ours.boxes[order, 2:] - ours.boxes[order, :2], theirs[:, 2:4], atol=1e-3)
    np.testing.assert_allclose(ours.points[order].reshape(-1, 10), theirs[:, 4:14], atol=1e-3)


def test_the_detector_feeds_the_network_as_opencv_does(network: Path) -> None:
    # The same size as the input, so neither scales: colour order, range and place of every pixel must be the same.
    picture = np.random.default_rng(7).integers(0, 256, (SIDE, SIDE, 3), np.uint8)
    card = small_card(overlap_iou=KEEP_ALL)
    detector = open_detector(card, OnnxRuntimeEngine(card, network), CpuDevice())
    ours = sorted(detector.detect(picture), key=lambda face: -face.score)
    theirs = opencv_says(network, picture, RULE.min_score)
    np.testing.assert_allclose([face.score for face in ours], theirs[:, 14], atol=1e-5)
    np.testing.assert_allclose([face.points.ravel() for face in ours], theirs[:, 4:14], atol=1e-3)
    detector.close()


@given(st.integers(0, 1000))
def test_shares_outside_of_0_to_1_count_as_the_nearest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    grids = [cells(Size(64, 64), stride, 1) for stride in RULE.strides]
    parts = [rng.uniform(-1, 2, (1, len(grid), 1)).astype(np.float32) for _ in range(2) for grid in grids]
    boxes = [np.zeros((1, len(grid), width), np.float32) for width in (4, 10) for grid in grids]
    found = decode([*parts, *boxes], grids, RULE)
    face, thing = (np.concatenate([p.ravel() for p in parts[i : i + 3]]) for i in (0, 3))
    expected = np.sqrt(np.clip(face, 0, 1) * np.clip(thing, 0, 1))
    np.testing.assert_allclose(found.scores, expected[expected >= RULE.min_score])
    assert (found.scores <= 1).all()
    widths = found.boxes[:, 2] - found.boxes[:, 0]
    assert set(widths.round(3).tolist()) <= {8.0, 16.0, 32.0}  # exp(0) strides


def test_a_card_of_another_family_is_refused() -> None:
    scrfd = load_card("scrfd_500m")
    engine = type("Engine", (), {"inputs": scrfd.inputs, "outputs": scrfd.outputs})()
    with pytest.raises(ModelError, match="make outputs of shapes"):
        YuNetDetector(scrfd, engine, CpuDevice())
