"""Small ONNX networks with the contracts of large ones, built for tests; knows tensors, never what they show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from engines.card import Licence, ModelCard
from engines.contract import TensorSpec

LICENCE = Licence("test", "the tests", True, "built by the tests")


def card_of(
    path: Path, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], family: str = "test", **decode: object
) -> ModelCard:
    """A card for a file that the tests made."""
    return ModelCard(
        path.stem,
        path.name,
        0,
        "",
        family,
        ("onnxrt", "openvino"),
        LICENCE,
        tuple(inputs),
        tuple(outputs),
        decode=decode,
    )


def tensor(name: str, shape: Sequence[int | str], kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    """One declared tensor; a text is a free axis."""
    return helper.make_tensor_value_info(name, kind, list(shape))


def constant(name: str, values: NDArray[np.generic]) -> onnx.TensorProto:
    """One weight."""
    return numpy_helper.from_array(values, name)


def write(
    path: Path,
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    weights: Sequence[onnx.TensorProto] = (),
) -> Path:
    """Write a network that is whole by the checker's rules."""
    graph = helper.make_graph(list(nodes), "network", list(inputs), list(outputs), list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())
    return path


def write_swapper(path: Path, kind: str = "plain", batch: int | str = 1) -> tuple[Path, ModelCard]:
    """A network that changes a picture by an identity, and its card for one picture.

    ``kind`` says how it bears several pictures though it declares ``batch``: "plain" does, "stiff" has a shape built in
    that fails, "mixing" gives each picture something of the others.
    """
    rng = np.random.default_rng(3)
    weights = [
        constant("kernel", rng.normal(0, 0.3, (3, 3, 3, 3)).astype(np.float32)),
        constant("style", rng.normal(0, 1, (4, 3)).astype(np.float32)),
        constant("axes", np.array([2, 3], np.int64)),
        constant("stiff", np.array([1, 3, 8, 8], np.int64)),
    ]
    nodes = [
        helper.make_node("Conv", ["target", "kernel"], ["drawn"], pads=[1, 1, 1, 1]),
        helper.make_node("MatMul", ["source", "style"], ["shift"]),
        helper.make_node("Unsqueeze", ["shift", "axes"], ["shift4"]),
        helper.make_node("Add", ["drawn", "shift4"], ["styled"]),
        {
            "plain": helper.make_node("Identity", ["styled"], ["last"]),
            "stiff": helper.make_node("Reshape", ["styled", "stiff"], ["last"]),
            "mixing": helper.make_node("ReduceMean", ["styled"], ["mean"], axes=[0]),
        }[kind],
    ]
    if kind == "mixing":
        nodes.append(helper.make_node("Add", ["styled", "mean"], ["last"]))
    nodes.append(helper.make_node("Sigmoid", ["last"], ["output"]))
    write(
        path,
        nodes,
        [tensor("target", (batch, 3, 8, 8)), tensor("source", (1, 4))],
        [tensor("output", (batch, 3, 8, 8))],
        weights,
    )
    picture = TensorSpec("target", (1, 3, 8, 8), "float32", "NCHW", "RGB", (0.0,) * 3, (1 / 255,) * 3)
    output = TensorSpec("output", (1, 3, 8, 8), "float32", "NCHW", "RGB", (0.0,) * 3, (1 / 255,) * 3)
    return path, card_of(path, [picture, TensorSpec("source", (1, 4))], [output])


def write_yunet(path: Path, side: int, seed: int = 0) -> Path:
    """A network with the inputs and outputs of YuNet: one convolution for each output, random weights.

    Each grid is a convolution with kernel and stride of the grid, so each cell depends on its own pixels alone.
    """
    rng = np.random.default_rng(seed)
    nodes, outputs, weights = [], [], []
    for kind, width, gain, offset in (
        ("cls", 1, 2.0, 0.0),
        ("obj", 1, 2.0, 0.5),
        ("bbox", 4, 0.4, 0.6),
        ("kps", 10, 0.5, 0.0),
    ):
        for stride in (8, 16, 32):
            name, rows = f"{kind}_{stride}", (side // stride) ** 2
            kernel = rng.normal(0, gain / (255 * stride), (width, 3, stride, stride)).astype(np.float32)
            weights += [
                constant(f"{name}_w", kernel),
                constant(f"{name}_b", np.full(width, offset, np.float32)),
                constant(f"{name}_s", np.array([1, rows, width], np.int64)),
            ]
            nodes += [
                helper.make_node("Conv", ["input", f"{name}_w", f"{name}_b"], [f"{name}_c"], strides=[stride, stride]),
                helper.make_node("Transpose", [f"{name}_c"], [f"{name}_t"], perm=[0, 2, 3, 1]),
            ]
            last = f"{name}_t"
            if kind in ("cls", "obj"):
                nodes.append(helper.make_node("Sigmoid", [last], [f"{name}_p"]))
                last = f"{name}_p"
            nodes.append(helper.make_node("Reshape", [last, f"{name}_s"], [name]))
            outputs.append(tensor(name, (1, rows, width)))
    return write(path, nodes, [tensor("input", (1, 3, side, side))], outputs, weights)


def with_free_size(source: Path, path: Path) -> Path:
    """The shared SCRFD weights in the shape of InsightFace's own files: free size, outputs without a batch axis."""
    model = onnx.load(source)
    del model.graph.value_info[:]
    for axis, name in ((2, "?"), (3, "?")):
        dim = model.graph.input[0].type.tensor_type.shape.dim[axis]
        dim.ClearField("dim_value")
        dim.dim_param = name
    shapes = []
    for output in model.graph.output:
        width = output.type.tensor_type.shape.dim[-1].dim_value
        for node in model.graph.node:
            node.output[:] = [f"{name}_3d" if name == output.name else name for name in node.output]
        model.graph.node.append(helper.make_node("Squeeze", [f"{output.name}_3d"], [output.name], axes=[0]))
        shapes.append(tensor(output.name, (f"rows_{output.name}", width)))
    del model.graph.output[:]
    model.graph.output.extend(shapes)
    path.write_bytes(model.SerializeToString())
    return path
