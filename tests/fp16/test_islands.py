"""What half precision cannot hold is found by its structure and its values, and stays in single precision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from onnx import helper

from engines.fp16 import RULES, to_fp16
from engines.fp16.check import run
from engines.fp16.islands import LARGEST, LEAST, OVERFLOWS, VANISHES, halved, norms, operators, tails, unfit, weights
from engines.graph import prepare
from engines.graph.view import View
from engines.trial import apart
from tests.facenets import Graph, latent_swapper
from tests.halfnets import SPELLINGS, Feeds, by_reference, emulated, inswapper_like, norm_net, of

pytestmark = pytest.mark.fp16

EVALUATORS = {"reference": by_reference, "emulation": emulated}
Evaluator = Callable[[onnx.ModelProto, Feeds], Feeds]


@pytest.fixture(params=EVALUATORS)
def evaluate(request: pytest.FixtureRequest) -> Evaluator:
    return EVALUATORS[request.param]


def noise(scale: float, mean: float = 0.0) -> Feeds:
    return {"x": np.abs(np.random.default_rng(1).normal(mean, scale, (1, 4, 16, 16))).astype(np.float32)}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_norm_is_found_from_its_mean_to_what_is_normalised(spelling: str) -> None:
    model = norm_net(spelling)
    found = norms(View.of(model))
    assert len(found) == SPELLINGS[spelling][1]
    outside = [node.op_type for number, node in enumerate(model.graph.node) if number not in found]
    assert outside == ["Relu", "Relu"]
    converted = to_fp16(model)
    assert converted.report.casts == 2 + 2  # into the island and out; into the network and out
    assert converted.report.islands == {"normalisation": SPELLINGS[spelling][1]}


def test_twelve_norms_of_inswapper_are_96_nodes_and_24_casts() -> None:
    built = inswapper_like()
    found = norms(View.of(onnx.shape_inference.infer_shapes(built.model)))
    assert len(found) == 96
    report = to_fp16(built.model).report
    assert report.islands == {"normalisation": 96, "end of an output": 3}
    assert report.casts == 24 + 3  # two inputs and an output


def test_the_prepared_graph_has_the_same_islands() -> None:
    built = inswapper_like()
    prepared = prepare(built.model, built.card)
    report = to_fp16(prepared.model, half=prepared.frontier).report
    assert report.islands == {"normalisation": 84, "end of an output": 3}  # one division in place of two nodes
    assert report.casts == 24 + 2


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_constant_channel_is_no_number_without_islands(spelling: str, evaluate: Evaluator) -> None:
    """Epsilon is 0 in half precision, so a channel without variance is divided by 0."""
    feeds = noise(1.0)
    feeds["x"][:, 1] = 0.0
    plain = evaluate(to_fp16(norm_net(spelling), rules=()).model, feeds)["y"]
    assert not np.isfinite(plain).all()
    kept = evaluate(to_fp16(norm_net(spelling)).model, feeds)["y"]
    assert np.isfinite(kept).all()
    assert apart(run(norm_net(spelling), feeds)["y"], kept) < 2e-3


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_large_values_are_lost_without_islands(spelling: str, evaluate: Evaluator) -> None:
    """The square of 256 is more than half precision has: the variance is infinite and what is divided by it 0."""
    feeds = noise(400.0)
    feeds["x"] = np.clip(feeds["x"], 0, 1000)
    right = run(norm_net(spelling), feeds)["y"]
    plain = evaluate(to_fp16(norm_net(spelling), rules=()).model, feeds)["y"]
    assert not apart(right, plain) < 0.5
    kept = evaluate(to_fp16(norm_net(spelling)).model, feeds)["y"]
    assert apart(right, kept) < 2e-3


def test_the_processors_own_kernels_hide_the_overflow() -> None:
    """Why none of this is tested by running the converted graph in ONNX Runtime as it is."""
    feeds = noise(400.0)
    right = run(norm_net("simswap"), feeds)["y"]
    plain = to_fp16(norm_net("simswap"), rules=()).model
    assert apart(right, run(plain, feeds)["y"]) < 0.01 < apart(right, emulated(plain, feeds)["y"])


def test_without_the_rule_for_norms_the_fault_is_back() -> None:
    feeds = noise(400.0)
    rules = [rule for rule in RULES if rule is not norms]
    got = emulated(to_fp16(norm_net("simswap"), rules=rules).model, feeds)["y"]
    assert not apart(run(norm_net("simswap"), feeds)["y"], got) < 0.5


def test_a_pool_that_scales_channels_is_no_norm() -> None:
    """Squeeze and excitation: a mean, but of no squares."""
    g = Graph(np.random.default_rng(0))
    gate = g.add("Sigmoid", g.conv(g.add("GlobalAveragePool", "x"), 4, 4, 1))
    g.add("Relu", g.add("Mul", "x", gate), out="y")
    assert norms(View.of(of(g, {"x": (1, 4, 8, 8)}, ["y"]))) == {}


def test_operators_that_leave_the_range_stay() -> None:
    g = Graph(np.random.default_rng(0))
    x = g.add("InstanceNormalization", "x", *(g.constant(np.ones(4, np.float32)) for _ in range(2)))
    x = g.add("Softmax", g.conv(x, 4, 4), axis=1)
    g.add("Relu", g.conv(x, 4, 4), out="y")
    assert Counter(operators(View.of(of(g, {"x": (1, 4, 8, 8)}, ["y"]))).values()) == {"normalisation": 1, "softmax": 1}


def test_the_end_of_an_output_stays_and_no_more() -> None:
    built = latent_swapper()
    view = View.of(onnx.shape_inference.infer_shapes(built.model))
    assert [view.nodes[number].op_type for number in sorted(tails(view))] == ["Tanh", "Add", "Mul"]


def test_a_tensor_that_others_read_too_is_no_end() -> None:
    g = Graph(np.random.default_rng(0))
    bent = g.add("Tanh", g.conv("x", 4, 4))
    g.add("Mul", bent, g.constant(np.array([2.0], np.float32)), out="y")
    g.add("Relu", g.conv(bent, 4, 4), out="z")
    view = View.of(of(g, {"x": (1, 4, 8, 8)}, ["y", "z"]))
    assert [view.nodes[number].op_type for number in tails(view)] == ["Mul"]


@pytest.mark.parametrize(
    ("value", "reason"), [(1e5, OVERFLOWS), (1e-8, VANISHES), (1e-5, VANISHES), (0.5, ""), (0.0, "")]
)
def test_a_weight_that_does_not_fit_keeps_its_node(value: float, reason: str) -> None:
    g = Graph(np.random.default_rng(0))
    g.add("Relu", g.scalar("x", "Add", value), out="y")
    model = of(g, {"x": (1, 4, 8, 8)}, ["y"])
    assert list(weights(View.of(model)).values()) == ([reason] if reason else [])
    report = to_fp16(model).report
    assert report.kept.get("t0") == (reason or None)
    assert report.weights == ((0, 1) if reason else (1, 1))


def test_a_bias_that_vanishes_is_not_missed() -> None:
    g = Graph(np.random.default_rng(0))
    g.conv("x", 4, 4)
    g.weights[-1].CopyFrom(onnx.numpy_helper.from_array(np.full(4, 1e-9, np.float32), "w1"))
    g.add("Relu", "t0", out="y")
    report = to_fp16(of(g, {"x": (1, 4, 8, 8)}, ["y"])).report
    assert report.islands == {}
    assert report.flushed >= 4
    assert report.flush_error <= LEAST


@given(arrays(np.float32, st.integers(1, 40), elements=st.floats(-LARGEST, LARGEST, width=32)))
def test_rounding_to_half_has_the_error_that_is_stated(values: np.ndarray) -> None:
    half = halved(values).astype(np.float64)
    off = np.abs(half - values)
    assert np.all(off <= np.maximum(2.0**-11 * np.abs(values), LEAST))
    assert np.all((half == 0) | (np.abs(half) >= LEAST))
    if np.abs(values).min() >= LEAST or not values.any():
        assert unfit(values) == ""


@given(st.floats(2.0**16, 2.0**100, width=32), st.sampled_from([-1, 1]))
def test_what_is_too_large_is_said_to_be(value: float, sign: int) -> None:
    assert unfit(np.array([1.0, sign * value], np.float32)) == OVERFLOWS
    assert np.isinf(halved(np.array([value], np.float32))).all()


def test_recurrent_layers_stay() -> None:
    g = Graph(np.random.default_rng(0))
    g.nodes.append(
        helper.make_node(
            "GRU",
            ["x", g.constant(np.ones((1, 12, 8), np.float32)), g.constant(np.ones((1, 12, 4), np.float32))],
            ["y"],
            hidden_size=4,
        )
    )
    report = to_fp16(of(g, {"x": (3, 1, 8)}, ["y"])).report
    assert report.islands == {"recurrent": 1}
    assert report.casts == 0
