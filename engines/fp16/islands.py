"""Which nodes of a network must not compute in half precision, and why; knows operators and values, changes nothing.

Half precision has 11 bits and ends at 65504. A variance leaves that range at both ends: the square of 256 overflows,
and the epsilon that saves a constant channel from a division by zero is zero itself. Networks that restyle a face
(AdaIN, modulated convolutions) spell it out node by node, so it is found by its shape: squares, their mean or sum, and
what is done to that small tensor until it meets a large one again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, numpy_helper

from engines.graph.view import View

Rule = Callable[[View], Mapping[int, str]]
"""A view -> number of each node that stays in single precision, and the reason."""

LARGEST = 65504.0
"""Largest number that half precision has."""
LEAST = 2.0**-14
"""Smallest number that it has with all its bits. Some kernels take what is smaller for 0, so all of it is made 0."""
MOST_ERROR = 2.0**-10
"""Of all values of a weight together, over the weight: twice what rounding alone can do to any."""

PRECISE: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "InstanceNormalization",
            "LayerNormalization",
            "GroupNormalization",
            "RMSNormalization",
            "LpNormalization",
            "MeanVarianceNormalization",
            "LRN",
        ),
        "normalisation",
    ),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), "softmax"),
    **dict.fromkeys(
        ("Pow", "Exp", "Log", "ReduceLogSumExp", "ReduceLogSum", "ReduceSumSquare", "ReduceL2", "ReduceProd", "CumSum"),
        "its values leave the range",
    ),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), "recurrent"),
}
"""Operators that stay in single precision wherever they are."""
_MEANS = ("ReduceMean", "ReduceSum", "GlobalAveragePool")
_SQUARED_MEANS = ("ReduceL2", "ReduceSumSquare")
_LAYOUT = ("Reshape", "Unsqueeze", "Squeeze", "Flatten", "Transpose", "Identity")
_ON_STATISTICS = (*_LAYOUT, "Add", "Sub", "Mul", "Div", "Sqrt", "Reciprocal", "Pow", "Max", "Min", "Clip", "Neg", "Abs")
_APPLIED = ("Mul", "Div")
_LAST = ("Tanh", "Sigmoid", "HardSigmoid", "Clip", "Add", "Sub", "Mul", "Div", "Neg")
_BIAS = {"Conv": 2, "ConvTranspose": 2, "Gemm": 2}
"""Input that is only added to large sums; what vanishes of it is not missed."""


def norms(view: View) -> dict[int, str]:
    """Find normalisations that are spelt out: from the mean to the normalised tensor, epsilon included."""
    found: dict[int, str] = {}
    for number, node in enumerate(view.nodes):
        squared = _squared(view, node)
        if squared:
            block = _before(view, squared) | {number} | _after(view, number)
            if node.op_type in _MEANS:
                block.add(view.maker[node.input[0]])
            found.update(dict.fromkeys(block, "normalisation"))
    return found


def operators(view: View) -> dict[int, str]:
    """Find the operators of :data:`PRECISE`."""
    return {n: PRECISE[node.op_type] for n, node in enumerate(view.nodes) if node.op_type in PRECISE}


def tails(view: View) -> dict[int, str]:
    """Find what each output ends with: a bounded function and the step to its range, of which a grey level is 1/255."""
    found: dict[int, str] = {}
    for output in view.outputs:
        name, pending = output, []
        while (number := view.maker.get(name)) is not None and len(view.readers.get(name, ())) == (name != output):
            node = view.nodes[number]
            rest = [other for other in node.input if other and other not in view.constants]
            if node.op_type not in (*_LAST, *_LAYOUT) or len(rest) != 1:
                break
            pending.append(number)
            if node.op_type in _LAST:
                found.update(dict.fromkeys(pending, "end of an output"))
                pending.clear()
            name = rest[0]
    return found


def weights(view: View) -> dict[int, str]:
    """Find nodes with a weight that half precision cannot hold."""
    found: dict[int, str] = {}
    reasons = {
        name: reason
        for name, weight in view.constants.items()
        if weight.data_type == TensorProto.FLOAT and (reason := unfit(numpy_helper.to_array(weight)))
    }
    for number, node in enumerate(view.nodes):
        for index, name in enumerate(node.input):
            reason = reasons.get(name, "")
            if reason and not (reason == VANISHES and _BIAS.get(node.op_type) == index):
                found.setdefault(number, reason)
    return found


def quantised(view: View) -> dict[int, str]:
    """Find what computes in whole numbers: between a DequantizeLinear and its Conv no cast may stand."""
    return {
        number: "quantised"
        for number, node in enumerate(view.nodes)
        if node.op_type == "QuantizeLinear" or any(_op(view, name) == "DequantizeLinear" for name in node.input)
    }


def shapes(view: View) -> dict[int, str]:
    """Find what works out the shape of a tensor from that of another: half precision counts to 2048 only."""
    told = {number for number, node in enumerate(view.nodes) if node.op_type in ("Shape", "Size")}
    found: dict[int, str] = {}
    for number, node in enumerate(view.nodes):
        read = [view.maker.get(name) for name in node.input if name and name not in view.constants]
        if number not in told and read and all(maker in told or maker in found for maker in read):
            found[number] = "works out a shape"
    return found


RULES: tuple[Rule, ...] = (norms, operators, tails, weights, quantised, shapes)
"""All that is known to be needed; the first that names a node gives its reason."""

OVERFLOWS, VANISHES = "a weight overflows", "a weight vanishes"


def unfit(values: NDArray[np.float32]) -> str:
    """Say why half precision cannot hold a weight; empty where it can.

    Args:
        values: of any shape, float32.

    Returns:
        That it overflows, or that so much of it is lost that it is no longer the same weight (:data:`MOST_ERROR`).
    """
    if np.abs(values).max(initial=0) > LARGEST:
        return OVERFLOWS
    length = float(np.linalg.norm(values.astype(np.float64)))
    lost = float(np.linalg.norm(values.astype(np.float64) - halved(values).astype(np.float64)))
    return VANISHES if lost > MOST_ERROR * length else ""


def halved(values: NDArray[np.float32]) -> NDArray[np.float16]:
    """Round to half precision; what it has only with fewer bits becomes 0, what it has not becomes infinite."""
    with np.errstate(over="ignore", under="ignore"):
        half = values.astype(np.float16)
    half[np.abs(half) < np.float16(LEAST)] = 0
    return half


def _squared(view: View, node: NodeProto) -> str:
    """Name of the tensor whose squares a node averages or sums; empty where it does not."""
    if node.op_type in _SQUARED_MEANS:
        return node.input[0]
    square = view.made_by(node.input[0]) if node.op_type in _MEANS else None
    if square is None or square.op_type not in ("Mul", "Pow") or len(square.input) != 2:
        return ""
    base, other = square.input
    if square.op_type == "Mul":
        return base if base == other else ""
    exponent = view.constants.get(other)
    return base if exponent is not None and np.all(numpy_helper.to_array(exponent) == 2) else ""


def _before(view: View, squared: str) -> set[int]:
    """Numbers of the nodes that take the mean off what is squared; none where nothing does."""
    node = view.made_by(squared)
    if node is None or node.op_type not in ("Sub", "Add"):
        return set()
    for mean, _ in (node.input, reversed(node.input)):
        if (means := _statistic(view, mean, view.elements(squared))) is not None:
            return means | {view.maker[squared]}
    return set()


def _statistic(view: View, name: str, large: int) -> set[int] | None:
    """Numbers of the nodes from a mean to a tensor that is smaller than ``large``; None where it is no such thing."""
    node = view.made_by(name)
    if node is None or view.elements(name) >= large:
        return None
    if node.op_type in (*_MEANS, *_SQUARED_MEANS):
        return {view.maker[name]}
    rest = [other for other in node.input if other in view.maker]
    if node.op_type not in _ON_STATISTICS or not rest:
        return None
    parts = [_statistic(view, other, large) for other in dict.fromkeys(rest)]
    inside = {number for part in parts if part is not None for number in part}
    return None if None in parts else inside | {view.maker[name]}


def _after(view: View, number: int) -> set[int]:
    """Numbers of the nodes from a variance to the tensors that it is applied to."""
    large = view.elements(view.nodes[number].input[0])
    found: set[int] = set()
    ahead = list(view.nodes[number].output)
    while ahead:
        name = ahead.pop()
        for reader in view.readers.get(name, ()):
            node = view.nodes[reader]
            small = view.elements(node.output[0]) < large
            if reader in found or node.op_type not in (_ON_STATISTICS if small else _APPLIED):
                continue
            found.add(reader)
            ahead += node.output if small else ()
            for other in node.input:
                found |= (_statistic(view, other, large) or set()) if small else _before(view, other)
    return found


def _op(view: View, name: str) -> str:
    node = view.made_by(name)
    return node.op_type if node else ""
