from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engines import providers
from engines.card import ModelCard
from engines.conform import MOST_SHAPES
from engines.contract import Availability, TensorSpec
from engines.cuda import provider
from engines.errors import EngineError
from engines.onnxrt import OnnxRuntimeEngine
from engines.providers import PROVIDERS, Provider, to_try

onnx = pytest.importorskip("onnx", reason="the tests build networks with onnx, which is in the extra dev")
ort = pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper  # noqa: E402

from tests import networks  # noqa: E402

Network = tuple[Path, ModelCard]


@pytest.fixture
def swapper(tmp_path: Path) -> Network:
    return networks.write_swapper(tmp_path / "swapper.onnx")


def inputs(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.random((1, 3, 8, 8), np.float32), rng.random((1, 4), np.float32)


def double(tmp_path: Path, shape: tuple[int | str, ...], kind: int = TensorProto.FLOAT) -> Path:
    """A network that adds its input to itself."""
    path = tmp_path / "double.onnx"
    nodes = [helper.make_node("Add", ["x", "x"], ["y"])]
    return networks.write(path, nodes, [networks.tensor("x", shape, kind)], [networks.tensor("y", shape, kind)])


def test_it_says_what_really_runs_and_answers_like_a_plain_session(swapper: Network) -> None:
    path, card = swapper
    engine = OnnxRuntimeEngine(card, path)
    assert engine.runtime == f"onnxrt {ort.__version__}, CPUExecutionProvider, 1 thread"
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for seed in range(3):
        target, source = inputs(seed)
        (expected,) = session.run(None, {"target": target, "source": source})
        np.testing.assert_allclose(engine.run(target, source)[0], expected, atol=1e-6)


def test_it_writes_into_the_same_buffers_run_after_run(swapper: Network) -> None:
    path, card = swapper
    engine = OnnxRuntimeEngine(card, path)
    first = engine.run(*inputs(0))[0]
    kept = first.copy()
    assert engine.run(*inputs(1))[0] is first
    assert not np.array_equal(first, kept)
    assert engine.run(*inputs(0))[0] is first
    np.testing.assert_array_equal(first, kept)


def test_each_shape_of_free_axes_has_buffers_of_its_own(tmp_path: Path) -> None:
    path = double(tmp_path, (1, 2, "h", "w"))
    spec = TensorSpec("x", (1, 2, -1, -1))
    engine = OnnxRuntimeEngine(networks.card_of(path, [spec], [replace(spec, name="y")]), path)
    results: list[np.ndarray] = []
    for shape in ((1, 2, 4, 6), (1, 2, 4, 6), (1, 2, 8, 6), (1, 2, 8, 6), (1, 2, 4, 6)):
        x = np.random.default_rng(len(results)).random(shape, np.float32)
        (y,) = engine.run(x)
        np.testing.assert_array_equal(y, 2 * x)
        results.append(y)
    assert results[0] is results[1] is results[4]
    assert results[2] is results[3]
    assert results[1].shape != results[2].shape
    for width in range(MOST_SHAPES):
        engine.run(np.zeros((1, 2, 1, 1 + width), np.float32))
    assert engine.run(np.zeros((1, 2, 4, 6), np.float32))[0] is not results[0]  # but not for ever


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (TensorProto.FLOAT, "float32"),
        (TensorProto.FLOAT16, "float16"),
        (TensorProto.DOUBLE, "float64"),
        (TensorProto.INT64, "int64"),
        (TensorProto.INT32, "int32"),
    ],
)
def test_other_types_than_float32_are_served(tmp_path: Path, kind: int, dtype: str) -> None:
    path = double(tmp_path, (2, 3), kind)
    spec = TensorSpec("x", (2, 3), dtype)
    engine = OnnxRuntimeEngine(networks.card_of(path, [spec], [replace(spec, name="y")]), path)
    for value in (1, 3):
        np.testing.assert_array_equal(engine.run(np.full((2, 3), value, dtype))[0], np.full((2, 3), 2 * value, dtype))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "picture"}, "the card says 'picture' is float32 .* only target, source"),
        ({"shape": (1, 3, 16, 16)}, r"the card says 'target' is float32 \(1, 3, 16, 16\), the file has"),
        ({"dtype": "float16"}, "the card says 'target' is float16"),
    ],
)
def test_a_card_that_is_not_true_to_its_file_is_refused(swapper: Network, changes: dict[str, Any], said: str) -> None:
    path, card = swapper
    with pytest.raises(EngineError, match=said):
        OnnxRuntimeEngine(replace(card, inputs=(replace(card.inputs[0], **changes), card.inputs[1])), path)


def test_outputs_of_another_shape_than_the_card_says_are_refused(tmp_path: Path) -> None:
    path = double(tmp_path, (1, "n"))
    card = networks.card_of(path, [TensorSpec("x", (1, -1))], [TensorSpec("y", (1, 5))])
    with pytest.raises(EngineError, match=r"gives 'y' as \(1, 4\), its card says \(1, 5\)"):
        OnnxRuntimeEngine(card, path).run(np.zeros((1, 4), np.float32))


def test_outputs_whose_size_hangs_on_the_values_are_an_error_and_no_rubbish(tmp_path: Path) -> None:
    nodes = [helper.make_node("NonZero", ["x"], ["y"])]
    path = networks.write(
        tmp_path / "n.onnx", nodes, [networks.tensor("x", (4,))], [networks.tensor("y", (1, "n"), TensorProto.INT64)]
    )
    card = networks.card_of(path, [TensorSpec("x", (4,))], [TensorSpec("y", (1, -1), "int64")])
    engine = OnnxRuntimeEngine(card, path)
    assert engine.run(np.ones(4, np.float32))[0].tolist() == [[0, 1, 2, 3]]
    with pytest.raises(EngineError, match="cannot run"):
        engine.run(np.array([0, 1, 0, 0], np.float32))


def test_wrong_arrays_and_a_closed_engine_are_refused(swapper: Network) -> None:
    path, card = swapper
    engine = OnnxRuntimeEngine(card, path)
    target, source = inputs()
    with pytest.raises(EngineError, match="takes 2 inputs, got 1"):
        engine.run(target)
    with pytest.raises(EngineError, match="'source' must be a C-contiguous float32"):
        engine.run(target, source.astype(np.float64))
    engine.close()
    engine.close()
    with pytest.raises(EngineError, match="closed"):
        engine.run(target, source)


def test_a_truncated_file_is_called_damaged(swapper: Network) -> None:
    path, card = swapper
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(EngineError, match="ONNX Runtime cannot load swapper") as caught:
        OnnxRuntimeEngine(card, path)
    assert "damaged" in caught.value.hint


def test_operators_that_the_runtime_lacks_are_named(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Sparkle", ["x"], ["y"], domain="maker.own")],
        "network",
        [networks.tensor("x", (1, 2))],
        [networks.tensor("y", (1, 2))],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("maker.own", 1)]
    path = tmp_path / "custom.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
    with pytest.raises(EngineError, match="Sparkle") as caught:
        OnnxRuntimeEngine(networks.card_of(path, [TensorSpec("x", (1, 2))], [TensorSpec("y", (1, 2))]), path)
    assert "operators" in caught.value.hint


NVIDIA, APPLE, WINDOWS = "CUDAExecutionProvider", "CoreMLExecutionProvider", "DmlExecutionProvider"


@pytest.mark.parametrize(
    ("name", "available", "tried"),
    [
        ("auto", {providers.CPU}, ("cpu",)),
        ("auto", {providers.CPU, NVIDIA}, ("cuda", "cpu")),
        ("auto", {providers.CPU, WINDOWS, NVIDIA}, ("cuda", "directml", "cpu")),
        ("auto", {providers.CPU, APPLE, "AzureExecutionProvider"}, ("coreml", "cpu")),
        ("auto", {providers.CPU, "OpenVINOExecutionProvider"}, ("cpu",)),
        ("openvino", {providers.CPU, "OpenVINOExecutionProvider"}, ("openvino",)),
        ("cuda", {providers.CPU, NVIDIA}, ("cuda",)),
        ("cpu", {providers.CPU, NVIDIA}, ("cpu",)),
    ],
)
def test_the_best_that_a_build_offers_is_tried_first(name: str, available: set[str], tried: tuple[str, ...]) -> None:
    assert to_try(name, available) == tried


def test_a_provider_that_the_build_lacks_is_refused_with_how_to_get_it() -> None:
    with pytest.raises(EngineError, match="no provider 'cuda', only cpu") as caught:
        to_try("cuda", {providers.CPU})
    assert caught.value.hint == f"{PROVIDERS['cuda'].install}, or choose provider cpu"


def test_a_provider_that_nobody_knows_is_refused_with_those_there_are() -> None:
    with pytest.raises(EngineError, match="no provider 'warp'") as caught:
        to_try("warp", {providers.CPU})
    assert caught.value.hint == "use one of: auto, cuda, coreml, directml, openvino, cpu"


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that comes with every build and runs no operator of its own, so all of them would fall back."""
    if "AzureExecutionProvider" not in ort.get_available_providers():
        pytest.skip("this build of ONNX Runtime has no provider that runs nothing")
    for name, line in (("cloud", Provider("AzureExecutionProvider", "pip install it")), ("cpu", PROVIDERS["cpu"])):
        monkeypatch.delitem(PROVIDERS, name, raising=False)
        monkeypatch.setitem(PROVIDERS, name, line)


@pytest.mark.usefixtures("cloud")
def test_a_model_that_would_fall_to_the_processor_is_refused(swapper: Network) -> None:
    path, card = swapper
    with pytest.raises(EngineError, match="cannot load swapper on cloud") as caught:
        OnnxRuntimeEngine(card, path, provider="cloud")
    assert "let the processor do those" in caught.value.hint


@pytest.mark.usefixtures("cloud")
def test_where_the_processor_is_allowed_it_is_told_how_much_it_does(swapper: Network) -> None:
    path, card = swapper
    engine = OnnxRuntimeEngine(card, path, provider="cloud", allow_cpu=True)
    assert "AzureExecutionProvider (0 nodes) then CPUExecutionProvider (" in engine.runtime
    assert engine.runtime.endswith("nodes), 1 thread")
    assert engine.run(*inputs())[0].shape == (1, 3, 8, 8)


@pytest.mark.usefixtures("cloud")
def test_auto_goes_on_to_the_next_and_keeps_the_reason(swapper: Network) -> None:
    path, card = swapper
    engine = OnnxRuntimeEngine(card, path, threads=2)
    assert "CPUExecutionProvider, 2 threads, not on cloud: ONNX Runtime cannot load swapper on cloud" in engine.runtime


def test_a_provider_that_is_installed_but_does_not_start_is_no_silent_processor(
    swapper: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, card = swapper
    if NVIDIA in ort.get_available_providers():
        pytest.skip("this build of ONNX Runtime has CUDA")
    monkeypatch.setattr(ort, "get_available_providers", lambda: [NVIDIA, providers.CPU])
    monkeypatch.setattr(provider, "prepare", lambda: Availability(True, "as far as it knows"))
    for allow_cpu, said in (
        (True, "cuda does not start: .* would run swapper on CPU"),
        (False, "cannot load .* on cuda"),
    ):
        with pytest.warns(UserWarning, match="CUDA"), pytest.raises(EngineError, match=said) as caught:
            OnnxRuntimeEngine(card, path, provider="cuda", allow_cpu=allow_cpu)
        assert "driver" in caught.value.hint


def test_a_gpu_that_cannot_be_used_is_told_in_its_own_words_and_onnx_runtime_is_not_sent_there(
    swapper: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, card = swapper
    monkeypatch.setattr(ort, "get_available_providers", lambda: [NVIDIA, providers.CPU])
    monkeypatch.setattr(provider, "prepare", lambda: Availability(False, "there is no NVIDIA driver", "install it"))
    with pytest.raises(EngineError, match=r"^cuda cannot be used: there is no NVIDIA driver$") as caught:
        OnnxRuntimeEngine(card, path, provider="cuda", allow_cpu=True)
    assert caught.value.hint.startswith("install it; or choose")
    assert OnnxRuntimeEngine(card, path).runtime.endswith("1 thread, not on cuda: there is no NVIDIA driver")
