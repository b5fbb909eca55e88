"""Writes a network in half precision but for its islands, with casts at every border; knows types, not why islands are.

TensorRT has no switch for a precision any more: an engine computes in the types that the graph states.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, defs, helper, numpy_helper

from engines.errors import ModelError
from engines.fp16.islands import RULES, Rule, halved
from engines.graph.clean import demand_plain
from engines.graph.view import View, extract, opset_of, typed, weight_bytes

_FLOAT, _HALF = TensorProto.FLOAT, TensorProto.FLOAT16
_BRIDGES = ("Conv", "ConvTranspose", "Gemm", "MatMul")
_STATED = ("to", "dtype", "output_dtype")
"""Attributes that state a type; a node with one keeps it."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a conversion did, for a person and for the note beside a plan.

    Attributes:
        nodes: of the network, casts not counted.
        islands: reason -> number of nodes that stay in single precision for it.
        kept: name of each of those nodes, as in the network that came in, or of its first output -> reason.
        casts: at the borders of islands and of the network.
        weights: number of them in half precision, and of all.
        bytes_before: of all weights.
        bytes: of all weights now.
        flushed: values among those in half precision that it has only with fewer bits, or not, and that are 0 now.
        flush_error: the largest of them; at most 6.1e-5.
    """

    nodes: int
    islands: Mapping[str, int]
    kept: Mapping[str, str]
    casts: int
    weights: tuple[int, int]
    bytes_before: int
    bytes: int
    flushed: int
    flush_error: float


@dataclass(frozen=True, slots=True)
class Converted:
    """A network in half precision.

    Attributes:
        model: strongly typed.
        report: what was done.
    """

    model: ModelProto
    report: Report


def to_fp16(
    model: ModelProto, rules: Sequence[Rule] = RULES, half: Collection[str] = (), names: Collection[str] = ()
) -> Converted:
    """Convert a network from single to half precision.

    Args:
        model: cleaned, of fixed shapes and standard operators, see :func:`engines.graph.prepare`; only read.
        rules: what finds the islands; none for a plain conversion, which networks that normalise do not survive.
        half: inputs and outputs that are handed over in half precision; all others stay float32.
        names: of nodes that shall be islands besides.

    Returns:
        The network, with the same names of inputs and outputs. Each weight is stored once.

    Raises:
        ModelError: it has operators that are not standard, graphs inside nodes, or tensors of unknown type.
    """
    demand_plain(model.graph.name or "the network", model)
    whole = typed(model)
    view = View.of(whole)
    kept = _kept(view, opset_of(model), rules, names)
    writing = _Writing(view, opset_of(model), kept, frozenset(half))
    graph = writing.write(whole)
    parts = ([v.name for v in graph.graph.input], [v.name for v in graph.graph.output])
    converted = extract(typed(graph), *parts)
    onnx.checker.check_model(converted)
    report = Report(
        len(view.nodes),
        dict(Counter(kept.values())),
        {view.nodes[number].name or view.nodes[number].output[0]: reason for number, reason in sorted(kept.items())},
        len([node for node in converted.graph.node if node.op_type == "Cast"])
        - len([node for node in view.nodes if node.op_type == "Cast"]),
        (len(writing.halves), len(view.constants)),
        weight_bytes(whole),
        weight_bytes(converted),
        writing.flushed,
        writing.flush_error,
    )
    return Converted(converted, report)


def _kept(view: View, opset: int, rules: Sequence[Rule], names: Collection[str]) -> dict[int, str]:
    """Every node that stays in single precision, with the reason."""
    if unknown := [name for node in view.nodes for name in node.output if name and not view.kinds.get(name)]:
        raise ModelError(f"the type of tensor {unknown[0]!r} is not known", "report this as a bug")
    kept = {n: "asked for" for n, node in enumerate(view.nodes) if node.name in names or set(node.output) & set(names)}
    for rule in rules:
        kept = {**rule(view), **kept}
    for number, node in enumerate(view.nodes):
        if not _has_half_form(view, opset, node):
            kept.setdefault(number, "no half-precision form")
    while bridges := [n for n in range(len(view.nodes)) if n not in kept and _bridges(view, kept, n)]:
        kept |= dict.fromkeys(bridges, "between islands")
    return {
        number: reason
        for number, reason in kept.items()
        if any(view.kinds.get(name) == _FLOAT for name in (*view.nodes[number].input, *view.nodes[number].output))
    }


def _has_half_form(view: View, opset: int, node: NodeProto) -> bool:
    """Whether all that a node makes in single precision it can make in half, of something that it reads in half."""
    made = [index for index, name in enumerate(node.output) if view.kinds.get(name) == _FLOAT]
    if any(attribute.name in _STATED for attribute in node.attribute):
        return False
    reads = any(_takes_half(view, opset, node, index) for index in range(len(node.input)))
    schema = defs.get_schema(node.op_type, opset, "")
    return reads and all(_allows_half(schema, schema.outputs, index) for index in made)


def _takes_half(view: View, opset: int, node: NodeProto, index: int) -> bool:
    """Whether an input in single precision may be in half: Resize, for one, takes its scales only in single."""
    schema = defs.get_schema(node.op_type, opset, "")
    return view.kinds.get(node.input[index]) == _FLOAT and _allows_half(schema, schema.inputs, index)


def _allows_half(schema: defs.OpSchema, parameters: Sequence[defs.OpSchema.FormalParameter], index: int) -> bool:
    parameter = parameters[min(index, len(parameters) - 1)]  # the last may stand for any number
    return "tensor(float16)" in parameter.types


def _bridges(view: View, kept: Mapping[int, str], number: int) -> bool:
    """Whether a light node has nothing but islands around it, so that casts there and back are all it would gain."""
    node = view.nodes[number]
    makers = [view.maker.get(name) for name in node.input if name and name not in view.constants]
    readers = [reader for name in node.output for reader in view.readers.get(name, ())]
    return node.op_type not in _BRIDGES and bool(readers) and all(n in kept for n in (*makers, *readers))


@dataclass(slots=True)
class _Writing:
    """A converted graph in the making; weights are converted where everything that reads them is."""

    view: View
    opset: int
    kept: Mapping[int, str]
    half: frozenset[str]
    nodes: list[NodeProto] = field(default_factory=list)
    casts: dict[tuple[str, int], str] = field(default_factory=dict)
    halves: set[str] = field(default_factory=set)
    flushed: int = 0
    flush_error: float = 0.0

    def write(self, whole: ModelProto) -> ModelProto:
        self.halves = self._all_half()
        for number, node in enumerate(self.view.nodes):
            self._add(number, node)
        for name in self.view.outputs:
            if (inside := self._inside(name)) != name:
                self.nodes.append(_cast(inside, name, self._outside_kind(name)))
        graph = onnx.GraphProto(name=whole.graph.name)
        graph.node.extend(self.nodes)
        graph.initializer.extend(self._weight(weight) for weight in whole.graph.initializer)
        for declared, values in ((graph.input, whole.graph.input), (graph.output, whole.graph.output)):
            for value in values:
                if value.name not in self.view.constants:
                    declared.append(value)
                    declared[-1].type.tensor_type.elem_type = self._outside_kind(value.name)
        model = ModelProto(ir_version=whole.ir_version, producer_name=whole.producer_name)
        model.opset_import.extend(whole.opset_import)
        model.graph.CopyFrom(graph)
        return model

    def _add(self, number: int, node: NodeProto) -> None:
        written = NodeProto()
        written.CopyFrom(node)
        for index, name in enumerate(node.input):
            if self.view.kinds.get(name) == _FLOAT:
                written.input[index] = self._as(name, self._wanted(number, index))
        written.output[:] = [self._inside(name) for name in node.output]
        self.nodes.append(written)

    def _as(self, name: str, kind: int) -> str:
        """Name of a float tensor in the precision asked for; the cast is added where there is none yet."""
        if self._native(name) == kind:
            return self._inside(name)
        source, cast = self._inside(name), self.view.made_by(name)
        if cast is not None and cast.op_type == "Cast" and self.view.kinds.get(cast.input[0]) != _FLOAT:
            source = cast.input[0]  # one cast from where it comes, not two
        if (source, kind) not in self.casts:
            self.casts[source, kind] = f"{name}_{'half' if kind == _HALF else 'single'}"
            self.nodes.append(_cast(source, self.casts[source, kind], kind))
        return self.casts[source, kind]

    def _native(self, name: str) -> int:
        """Precision in which a float tensor comes into being."""
        if name in self.view.constants:
            return _HALF if name in self.halves else _FLOAT
        number = self.view.maker.get(name)
        if number is None:
            return _HALF if name in self.half else _FLOAT
        return _FLOAT if number in self.kept else _HALF

    def _outside_kind(self, name: str) -> int:
        kind = self.view.kinds[name]
        return (_HALF if name in self.half else _FLOAT) if kind == _FLOAT else kind

    def _inside(self, name: str) -> str:
        """What a tensor is called where it comes into being: an output of the network may need a cast after that."""
        is_float_output = name in self.view.outputs and self.view.kinds[name] == _FLOAT
        return f"{name}_inside" if is_float_output and self._native(name) != self._outside_kind(name) else name

    def _wanted(self, number: int, index: int) -> int:
        is_half = number not in self.kept and _takes_half(self.view, self.opset, self.view.nodes[number], index)
        return _HALF if is_half else _FLOAT

    def _all_half(self) -> set[str]:
        """Weights that are read in half precision only."""
        wanted: dict[str, set[int]] = {}
        for number, node in enumerate(self.view.nodes):
            for index, name in enumerate(node.input):
                if name in self.view.constants and self.view.kinds[name] == _FLOAT:
                    wanted.setdefault(name, set()).add(self._wanted(number, index))
        return {name for name, kinds in wanted.items() if kinds == {_HALF}}

    def _weight(self, weight: TensorProto) -> TensorProto:
        if weight.name not in self.halves:
            return weight
        values = numpy_helper.to_array(weight)
        half = halved(values)
        gone = np.abs(values[(half == 0) & (values != 0)])
        self.flushed += gone.size
        self.flush_error = max(self.flush_error, float(gone.max(initial=0)))
        return numpy_helper.from_array(half, weight.name)


def _cast(source: str, name: str, kind: int) -> NodeProto:
    return helper.make_node("Cast", [source], [name], name=f"cast_{name}", to=kind)
