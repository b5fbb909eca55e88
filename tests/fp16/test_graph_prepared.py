"""A published file becomes a graph of fixed shapes, and what is seldom new is computed apart, to the same result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from engines.batch import with_batch
from engines.card import ModelCard
from engines.contract import TensorSpec
from engines.emap import read_emap
from engines.errors import EngineError, ModelError
from engines.fp16 import to_fp16
from engines.fp16.check import run
from engines.graph import Prepared, prepare
from engines.graph.view import View, opset_of
from engines.trial import apart, trial_inputs
from tests.cards import Net, net, picture
from tests.facenets import EVERY, Graph, emap_of, inswapper, latent_swapper
from tests.halfnets import Feeds, inswapper_like
from tests.helpernets import enhancer
from tests.networks import write_swapper

pytestmark = pytest.mark.fp16

VECTOR = TensorSpec("source", (1, 8))


def feeds_of(card: ModelCard, seed: int = 0) -> Feeds:
    return dict(zip((spec.name for spec in card.inputs), trial_inputs(card, seed), strict=True))


def together(prepared: Prepared, feeds: Feeds) -> Feeds:
    """What both parts do, one after the other."""
    given = feeds if prepared.style_model is None else feeds | run(prepared.style_model, feeds)
    return run(prepared.model, given)


def small(g: Graph, source: TensorSpec = VECTOR, side: int = 16) -> Net:
    """A network that ends in ``output``, of one picture and something else."""
    inputs = picture("target", side), source
    outputs = (picture("output", side),)
    return net("test_small", "latent", g.model(inputs, outputs), inputs, outputs, {"target": "target"})


@pytest.mark.parametrize("pictures", [1, 4])
@pytest.mark.parametrize("kind", EVERY)
def test_both_parts_do_what_the_whole_did(kind: str, pictures: int) -> None:
    published, right = EVERY[kind](1), EVERY[kind](pictures)
    prepared = prepare(published.model, right.card)
    feeds = feeds_of(right.card)
    expected, got = run(right.model, feeds), together(prepared, feeds)
    assert list(got) == [spec.name for spec in right.card.outputs]
    for name, values in expected.items():
        assert apart(values, got[name]) < 1e-6
    shapes = View.of(prepared.model).shapes
    assert all(-1 not in shape for shape in shapes.values())


def test_twelve_linears_of_inswapper_leave_the_frame() -> None:
    built = inswapper_like(side=32)
    prepared = prepare(built.model, built.card)
    assert len(prepared.frontier) == 24
    assert [value.name for value in prepared.model.graph.input] == ["target", *prepared.frontier]
    assert prepared.style_model is not None
    assert [value.name for value in prepared.style_model.graph.input] == ["source"]
    assert tuple(value.name for value in prepared.style_model.graph.output) == prepared.frontier
    assert not [node for node in prepared.model.graph.node if node.op_type == "Gemm"]
    facts = prepared.facts
    assert facts.moved_bytes >= 24 * 512 * 64 * 4
    assert facts.frontier_bytes == 24 * 64 * 4
    assert facts.moved_nodes == 48
    assert facts.nodes == facts.nodes_before - 48 - 12  # a reciprocal and its product are one division


def test_the_identity_matrix_is_taken_before_it_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(inswapper().model, path)
    prepared = prepare(path, inswapper().card)
    assert prepared.emap is not None
    np.testing.assert_array_equal(prepared.emap, emap_of())
    np.testing.assert_array_equal(prepared.emap, read_emap(path))
    for model in (prepared.model, prepared.style_model):
        assert model is not None
        assert "emap" not in {weight.name for weight in model.graph.initializer}
    assert prepare(EVERY["ghost"](1).model, EVERY["ghost"](1).card).emap is None


def test_what_never_changes_is_computed_once() -> None:
    g = Graph(np.random.default_rng(0))
    size = g.add("Slice", g.add("Shape", "target"), *(g.constant(np.array([n], np.int64)) for n in (0, 2)))
    rest = g.constant(np.array([-1], np.int64))
    flat = g.add("Reshape", "target", g.add("Concat", size, rest, axis=0))
    back = g.add("Reshape", flat, g.add("Shape", "target"))
    g.add("Mul", g.add("Identity", back), g.add("Sqrt", g.constant(np.array([4.0], np.float32))), out="output")
    inputs, outputs = (picture("target", 16),), (picture("output", 16),)
    prepared = prepare(
        g.model(inputs, outputs), net("test_shape", "enhancer", g.model(inputs, outputs), inputs, outputs, {}).card
    )
    assert {node.op_type for node in prepared.model.graph.node} <= {"Reshape", "Mul"}


def test_outputs_that_the_card_has_not_go_with_what_makes_them() -> None:
    built = EVERY["hyperswap"](1)
    card = replace(built.card, outputs=built.card.outputs[:1])
    prepared = prepare(built.model, card)
    assert [value.name for value in prepared.model.graph.output] == ["output"]
    assert not [node for node in prepared.model.graph.node if node.op_type == "Sigmoid"]


def test_names_are_the_cards_even_where_the_file_uses_them_inside() -> None:
    g = Graph(np.random.default_rng(0))
    g.add("Tanh", g.add("Relu", "target", out="new"), out="output")
    inputs, outputs = (picture("target", 16),), (picture("output", 16),)
    model = g.model(inputs, outputs)
    card = net("test_names", "enhancer", model, inputs, outputs, {}).card
    named = replace(card, outputs=(replace(outputs[0], name="new", any_name=True),))
    with pytest.raises(EngineError):
        prepare(model, replace(card, outputs=(replace(outputs[0], name="new"),)))
    feeds = feeds_of(card)
    got = run(prepare(model, named).model, feeds)
    np.testing.assert_array_equal(got["new"], run(model, feeds)["output"])


def test_a_file_in_half_precision_is_taken_for_its_weights() -> None:
    built = latent_swapper(side=64)
    whole = prepare(built.model, replace(built.card, decode={"target": "target"}))
    published = to_fp16(built.model, rules=()).model
    assert TensorProto.FLOAT16 in View.of(published).kinds.values()
    prepared = prepare(published, built.card)
    assert prepared.facts.widened
    assert TensorProto.FLOAT16 not in View.of(prepared.model).kinds.values()
    assert not [node for node in prepared.model.graph.node if node.op_type == "Cast"]
    feeds = feeds_of(built.card)
    assert apart(together(whole, feeds)["output"], together(prepared, feeds)["output"]) < 2e-3


def test_a_double_input_is_no_part_of_the_frame() -> None:
    built = enhancer(side=64, weight=True)
    prepared = prepare(built.model, built.card)
    assert prepared.style_model is not None
    assert TensorProto.DOUBLE not in View.of(prepared.model).kinds.values()
    feeds = feeds_of(built.card)
    assert apart(run(built.model, feeds)["output"], together(prepared, feeds)["output"]) < 1e-6


def test_nothing_is_cut_where_the_frontier_would_be_pictures() -> None:
    g = Graph(np.random.default_rng(0))
    features = g.conv("source", 3, 32, 3)
    g.add("Add", g.conv(g.add("Mul", g.conv("target", 3, 32), features), 32, 3), "target", out="output")
    side = 256  # 32 * 256 * 256 * 4 bytes is 8 MiB
    built = small(g, picture("source", side), side)
    assert prepare(built.model, built.card).style_model is None


def test_what_only_grows_stays_with_the_frame() -> None:
    g = Graph(np.random.default_rng(0))
    vector = g.gemm(g.gemm("source", 8, 8192), 8192, 3)
    shape = g.constant(np.array([1, 3, 16, 16], np.int64))
    g.add("Add", "target", g.add("Expand", g.unsqueezed(vector), shape), out="output")
    built = small(g)
    prepared = prepare(built.model, built.card)
    assert prepared.facts.frontier_bytes == 3 * 4
    feeds = feeds_of(built.card)
    assert apart(run(built.model, feeds)["output"], together(prepared, feeds)["output"]) < 1e-6


def test_nothing_is_cut_for_a_few_numbers() -> None:
    g = Graph(np.random.default_rng(0))
    g.add("Add", "target", g.unsqueezed(g.gemm("source", 8, 3)), out="output")
    built = small(g)
    assert prepare(built.model, built.card).style_model is None


def test_operators_that_nobody_else_has_are_refused() -> None:
    built = EVERY["dfm"](1)
    model = onnx.ModelProto()
    model.CopyFrom(built.model)
    model.graph.node[0].domain = "com.microsoft"
    with pytest.raises(ModelError, match=r"not standard ONNX: com\.microsoft\.Transpose"):
        prepare(model, built.card)


def test_decisions_at_run_time_are_refused() -> None:
    branch = helper.make_graph([], "b", [], [helper.make_tensor_value_info("target", TensorProto.FLOAT, None)])
    built = EVERY["dfm"](1)
    model = onnx.ModelProto()
    model.CopyFrom(built.model)
    model.graph.node.append(helper.make_node("If", ["c"], ["d"], then_branch=branch, else_branch=branch))
    with pytest.raises(ModelError, match=r"decides while it runs .*\(If\)"):
        prepare(model, built.card)


def test_an_opset_that_is_too_old_is_refused() -> None:
    built = EVERY["dfm"](1)
    model = onnx.ModelProto()
    model.CopyFrom(built.model)
    model.opset_import[0].version = 8
    assert opset_of(model) == 8
    with pytest.raises(ModelError, match="opset 8, TensorRT reads 9"):
        prepare(model, built.card)


def test_a_size_must_be_fixed() -> None:
    built = EVERY["dfm"](1)
    with pytest.raises(ModelError, match="in_face:0 is not fixed"):
        prepare(built.model, with_batch(built.card, -1))


def test_a_file_with_a_number_of_pictures_built_in_is_refused(tmp_path: Path) -> None:
    path, card = write_swapper(tmp_path / "stiff.onnx", "stiff")
    assert prepare(path, card).facts.nodes > 0
    with pytest.raises(EngineError, match=r"gives 'output' as \(1, 3, 8, 8\), its card says \(4, 3, 8, 8\)"):
        prepare(path, with_batch(with_batch(card, -1), 4))


def test_what_is_no_onnx_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"\xff" * 99)
    for name in ("m.onnx", "none.onnx"):
        with pytest.raises(ModelError, match="cannot be read as an ONNX model"):
            prepare(tmp_path / name, EVERY["dfm"](1).card)


def test_an_input_that_changes_nothing_is_refused() -> None:
    g = Graph(np.random.default_rng(0))
    g.add("Relu", "target", out="output")
    built = small(g)
    with pytest.raises(ModelError, match="makes nothing of its input source"):
        prepare(built.model, built.card)


def test_weights_that_are_declared_as_inputs_are_weights() -> None:
    built = EVERY["dfm"](1)
    model = onnx.ModelProto()
    model.CopyFrom(built.model)
    for weight in model.graph.initializer:
        model.graph.input.append(helper.make_tensor_value_info(weight.name, weight.data_type, weight.dims))
    assert [v.name for v in prepare(model, built.card).model.graph.input] == ["in_face:0"]
    assert numpy_helper.to_array(model.graph.initializer[0]).size > 0
