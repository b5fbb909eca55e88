"""Who makes and who reads each tensor of an ONNX graph, and how parts are cut out; knows names and types only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

ITEM_BYTES: Mapping[int, int] = {TensorProto.FLOAT16: 2, TensorProto.DOUBLE: 8, TensorProto.INT64: 8}
"""Of an element, by its type; 4 where not listed."""

_MOST_READ = 1024
"""Values of a weight that shapes may depend on: a new shape, sizes, places to cut."""


@dataclass(frozen=True, slots=True)
class View:
    """What a graph says, by the names of its tensors; a graph that is changed needs a new one.

    Attributes:
        nodes: in their order, which is one in which they can run.
        maker: number of the node that makes a tensor.
        readers: numbers of the nodes that read a tensor, each once.
        constants: the weights.
        inputs: names of the graph's inputs that are no weights.
        outputs: names of the graph's outputs.
        kinds: ONNX element type of every tensor that is known.
        shapes: -1 for an axis that is not known; a tensor of unknown rank has none.
    """

    nodes: tuple[NodeProto, ...]
    maker: Mapping[str, int]
    readers: Mapping[str, tuple[int, ...]]
    constants: Mapping[str, TensorProto]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kinds: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, model: ModelProto) -> View:
        """Look at a model whose types were inferred, see :func:`typed`."""
        graph = model.graph
        constants = {weight.name: weight for weight in graph.initializer}
        readers: dict[str, list[int]] = {}
        for number, node in enumerate(graph.node):
            for name in dict.fromkeys(filter(None, node.input)):
                readers.setdefault(name, []).append(number)
        declared = {value.name: value for value in (*graph.input, *graph.value_info, *graph.output)}
        shapes = {name: shape for name, value in declared.items() if (shape := shape_of(value)) is not None}
        return cls(
            tuple(graph.node),
            {name: number for number, node in enumerate(graph.node) for name in node.output if name},
            {name: tuple(numbers) for name, numbers in readers.items()},
            constants,
            tuple(value.name for value in graph.input if value.name not in constants),
            tuple(value.name for value in graph.output),
            {name: value.type.tensor_type.elem_type for name, value in declared.items()}
            | {name: weight.data_type for name, weight in constants.items()},
            shapes | {name: tuple(weight.dims) for name, weight in constants.items()},
        )

    def made_by(self, name: str) -> NodeProto | None:
        """The node that makes a tensor; None for an input, a weight, or no name."""
        number = self.maker.get(name)
        return None if number is None else self.nodes[number]

    def elements(self, name: str) -> int:
        """Number of values in a tensor, an axis that is not known counted as 1."""
        return prod(max(n, 1) for n in self.shapes.get(name, ()))

    def bytes(self, names: Iterable[str]) -> int:
        """Size of tensors together."""
        return sum(self.elements(name) * ITEM_BYTES.get(self.kinds[name], 4) for name in names)


def shape_of(value: ValueInfoProto) -> tuple[int, ...] | None:
    """Shape of a declared tensor, -1 for a free axis; None where not even the rank is stated."""
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    return tuple(dim.dim_value if dim.HasField("dim_value") else -1 for dim in tensor.shape.dim)


def typed(model: ModelProto) -> ModelProto:
    """Infer the type and shape of every tensor.

    Args:
        model: only read; what it declares of tensors inside is believed.

    Returns:
        A copy that declares them.

    Raises:
        onnx.shape_inference.InferenceError: a node cannot work on what it is given.
    """
    whole = ModelProto()
    whole.CopyFrom(model)
    found = onnx.shape_inference.infer_shapes(_sketch(model), strict_mode=True, data_prop=True).graph
    del whole.graph.value_info[:], whole.graph.output[:]
    whole.graph.value_info.extend(found.value_info)
    whole.graph.output.extend(found.output)
    return whole


def _sketch(model: ModelProto) -> ModelProto:
    """Leave out what large weights hold: no shape depends on it, and inference would copy them several times."""
    graph = GraphProto(name=model.graph.name)
    for mine, whole in (
        (graph.node, model.graph.node),
        (graph.input, model.graph.input),
        (graph.output, model.graph.output),
        (graph.value_info, model.graph.value_info),
    ):
        mine.extend(whole)
    declared = {value.name for value in model.graph.input}
    for weight in model.graph.initializer:
        if prod(weight.dims) <= _MOST_READ:
            graph.initializer.append(weight)
        elif weight.name not in declared:
            graph.input.append(helper.make_tensor_value_info(weight.name, weight.data_type, weight.dims))
    sketch = ModelProto(ir_version=model.ir_version, producer_name=model.producer_name)
    sketch.opset_import.extend(model.opset_import)
    sketch.graph.CopyFrom(graph)
    return sketch


def extract(model: ModelProto, inputs: Sequence[str], outputs: Sequence[str]) -> ModelProto:
    """Cut out the part of a model that leads from some tensors to others.

    Args:
        model: with inferred types; only read.
        inputs: tensors that the part takes; those that it does not need are left out.
        outputs: tensors that it gives.

    Returns:
        The part, with only the weights that it uses; names, order and opset are those of the whole.
    """
    view = View.of(model)
    wanted, given = set(outputs) - set(inputs), set(inputs)
    kept: list[NodeProto] = []
    for node in reversed(view.nodes):
        if wanted.intersection(node.output):
            kept.append(node)
            wanted.update(name for name in node.input if name and name not in given)
    read = {name for node in kept for name in node.input}.union(outputs)
    graph = GraphProto(name=model.graph.name)
    graph.node.extend(reversed(kept))
    graph.initializer.extend(weight for weight in model.graph.initializer if weight.name in read - given)
    graph.input.extend(_declared(view, name) for name in inputs if name in read)
    graph.output.extend(_declared(view, name) for name in outputs)
    part = ModelProto(ir_version=model.ir_version, producer_name=model.producer_name)
    part.opset_import.extend(model.opset_import)
    part.graph.CopyFrom(graph)
    return typed(part)


def opset_of(model: ModelProto) -> int:
    """Version of the standard operators that a model is written in; 0 where it states none."""
    return next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)


def weight_bytes(model: ModelProto) -> int:
    """Size of a model's weights."""
    return sum(prod(weight.dims) * ITEM_BYTES.get(weight.data_type, 4) for weight in model.graph.initializer)


def _declared(view: View, name: str) -> ValueInfoProto:
    shape = view.shapes.get(name)
    axes = None if shape is None else [None if n < 0 else n for n in shape]
    return helper.make_tensor_value_info(name, view.kinds[name], axes)
