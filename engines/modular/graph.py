"""One PyTorch module -> one clean ONNX model, in memory; knows graphs, not what they are for."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import onnx
import torch
from torch import Tensor, nn

OPSET = 18
"""What the exporter writes without converting; every runtime of the program reads it."""

BATCH = "batch"
"""Name of the free axis."""


def to_onnx(module: nn.Module, inputs: Mapping[str, Tensor], outputs: Sequence[str]) -> bytes:
    """Export a module.

    The exporter folds constants and batch normalisation and drops what is not used. What it leaves is where each node
    came from, with the paths of this machine; that goes too, so that the same weights give the same bytes everywhere.

    Args:
        module: in evaluation mode; its parameters are the names of the model's weights.
        inputs: by the names of its arguments, in their order, with a batch of 2 or more, which becomes the free axis.
        outputs: names of what it returns.

    Returns:
        The serialised model, checked, with all weights inside.
    """
    batch = torch.export.Dim(BATCH, min=1)
    # The first input names the axis; that the others share it is found out.
    axes = [batch] + [torch.export.Dim.DYNAMIC] * (len(inputs) - 1)
    with _quiet(), torch.no_grad():
        program = torch.onnx.export(
            module,
            tuple(inputs.values()),
            dynamo=True,
            verbose=False,
            opset_version=OPSET,
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_shapes=tuple({0: axis} for axis in axes),
        )
    if program is None:  # only with the older exporter, which is not asked for
        raise RuntimeError("torch.onnx.export returned nothing")
    model: onnx.ModelProto = program.model_proto
    _forget_origins(model)
    onnx.checker.check_model(model, full_check=True)
    serialised: bytes = model.SerializeToString(deterministic=True)
    return serialised


def _forget_origins(model: onnx.ModelProto) -> None:
    graph = model.graph
    for part in (model, graph, *graph.node, *graph.input, *graph.output, *graph.value_info, *graph.initializer):
        part.ClearField("metadata_props")
        part.ClearField("doc_string")


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep to itself what the exporter says about its own code and about packages that nobody needs."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)  # "torchvision is not installed"
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".isinstance.treespec, LeafSpec", FutureWarning)  # torch 2.13 on itself
            yield
    finally:
        log.setLevel(level)
