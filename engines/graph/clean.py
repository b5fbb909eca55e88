"""Makes a published ONNX file one plain graph of fixed shapes in single precision; knows cards, not what a net is for.

ONNX Runtime itself folds the constants (its basic level writes standard operators only): it is here anyway, it is kept
by many, and what it folds is what it would run. onnxslim does the same and would be one more package to follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import onnxruntime as ort
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # it has no types
from onnx import GraphProto, ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper

from engines.batch import with_batch
from engines.card import ModelCard
from engines.conform import Found, check_file, check_result
from engines.contract import TensorSpec
from engines.errors import ModelError
from engines.graph.view import View, extract, opset_of, shape_of, typed
from engines.onnxrt import ERRORS
from engines.sizes import served

OPSETS = range(9, 26)
"""Versions of the standard operators that TensorRT's parser reads: NVIDIA's opset guide for TensorRT 11."""
_STANDARD = ("", "ai.onnx")
_REFUSALS: tuple[type[Exception], ...] = (*ERRORS, onnx.shape_inference.InferenceError)


def read(path: Path) -> ModelProto:
    """Read an ONNX file with all its weights.

    Raises:
        ModelError: it is none, or cannot be read.
    """
    try:
        return onnx.load(path)
    except (DecodeError, OSError, onnx.checker.ValidationError) as error:
        raise ModelError(f"{path} cannot be read as an ONNX model: {error}", "replace it with a good copy") from error


def demand_plain(name: str, model: ModelProto) -> None:
    """Refuse what neither this surgery nor TensorRT can follow.

    Args:
        name: of the model, for people.
        model: only read.

    Raises:
        ModelError: an operator is not a standard one, a node holds a graph of its own, or the opset is out of range.
    """
    custom = sorted({f"{node.domain}.{node.op_type}" for node in model.graph.node if node.domain not in _STANDARD})
    if custom or model.functions:
        raise ModelError(
            f"{name} needs operators that are not standard ONNX: "
            f"{', '.join(custom or [function.name for function in model.functions])}",
            "use an export without them, or serve it with runtime onnxrt",
        )
    nested = sorted({node.op_type for node in model.graph.node if any(a.HasField("g") for a in node.attribute)})
    if nested:
        raise ModelError(
            f"{name} decides while it runs what it computes next ({', '.join(nested)}), which no fixed engine does",
            "use an export without it, or serve it with runtime onnxrt",
        )
    if (opset := opset_of(model)) not in OPSETS:
        raise ModelError(
            f"{name} is written in opset {opset}, TensorRT reads {OPSETS.start} to {OPSETS.stop - 1}",
            "export it again in opset 17",
        )


def conformed(card: ModelCard, model: ModelProto) -> ModelProto:
    """Give a model the names and the shapes of its card.

    Args:
        card: no axis of an input free but for a size within its ``sizes``; its pictures may be several in one run,
            whatever number the file declares.
        model: as published; only read.

    Returns:
        A changed copy without any inferred shape, and only with the card's outputs; those of any size have the shapes
        that the card says.

    Raises:
        ModelError: the card leaves an axis of an input free.
        EngineError: the file has other tensors than the card.
    """
    ranged = served(card) is not None
    if not ranged and (free := [spec.name for spec in card.inputs if -1 in spec.shape]):
        raise ModelError(f"model {card.name}: the size of {', '.join(free)} is not fixed", "name one size to build for")
    weights = {weight.name for weight in model.graph.initializer}
    inputs = _found(value for value in model.graph.input if value.name not in weights)
    names = check_file(with_batch(card, -1), inputs, _found(model.graph.output))
    specs = (*card.inputs, *card.outputs)
    renamed = {old: spec.name for old, spec in zip((*names[0], *names[1]), specs, strict=True)}
    whole = ModelProto()
    whole.CopyFrom(model)
    graph = whole.graph
    _rename(graph, renamed)
    del graph.value_info[:], graph.input[:], graph.output[:]
    for spec in card.inputs:
        graph.input.append(helper.make_tensor_value_info(spec.name, _kind(spec.dtype), _axes(spec)))
    for spec in card.outputs:
        axes = _axes(spec) if ranged else None  # of any size not even the number of axes can always be inferred
        graph.output.append(helper.make_tensor_value_info(spec.name, _kind(spec.dtype), axes))
    return whole


def widen(model: ModelProto) -> bool:
    """Write a graph in half precision in single precision, in place.

    The half-precision editions that people have were made without islands, see ``engines.fp16``; so they are taken for
    what they are, weights of half the size, and converted again.

    Returns:
        Whether there was anything to widen.
    """
    half = TensorProto.FLOAT16
    graph, changed = model.graph, False
    for weight in graph.initializer:
        changed |= _widen_tensor(weight)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name == "to" and attribute.i == half:
                attribute.i, changed = TensorProto.FLOAT, True
            elif attribute.HasField("t"):
                changed |= _widen_tensor(attribute.t)
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type == half:
            value.type.tensor_type.elem_type, changed = TensorProto.FLOAT, True
    if changed:
        _idle_casts(model)
    return changed


def folded(card: ModelCard, model: ModelProto) -> ModelProto:
    """Compute once what never changes, and drop what nobody reads.

    Args:
        card: of the model, see :func:`conformed`.
        model: of such inputs and in single precision; only read.

    Returns:
        A copy with inferred types, no constants but weights, and every shape known, where those of the inputs are.

    Raises:
        ModelError: it cannot be computed with these inputs, or a shape depends on what a picture shows.
    """
    settings = ort.SessionOptions()
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    settings.log_severity_level = 4
    with TemporaryDirectory() as folder:
        written = Path(folder) / "folded.onnx"
        settings.optimized_model_filepath = str(written)
        try:
            ort.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
            simple = typed(onnx.load(written))
        except _REFUSALS as error:
            raise ModelError(
                f"model {card.name} cannot be prepared for these inputs: {error}",
                "use the size and the number of pictures that it was exported for",
            ) from error
    standard = [entry for entry in simple.opset_import if entry.domain in _STANDARD]
    del simple.opset_import[:]
    simple.opset_import.extend(standard)
    demand_plain(card.name, simple)
    whole = extract(simple, [spec.name for spec in card.inputs], [spec.name for spec in card.outputs])
    _demand_tensors(card, whole)
    if not served(card):
        _demand_fixed(card, whole)
    return whole


def _demand_tensors(card: ModelCard, model: ModelProto) -> None:
    left_out = {spec.name for spec in card.inputs} - {value.name for value in model.graph.input}
    if left_out:
        raise ModelError(
            f"model {card.name} makes nothing of its input {', '.join(sorted(left_out))}",
            "use the file that the card was written for",
        )
    for spec, value in zip(card.outputs, model.graph.output, strict=True):
        check_result(card, spec, shape_of(value) or ())


def _demand_fixed(card: ModelCard, model: ModelProto) -> None:
    loose = [value.name for value in (*model.graph.value_info, *model.graph.output) if -1 in (shape_of(value) or (-1,))]
    if loose:
        raise ModelError(
            f"model {card.name} has tensors of no fixed size, first {loose[0]!r}",
            "use an export without them, or serve it with runtime onnxrt",
        )


def _idle_casts(model: ModelProto) -> None:
    """Turn casts to the type that a tensor has already into Identity, which folding removes."""
    kinds = View.of(typed(model)).kinds
    for node in model.graph.node:
        if node.op_type == "Cast" and kinds[node.input[0]] == kinds[node.output[0]]:
            node.op_type = "Identity"
            del node.attribute[:]


def _rename(graph: GraphProto, renamed: Mapping[str, str]) -> None:
    """Rename tensors; what already has one of the new names, inside, makes room."""
    taken = set(renamed.values())

    def new(name: str) -> str:
        return renamed.get(name, f"{name}_inner" if name in taken else name)

    for node in graph.node:
        node.input[:] = [new(name) for name in node.input]
        node.output[:] = [new(name) for name in node.output]
    for weight in graph.initializer:
        weight.name = new(weight.name)


def _axes(spec: TensorSpec) -> list[str | int]:
    return [f"{spec.name}_{axis}" if n < 0 else n for axis, n in enumerate(spec.shape)]


def _found(values: Iterable[ValueInfoProto]) -> Found:
    """Describe declared tensors as a runtime does."""
    return {
        value.name: (shape_of(value) or (), str(helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)))
        for value in values
    }


def _kind(dtype: str) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def _widen_tensor(tensor: TensorProto) -> bool:
    if tensor.data_type != TensorProto.FLOAT16:
        return False
    tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name))
    return True
