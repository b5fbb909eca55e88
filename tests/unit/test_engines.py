from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from engines.card import Licence, ModelCard, load_card
from engines.contract import TensorSpec
from engines.errors import EngineError
from engines.litert import LiteRtEngine
from engines.onnxrt import OnnxRuntimeEngine
from engines.registry import open_engine
from engines.store import EMBEDDED, find
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


@pytest.fixture(scope="module")
def scrfd(data_dir: Path) -> tuple[ModelCard, Path]:
    """A card for the real SCRFD weights beside the project, which may be used in tests only."""
    path = data_dir / "models" / "scrfd_500m_kps.onnx"
    rows = (12800, 3200, 800)
    outputs = [TensorSpec(f"out{i}", (1, rows[i % 3], (1, 4, 10)[i // 3])) for i in range(9)]
    picture = TensorSpec("images", (1, 3, 640, 640), "float32", "NCHW", "RGB", (127.5,) * 3, (1 / 128,) * 3)
    return (
        ModelCard(
            "scrfd_500m_kps", path.name, path.stat().st_size, sha256(path.read_bytes()).hexdigest(), "scrfd",
            ("onnxrt",), Licence("non-commercial", "InsightFace", False, "tests"), (picture,), tuple(outputs),
        ),
        path,
    )  # fmt: skip


@pytest.mark.data
def test_onnx_runtime_runs_a_real_model_on_the_provider_asked_for(scrfd: tuple[ModelCard, Path]) -> None:
    card, path = scrfd
    assert find(card, (path.parent,)) == path
    engine = OnnxRuntimeEngine(card, path)
    assert engine.runtime.startswith("onnxrt ")
    assert engine.runtime.endswith("CPUExecutionProvider, 1 thread")
    x = np.random.default_rng(0).random(card.inputs[0].shape, np.float32)
    first = [out.copy() for out in engine.run(x)]
    other = engine.run(np.zeros_like(x))
    assert any(not np.array_equal(a, b) for a, b in zip(first, other, strict=True))
    for a, b in zip(first, engine.run(x.copy()), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert [out.shape for out in first] == [spec.shape for spec in card.outputs]
    engine.close()
    with pytest.raises(EngineError, match="closed"):
        engine.run(x)


@pytest.mark.data
def test_the_binding_gives_what_a_plain_run_gives(scrfd: tuple[ModelCard, Path]) -> None:
    card, path = scrfd
    free = replace(card, outputs=tuple(replace(s, shape=(1, -1, s.shape[2])) for s in card.outputs))
    x = np.random.default_rng(1).random(card.inputs[0].shape, np.float32)
    with pytest.raises(EngineError, match=r"the card says 'out0'"):
        OnnxRuntimeEngine(replace(card, outputs=(replace(card.outputs[0], shape=(1, 5, 1)),)), path)
    bound = OnnxRuntimeEngine(card, path).run(x)
    for a, b in zip(bound, OnnxRuntimeEngine(free, path).run(x), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.data
def test_a_provider_that_is_not_there_is_refused_with_those_that_are(scrfd: tuple[ModelCard, Path]) -> None:
    card, path = scrfd
    with pytest.raises(EngineError, match=r"no NoSuchExecutionProvider here, only .*CPUExecutionProvider"):
        OnnxRuntimeEngine(card, path, provider="NoSuchExecutionProvider")


@pytest.mark.data
def test_a_model_that_would_fall_to_the_processor_is_refused(scrfd: tuple[ModelCard, Path]) -> None:
    # The Azure provider comes with every build and runs no operator of its own, so all of them would fall back.
    import onnxruntime as ort

    if "AzureExecutionProvider" not in ort.get_available_providers():
        pytest.skip("this build of ONNX Runtime has no provider that runs nothing")
    card, path = scrfd
    with pytest.raises(EngineError, match="on AzureExecutionProvider"):
        OnnxRuntimeEngine(card, path, provider="AzureExecutionProvider")
    allowed = OnnxRuntimeEngine(card, path, provider="AzureExecutionProvider", allow_cpu=True)
    assert "AzureExecutionProvider then CPUExecutionProvider" in allowed.runtime


def test_onnx_runtime_refuses_a_file_that_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "x.onnx").write_bytes(b"no model")
    with pytest.raises(EngineError, match="ONNX Runtime cannot load"):
        OnnxRuntimeEngine(MESH, tmp_path / "x.onnx")


@pytest.mark.data
def test_openvino_and_onnx_runtime_agree_on_a_real_model(scrfd: tuple[ModelCard, Path]) -> None:
    pytest.importorskip("openvino", reason="the optional runtime openvino is not installed")
    from engines.openvino import OpenVinoEngine

    card, path = scrfd
    x = np.random.default_rng(2).uniform(-1, 1, card.inputs[0].shape).astype(np.float32)
    for a, b in zip(OnnxRuntimeEngine(card, path).run(x), OpenVinoEngine(card, path).run(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


def test_openvino_refuses_a_file_that_is_no_model(tmp_path: Path) -> None:
    pytest.importorskip("openvino", reason="the optional runtime openvino is not installed")
    from engines.openvino import OpenVinoEngine

    (tmp_path / "x.tflite").write_bytes(b"no model")
    with pytest.raises(EngineError, match="OpenVINO cannot load"):
        OpenVinoEngine(MESH, tmp_path / "x.tflite")
