from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engines.card import load_card
from engines.contract import TensorSpec
from engines.errors import EngineError
from engines.litert import LiteRtEngine
from engines.registry import open_engine
from engines.store import EMBEDDED
from tests.conftest import ROOT

MESH = load_card("face_landmark")


def test_litert_answers_into_the_same_buffers_each_time() -> None:
    engine = open_engine(MESH)
    x = np.random.default_rng(0).random(MESH.inputs[0].shape, np.float32)
    first = engine.run(x)
    kept = [out.copy() for out in first]
    second = engine.run(np.zeros_like(x))
    assert all(a is b for a, b in zip(first, second, strict=True))
    again = engine.run(x)
    for before, after in zip(kept, again, strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(
    "x",
    [
        np.zeros((1, 3, 192, 192), np.float32),
        np.zeros((1, 192, 192, 3), np.float64),
        np.zeros((1, 192, 192, 6), np.float32)[..., ::2],
    ],
)
def test_litert_refuses_an_array_that_does_not_fit(x: np.ndarray) -> None:
    with pytest.raises(EngineError, match="'input_1' must be a C-contiguous float32"):
        open_engine(MESH).run(x)


def test_litert_refuses_too_few_inputs() -> None:
    with pytest.raises(EngineError, match="takes 1 inputs, got 0"):
        open_engine(MESH).run()


def test_a_closed_engine_says_so() -> None:
    engine = open_engine(MESH)
    engine.close()
    with pytest.raises(EngineError, match="closed"):
        engine.run(np.zeros(MESH.inputs[0].shape, np.float32))


def test_litert_refuses_a_file_that_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "x.tflite").write_bytes(b"no model" * 100)
    with pytest.raises(EngineError, match="LiteRT cannot load"):
        LiteRtEngine(MESH, tmp_path / "x.tflite")


@pytest.mark.parametrize(
    "spec",
    [
        replace(MESH.inputs[0], name="input_2"),
        replace(MESH.inputs[0], shape=(1, 128, 128, 3)),
        replace(MESH.inputs[0], dtype="uint8"),
    ],
)
def test_a_card_that_is_not_true_to_its_file_is_refused(spec: TensorSpec) -> None:
    with pytest.raises(EngineError, match=r"the card says .* the file has"):
        LiteRtEngine(replace(MESH, inputs=(spec,)), EMBEDDED / MESH.file)


def test_opening_an_engine_prints_nothing_and_hides_nothing() -> None:
    code = (
        "import os; from engines import card, litert, store\n"
        "with litert._without_notice(): os.write(2, litert._NOTICE + b'\\nreal\\n')\n"
        "c = card.load_card('face_landmark'); litert.LiteRtEngine(c, store.find(c))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert done.stderr == "real\n"


def test_threads_0_is_one_for_the_embedded_models() -> None:
    assert open_engine(MESH).runtime.endswith("1 thread")
    assert open_engine(MESH, threads=2).runtime.endswith("2 threads")


def test_a_model_that_takes_one_picture_is_refused_more() -> None:
    with pytest.raises(EngineError, match="model face_landmark cannot take 3 pictures in one run") as caught:
        open_engine(MESH, batch=3)
    assert "one after another" in caught.value.hint
