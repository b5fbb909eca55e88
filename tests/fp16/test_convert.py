"""A network in half precision is one that a strongly typed engine takes, and does what it did within stated bounds."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from engines.errors import ModelError
from engines.fp16 import check, to_fp16
from engines.fp16.check import rounded, run
from engines.graph import prepare
from engines.graph.view import View, typed, weight_bytes
from engines.trial import apart, trial_inputs
from tests.facenets import EVERY, Graph
from tests.halfnets import by_reference, emulated, inswapper_like, norm_net, of
from tests.helpernets import enhancer

pytestmark = pytest.mark.fp16

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16
GREY_LEVEL = 1 / 255
MOST_WORST, MOST_RMS = 2 * GREY_LEVEL, GREY_LEVEL / 2
"""Of an output, over its largest value and its length. Random weights are harder than trained ones: what they draw is
noise as sharp as a picture can be."""


@pytest.mark.parametrize("pictures", [1, 4])
@pytest.mark.parametrize("kind", EVERY)
def test_every_family_stays_within_two_grey_levels(kind: str, pictures: int) -> None:
    published, card = EVERY[kind](1), EVERY[kind](pictures).card
    prepared = prepare(published.model, card)
    converted = to_fp16(prepared.model, half=prepared.frontier)
    for error in check(prepared.model, converted.model, card, 0, prepared.style_model):
        assert error.worst < MOST_WORST, error
        assert error.rms < MOST_RMS, error
    half, every = converted.report.weights
    assert half >= every - 5
    assert converted.report.bytes < 0.51 * converted.report.bytes_before


def test_inswappers_topology_stays_so_by_the_reference_too() -> None:
    built = inswapper_like(side=64)
    prepared = prepare(built.model, built.card)
    converted = to_fp16(prepared.model, half=prepared.frontier).model
    feeds = dict(zip(("target", "source"), trial_inputs(built.card, 0), strict=True))
    assert prepared.style_model is not None
    feeds |= run(prepared.style_model, feeds)
    right, pure = run(prepared.model, feeds)["output"], by_reference(converted, feeds)["output"]
    assert apart(right, pure) < MOST_WORST
    assert apart(pure, emulated(converted, feeds)["output"]) < MOST_WORST


def test_a_net_that_overflows_is_told_of() -> None:
    g = Graph(np.random.default_rng(0))
    g.add("Relu", g.scalar(g.scalar("input", "Mul", 6e4), "Add", 1.0), out="output")
    built = enhancer(side=64)
    model = of(g, {"input": (1, 3, 64, 64)}, ["output"])
    (error,) = check(model, to_fp16(model).model, built.card, 0)
    assert np.isfinite(error.worst)
    g.add("Mul", "output", "output", out="square")
    model = of(g, {"input": (1, 3, 64, 64)}, ["square"])
    (error,) = check(model, to_fp16(model).model, built.card, 0)
    assert error.worst == error.rms == float("inf")


def test_modulated_convolutions_of_an_enhancer_are_demodulated_in_single_precision() -> None:
    """GFPGAN's generator: weights times a style, over their length, and only then a convolution with them."""
    g = Graph(np.random.default_rng(0))
    style = g.unsqueezed(g.conv(g.add("GlobalAveragePool", g.conv("input", 3, 8)), 8, 8, 1))
    style = g.add("Reshape", style, g.constant(np.array([1, 8, 1, 1], np.int64)))
    kernel = g.constant(g.rng.normal(0, 1, (8, 8, 3, 3)).astype(np.float32))
    weight = g.add("Mul", kernel, style)
    length = g.add("ReduceSum", g.scalar(weight, "Pow", 2), g.constant(np.array([1, 2, 3], np.int64)), keepdims=1)
    weight = g.add("Mul", weight, g.add("Reciprocal", g.add("Sqrt", g.scalar(length, "Add", 1e-8))))
    x = g.leaky(g.add("Conv", g.conv("input", 3, 8), weight, pads=[1] * 4))
    g.add("Tanh", g.conv(x, 8, 3, gain=0.5), out="output")
    built = enhancer(side=64)
    model = of(g, {"input": (1, 3, 64, 64)}, ["output"])
    prepared = prepare(model, built.card)
    converted = to_fp16(prepared.model)
    assert converted.report.islands["normalisation"] == 6
    (error,) = check(prepared.model, converted.model, built.card, 0)
    assert error.worst < MOST_WORST


def test_inputs_and_outputs_are_what_they_were() -> None:
    built = EVERY["hyperswap"](1)
    converted = to_fp16(built.model).model
    for before, after in (
        (built.model.graph.input, converted.graph.input),
        (built.model.graph.output, converted.graph.output),
    ):
        assert [v.name for v in before] == [v.name for v in after]
        assert {v.type.tensor_type.elem_type for v in after} == {FLOAT}


def test_what_is_handed_over_in_half_precision_is_declared_so() -> None:
    built = EVERY["inswapper"](1)
    converted = to_fp16(built.model, half=("target", "output")).model
    kinds = View.of(converted).kinds
    assert [kinds[name] for name in ("target", "source", "output")] == [HALF, FLOAT, HALF]
    feeds = dict(zip(("target", "source"), trial_inputs(built.card, 0), strict=True))
    assert apart(run(built.model, feeds)["output"], emulated(converted, feeds)["output"]) < MOST_WORST


def test_every_convolution_is_in_half_precision() -> None:
    prepared = prepare(inswapper_like().model, inswapper_like().card)
    view = View.of(to_fp16(prepared.model).model)
    kinds = Counter(view.kinds[name] for node in view.nodes if node.op_type == "Conv" for name in node.input)
    assert set(kinds) == {HALF}


def test_there_is_one_cast_of_a_tensor_and_none_of_a_cast() -> None:
    g = Graph(np.random.default_rng(0))
    x = g.conv("x", 4, 4)
    for _ in range(3):  # three islands read the same tensor
        g.add("Relu", g.conv(g.add("Exp", x), 4, 4), out=f"y{_}")
    report = to_fp16(of(g, {"x": (1, 4, 8, 8)}, ["y0", "y1", "y2"])).report
    assert report.casts == 1 + 1 + 3 + 3
    for kind in EVERY:
        view = View.of(to_fp16(EVERY[kind](1).model).model)
        casts = [node for node in view.nodes if node.op_type == "Cast"]
        assert not [node for node in casts if (maker := view.made_by(node.input[0])) and maker.op_type == "Cast"]
        assert len({(node.input[0], view.kinds[node.output[0]]) for node in casts}) == len(casts)


def test_a_cast_from_double_goes_straight_to_half() -> None:
    built = enhancer(side=64, weight=True)
    view = View.of(to_fp16(built.model).model)
    makers = [node for node in view.nodes if node.op_type == "Cast" and node.input[0] == "weight"]
    assert [view.kinds[node.output[0]] for node in makers] == [HALF]


def test_a_light_node_between_islands_joins_them() -> None:
    g = Graph(np.random.default_rng(0))
    x = g.add("Exp", g.conv("x", 4, 4))
    x = g.add("Exp", g.add("Relu", x))
    g.add("Relu", g.conv(x, 4, 4), out="y")
    report = to_fp16(of(g, {"x": (1, 4, 8, 8)}, ["y"])).report
    assert report.islands == {"its values leave the range": 2, "between islands": 1}
    assert report.casts == 4


def test_what_an_operator_takes_only_in_single_precision_it_gets_so() -> None:
    built = EVERY["inswapper"](1)
    view = View.of(to_fp16(built.model).model)
    (resize, _) = (node for node in view.nodes if node.op_type == "Resize")
    assert view.kinds[resize.input[0]] == HALF
    assert view.kinds[resize.input[2]] == FLOAT


def test_a_weight_that_both_sides_read_is_stored_once() -> None:
    g = Graph(np.random.default_rng(0))
    shared = g.constant(np.linspace(0.5, 1, 64, dtype=np.float32).reshape(4, 1, 4, 4))
    g.add("Relu", g.add("Mul", g.add("Pow", "x", shared), shared), out="y")
    model = of(g, {"x": (4, 1, 4, 4)}, ["y"])
    converted = to_fp16(model).model
    assert [weight.name for weight in converted.graph.initializer] == [shared]
    assert weight_bytes(converted) == 64 * 4
    feeds = {"x": np.random.default_rng(0).uniform(0, 1, (4, 1, 4, 4)).astype(np.float32)}
    assert apart(run(model, feeds)["y"], emulated(converted, feeds)["y"]) < 2e-3


def test_names_may_be_asked_for() -> None:
    model = norm_net("simswap")
    report = to_fp16(model, names=("t0",)).report
    assert report.kept["t0"] == "asked for"


def test_the_network_that_came_in_is_as_it_was() -> None:
    built = EVERY["inswapper"](1)
    before = built.model.SerializeToString()
    rounded(to_fp16(built.model).model)
    prepare(built.model, built.card)
    assert built.model.SerializeToString() == before


def test_whole_numbers_and_shapes_are_left_alone() -> None:
    g = Graph(np.random.default_rng(0))
    x = g.conv("x", 4, 4)
    count = g.add("Cast", g.add("Shape", x), to=FLOAT)
    least = g.add("ReduceMin", count, keepdims=0)
    g.add("Relu", g.add("Mul", x, least), out="y")
    g.add("ArgMax", x, axis=1, out="best")
    declared = [helper.make_tensor_value_info("x", FLOAT, (1, 4, 8, 8))]
    results = [
        helper.make_tensor_value_info("y", FLOAT, None),
        helper.make_tensor_value_info("best", TensorProto.INT64, None),
    ]
    graph = helper.make_graph(g.nodes, "network", declared, results, g.weights)
    model = typed(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    converted = to_fp16(model).model
    feeds = {"x": np.random.default_rng(0).normal(size=(1, 4, 8, 8)).astype(np.float32)}
    got = emulated(converted, feeds)
    assert got["best"].dtype == np.int64
    assert apart(run(model, feeds)["y"], got["y"]) < 2e-3


def test_graphs_inside_nodes_and_strange_operators_are_refused() -> None:
    branch = helper.make_graph([], "b", [], [helper.make_tensor_value_info("x", FLOAT, None)])
    for node, said in (
        (helper.make_node("If", ["x"], ["y"], then_branch=branch, else_branch=branch), "decides while it runs"),
        (helper.make_node("Gelu", ["x"], ["y"], domain="com.microsoft"), r"com\.microsoft\.Gelu"),
    ):
        ends = [helper.make_tensor_value_info(name, FLOAT, (1, 4)) for name in ("x", "y")]
        graph = helper.make_graph([node], "network", ends[:1], ends[1:])
        with pytest.raises(ModelError, match=said):
            to_fp16(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))


def test_the_checker_and_the_runtime_take_what_is_written() -> None:
    for kind in EVERY:
        built = EVERY[kind](1)
        converted = to_fp16(built.model).model
        onnx.checker.check_model(converted, full_check=True)
        feeds = dict(zip((spec.name for spec in built.card.inputs), trial_inputs(built.card, 0), strict=True))
        assert len(run(converted, feeds)) == len(built.card.outputs)
