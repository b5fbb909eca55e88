from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engines.batch import open_batched
from engines.card import load_card
from engines.contract import TensorSpec
from engines.errors import EngineError
from engines.onnxrt import OnnxRuntimeEngine

pytest.importorskip("openvino", reason="the optional runtime openvino is not installed")
pytest.importorskip("onnx", reason="the tests build networks with onnx, which is in the extra dev")

from onnx import helper

from engines.openvino import OpenVinoEngine
from engines.trial import apart, trial_inputs
from tests import networks


def test_it_computes_what_onnx_runtime_computes(tmp_path: Path) -> None:
    path, card = networks.write_swapper(tmp_path / "swapper.onnx")
    ours, theirs = OpenVinoEngine(card, path), OnnxRuntimeEngine(card, path)
    assert ours.runtime.startswith("openvino ")
    assert ours.runtime.endswith(", CPU, 1 thread")
    first = None
    for seed in range(3):
        tensors = trial_inputs(card, seed)
        (one,), (other,) = ours.run(*tensors), theirs.run(*tensors)
        assert apart(other, one) < 1e-5
        assert first is None or one is first  # the same buffer each time
        first = one


def test_it_takes_arrays_that_may_only_be_read(tmp_path: Path) -> None:
    path, card = networks.write_swapper(tmp_path / "swapper.onnx")
    tensors = trial_inputs(card, 0)
    engine = OpenVinoEngine(card, path)
    expected = engine.run(*tensors)[0].copy()
    for tensor in tensors:
        tensor.setflags(write=False)
    np.testing.assert_array_equal(engine.run(*tensors)[0], expected)


def test_it_is_compiled_once_for_each_shape_that_comes(tmp_path: Path) -> None:
    path = tmp_path / "double.onnx"
    nodes = [helper.make_node("Add", ["x", "x"], ["y"])]
    shape = (1, 2, "h", "w")
    networks.write(path, nodes, [networks.tensor("x", shape)], [networks.tensor("y", shape)])
    spec = TensorSpec("x", (1, 2, -1, -1))
    engine = OpenVinoEngine(networks.card_of(path, [spec], [replace(spec, name="y")]), path)
    results: list[np.ndarray] = []
    for size in ((4, 6), (4, 6), (8, 6), (4, 6)):
        x = np.random.default_rng(len(results)).random((1, 2, *size), np.float32)
        results.append(engine.run(x)[0])
        np.testing.assert_array_equal(results[-1], 2 * x)
    assert results[0] is results[1] is results[3]
    assert results[2].shape == (1, 2, 8, 6)


@pytest.mark.parametrize("declared", [1, "n"])
def test_it_takes_several_pictures_of_a_file_that_declares_one(tmp_path: Path, declared: int | str) -> None:
    path, card = networks.write_swapper(tmp_path / "swapper.onnx", batch=declared)
    engine = open_batched(card, 4, lambda asked: OpenVinoEngine(asked, path))
    assert engine.run(np.zeros((4, 3, 8, 8), np.float32), np.zeros((1, 4), np.float32))[0].shape == (4, 3, 8, 8)


@pytest.mark.parametrize("kind", ["stiff", "mixing"])
def test_a_graph_that_cannot_take_several_is_refused(tmp_path: Path, kind: str) -> None:
    path, card = networks.write_swapper(tmp_path / "swapper.onnx", kind)
    with pytest.raises(EngineError, match="model swapper cannot take 3 pictures in one run"):
        open_batched(card, 3, lambda asked: OpenVinoEngine(asked, path))


def test_a_card_that_is_not_true_to_its_file_is_refused(tmp_path: Path) -> None:
    path, card = networks.write_swapper(tmp_path / "swapper.onnx")
    for changes in ({"name": "picture"}, {"shape": (1, 3, 16, 16)}, {"dtype": "float16"}):
        wrong = replace(card, inputs=(replace(card.inputs[0], **changes), card.inputs[1]))
        with pytest.raises(EngineError, match=r"the card says .* the file has"):
            OpenVinoEngine(wrong, path)


def test_outputs_of_another_shape_than_the_card_says_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "double.onnx"
    nodes = [helper.make_node("Add", ["x", "x"], ["y"])]
    networks.write(path, nodes, [networks.tensor("x", (1, "n"))], [networks.tensor("y", (1, "n"))])
    card = networks.card_of(path, [TensorSpec("x", (1, 4))], [TensorSpec("y", (1, 5))])
    with pytest.raises(EngineError, match=r"gives 'y' as \(1, 4\), its card says \(1, 5\)"):
        OpenVinoEngine(card, path)


def test_a_file_that_is_no_model_and_a_closed_engine_are_refused(tmp_path: Path) -> None:
    path, card = networks.write_swapper(tmp_path / "swapper.onnx")
    engine = OpenVinoEngine(card, path)
    engine.close()
    engine.close()
    with pytest.raises(EngineError, match="closed"):
        engine.run(*trial_inputs(card, 0))
    (tmp_path / "x.tflite").write_bytes(b"no model")
    with pytest.raises(EngineError, match="OpenVINO cannot load face_landmark"):
        OpenVinoEngine(load_card("face_landmark"), tmp_path / "x.tflite")
