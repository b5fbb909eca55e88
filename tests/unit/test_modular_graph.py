from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra train is not installed")
onnx = pytest.importorskip("onnx", reason="the extra train is not installed")
pytest.importorskip("onnxscript", reason="the extra train is not installed")

import onnxruntime as ort

from engines.errors import ModelError
from engines.modular.graph import OPSET, to_onnx
from engines.modular.parity import compare
from engines.modular.swapper import Pipeline
from tests.conftest import ROOT
from tests.modularnets import SIZES, Modular, used

SIDE = SIZES[0]
INPUTS = {"target": torch.rand(2, 3, SIDE, SIDE), "source": torch.rand(2, 512)}


def nudge(pipeline: Pipeline, by: float) -> None:
    """Move the last bias, and with it every value that comes out."""
    pipeline.swapper.get_parameter("generator.head.bias").add_(by)


@pytest.fixture
def pipeline(modular: Modular) -> Pipeline:
    return modular.pipeline


@pytest.fixture
def encoder(modular: Modular) -> bytes:
    return modular.exported.files["modular_gated_encoder.onnx"]


@pytest.fixture
def swapper(modular: Modular) -> bytes:
    return modular.exported.files[f"modular_gated_{SIDE}.onnx"]


def shapes(values: Any) -> Mapping[str, list[int | str]]:
    return {
        value.name: [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in values
    }


def test_names_and_shapes_are_kept_and_the_batch_is_free(encoder: bytes, swapper: bytes) -> None:
    graph = onnx.load_from_string(swapper).graph
    assert shapes(graph.input) == {"target": ["batch", 3, SIDE, SIDE], "source": ["batch", 512]}
    assert shapes(graph.output) == {"output": ["batch", 3, SIDE, SIDE], "mask": ["batch", 1, SIDE, SIDE]}
    graph = onnx.load_from_string(encoder).graph
    assert shapes(graph.input) == {"face": ["batch", 3, 112, 112]}
    assert shapes(graph.output) == {"embedding": ["batch", 512]}


def test_weights_keep_the_names_that_they_have_in_pytorch(pipeline: Pipeline, swapper: bytes) -> None:
    weights = {weight.name for weight in onnx.load_from_string(swapper).graph.initializer}
    ours = {name for name, _ in pipeline.swapper.named_parameters()}
    assert {name for name in ours if name.startswith("fusion.")} <= weights
    assert {name for name in ours if name.endswith("style.weight")} <= weights


def test_the_graph_is_clean(encoder: bytes, swapper: bytes) -> None:
    for content in (encoder, swapper):
        model = onnx.load_from_string(content)
        assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", OPSET)]
        kinds = {node.op_type for node in model.graph.node}
        assert not kinds & {"BatchNormalization", "Dropout", "Identity", "Constant", "Shape", "Cast", "If", "Loop"}
        read = {name for node in model.graph.node for name in node.input}
        assert {weight.name for weight in model.graph.initializer} <= read
        assert {weight.name for weight in model.graph.initializer}.isdisjoint(shapes(model.graph.input))
        assert all(not weight.external_data for weight in model.graph.initializer)


def test_nothing_tells_where_it_was_made(encoder: bytes, swapper: bytes) -> None:
    for content in (encoder, swapper):
        assert str(ROOT).encode() not in content
        assert b"stack_trace" not in content


def test_the_same_weights_give_the_same_bytes(pipeline: Pipeline, encoder: bytes) -> None:
    assert to_onnx(pipeline.encoder, {"face": torch.zeros(3, 3, 112, 112)}, ["embedding"]) == encoder


def test_an_export_leaves_warnings_and_logs_as_they_were(encoder: bytes) -> None:
    assert encoder
    assert logging.getLogger("torch.onnx").level != logging.ERROR


def test_each_sample_is_on_its_own(pipeline: Pipeline, swapper: bytes) -> None:
    session = ort.InferenceSession(swapper)
    three = {name: np.concatenate([x.numpy(), x[:1].numpy() / 2]) for name, x in INPUTS.items()}
    together = session.run(None, three)
    for i in range(3):
        alone = session.run(None, {name: x[i : i + 1] for name, x in three.items()})
        for part, whole in zip(alone, together, strict=True):
            np.testing.assert_allclose(part[0], whole[i], atol=1e-5)


def test_the_export_computes_what_pytorch_computes(pipeline: Pipeline, encoder: bytes, swapper: bytes) -> None:
    found = compare("swapper", pipeline.swapper, swapper, INPUTS)
    found += compare("encoder", pipeline.encoder, encoder, {"face": torch.rand(2, 3, 112, 112) * 2 - 1})
    assert [(one.module, one.batch) for one in found] == [(m, b) for m in ("swapper", "encoder") for b in (1, 2)]
    assert all(0 < one.greatest < one.allowed / 3 for one in found)


def test_a_module_that_differs_from_its_export_is_an_error(pipeline: Pipeline, swapper: bytes) -> None:
    other = used()
    nudge(other, 1e-3)
    with pytest.raises(ModelError, match=r"swapper: ONNX Runtime differs from PyTorch by .* at batch 1"):
        compare("swapper", other.swapper, swapper, INPUTS)


def test_a_module_that_gives_no_numbers_is_an_error(swapper: bytes) -> None:
    broken = used()
    nudge(broken, np.nan)
    with pytest.raises(ModelError, match="differs from PyTorch by nan"):
        compare("swapper", broken.swapper, swapper, INPUTS)
