"""Whatever a graph looks like, both parts of a cut do what it does, and in half precision it is typed and close."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto

from engines.fp16 import to_fp16
from engines.fp16.check import run
from engines.graph.cut import MOST_FRONTIER_BYTES, cut
from engines.graph.view import View
from engines.trial import apart
from tests.facenets import Graph
from tests.halfnets import Feeds, emulated, of

pytestmark = pytest.mark.fp16

LENGTH = 128
"""Of every tensor: a square weight of it is just what is worth cutting out."""
UNARY, BINARY = ("Tanh", "Relu", "Exp", "Softmax", "MatMul"), ("Add", "Mul", "Sub", "Max")
Step = tuple[str, int, int]
"""Operator, and which of the tensors so far it reads."""

steps = st.lists(
    st.tuples(st.sampled_from(UNARY + BINARY), st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=12
)


def written(graph: list[Step]) -> ModelProto:
    """Tensors of bounded values made of ``target`` and ``source``; what nobody reads is an output."""
    g = Graph(np.random.default_rng(0))
    tensors, read = ["target", "source"], set()
    for op, first, second in graph:
        operands = [tensors[first % len(tensors)], tensors[second % len(tensors)]]
        operands = operands if op in BINARY else operands[:1]
        read.update(operands)
        if op == "MatMul":
            operands.append(g.constant(g.rng.normal(0, LENGTH**-0.5, (LENGTH, LENGTH)).astype(np.float32)))
        made = g.add(op, *operands)
        tensors.append(g.add("Tanh", made) if op in ("Mul", "Exp", "Add", "Sub") else made)
    ends = [name for name in tensors[2:] if name not in read]
    return of(g, {"target": (1, LENGTH), "source": (1, LENGTH)}, ends)


def feeds() -> Feeds:
    rng = np.random.default_rng(5)
    return {name: rng.uniform(-1, 1, (1, LENGTH)).astype(np.float32) for name in ("target", "source")}


@given(steps)
@example([("MatMul", 1, 0), ("Add", 0, 2)])
@settings(max_examples=40)
def test_both_parts_of_a_cut_do_what_the_whole_does(graph: list[Step]) -> None:
    whole = written(graph)
    parts = cut(whole, "target")
    if parts is None:
        return
    assert 0 < parts.frontier_bytes <= MOST_FRONTIER_BYTES
    given_ = feeds()
    right, got = run(whole, given_), run(parts.frame, given_ | run(parts.style, given_))
    assert right.keys() == got.keys()
    for name, values in right.items():
        np.testing.assert_array_equal(values, got[name])


def test_there_is_something_to_cut_in_the_example() -> None:
    parts = cut(written([("MatMul", 1, 0), ("Add", 0, 2)]), "target")
    assert parts is not None
    assert parts.moved_nodes == 1


@given(steps)
@settings(max_examples=40)
def test_half_precision_is_typed_throughout_and_close(graph: list[Step]) -> None:
    whole = written(graph)
    converted = to_fp16(whole).model
    onnx.checker.check_model(converted, full_check=True)
    view = View.of(converted)
    for node in view.nodes:
        kinds = {view.kinds[name] for name in (*node.input, *node.output)}
        assert node.op_type == "Cast" or len(kinds) == 1
    assert {view.kinds[name] for name in (*view.inputs, *view.outputs)} == {TensorProto.FLOAT}
    right, got = run(whole, feeds()), emulated(converted, feeds())
    for name, values in right.items():
        assert apart(values, got[name]) < 0.01
