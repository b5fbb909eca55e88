"""Computes what half precision does to a network, on a machine without a GPU; knows numbers, not how they came to be.

The processor's kernels would hide the worst: ONNX Runtime computes half precision in single and rounds now and then, so
that nothing overflows on the way. Here every tensor is rounded where the graph says so: the network runs in single
precision with a cast there and back behind each node. Sums inside a node are exact to single precision, as on a tensor
core. It agrees with onnx's own reference, which is a thousand times slower on a network of full size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper

from engines.card import ModelCard
from engines.graph.clean import widen
from engines.graph.view import View, typed
from engines.trial import apart, trial_inputs

_FLOAT, _HALF = TensorProto.FLOAT, TensorProto.FLOAT16


@dataclass(frozen=True, slots=True)
class Error:
    """How far an output is off.

    Attributes:
        name: of the output.
        worst: largest difference over the largest value; infinite where a value is not finite.
        rms: length of all differences over the length of all values; infinite as well.
    """

    name: str
    worst: float
    rms: float


def check(
    original: ModelProto, converted: ModelProto, card: ModelCard, seed: int, style: ModelProto | None = None
) -> tuple[Error, ...]:
    """Run a network as it was and as it is now, on the same random inputs.

    Args:
        original: in single precision.
        converted: with the same inputs and outputs, see :func:`engines.fp16.to_fp16`.
        card: of the network before it was cut.
        seed: of the inputs.
        style: gives the inputs that the card has not, where the network was cut.

    Returns:
        One for each output, in the original's order. A network of inswapper's size takes about a minute on two cores.
    """
    inputs = dict(zip((spec.name for spec in card.inputs), trial_inputs(card, seed), strict=True))
    if style is not None:
        inputs |= run(style, inputs)
    right, asked = run(original, inputs), run(rounded(converted), inputs)
    return tuple(error_of(name, right[name], asked[name]) for name in right)


def error_of(name: str, right: NDArray[Any], asked: NDArray[Any]) -> Error:
    """Compare an output with the one that is right; see :class:`Error`."""
    worst = apart(right, asked)
    if not np.isfinite(worst):
        return Error(name, worst, worst)
    length = float(np.linalg.norm(right.astype(np.float64)))
    lost = float(np.linalg.norm(right.astype(np.float64) - asked.astype(np.float64)))
    return Error(name, worst, lost / length if length > 0 else lost)


def run(model: ModelProto, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Run a network once as it is written, nothing fused.

    Args:
        model: of single precision, see :func:`rounded`.
        inputs: by name; those that it does not take are left alone.

    Returns:
        Its outputs by name.
    """
    settings = ort.SessionOptions()
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    results = session.run(names, {value.name: inputs[value.name] for value in session.get_inputs()})
    return dict(zip(names, results, strict=True))


def rounded(model: ModelProto) -> ModelProto:
    """Write a network of half precision in single, with each of its tensors rounded to half.

    Args:
        model: as converted; only read.

    Returns:
        A copy whose inputs and outputs are float32.
    """
    kinds = View.of(typed(model)).kinds
    wide = ModelProto()
    wide.CopyFrom(model)
    del wide.graph.value_info[:]
    widen(wide)
    nodes: list[NodeProto] = []
    for value in model.graph.input:
        if kinds[value.name] == _HALF:
            inside = f"{value.name}_rounded"
            for node in wide.graph.node:
                node.input[:] = [inside if name == value.name else name for name in node.input]
            nodes += _rounding(value.name, inside)
    for node in wide.graph.node:
        nodes.append(node)
        for index, name in enumerate(node.output):
            if kinds.get(name) == _HALF:
                node.output[index] = f"{name}_exact"
                nodes += _rounding(node.output[index], name)
    del wide.graph.node[:]  # the nodes themselves live on in the list
    wide.graph.node.extend(nodes)
    return wide


def _rounding(source: str, name: str) -> list[NodeProto]:
    return [
        helper.make_node("Cast", [source], [f"{name}_as_half"], to=_HALF),
        helper.make_node("Cast", [f"{name}_as_half"], [name], to=_FLOAT),
    ]
