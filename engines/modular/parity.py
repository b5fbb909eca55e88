"""Compares a PyTorch module with what ONNX Runtime makes of its export; knows numbers, not what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnxruntime as ort
import torch
from torch import Tensor, nn

from engines.errors import ModelError

TOLERANCE = 1e-4
"""Greatest difference allowed, in units of the greatest value. Float32 sums in another order differ by 1e-6 to 1e-5
after some dozens of layers; a wrong operator differs by 1e-2 and more."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How far PyTorch and ONNX Runtime are apart on one batch.

    Attributes:
        module: name for people.
        batch: samples in it.
        greatest: absolute, over all outputs.
        allowed: absolute.
    """

    module: str
    batch: int
    greatest: float
    allowed: float


def compare(name: str, module: nn.Module, model: bytes, inputs: Mapping[str, Tensor]) -> list[Difference]:
    """Run both on the same numbers, at every batch from 1 to that of the inputs.

    Args:
        name: of the module, for people.
        module: in evaluation mode.
        model: its serialised export.
        inputs: by name, in the order of its arguments.

    Returns:
        One difference for each batch.

    Raises:
        ModelError: they differ by more than ``TOLERANCE``, or one of them gave something that is no number.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1  # the sums of several threads may come in another order each time
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    differences = []
    for batch in range(1, len(next(iter(inputs.values()))) + 1):
        part = {key: value[:batch] for key, value in inputs.items()}
        with torch.no_grad():
            answer = module(*part.values())
        wanted = [answer] if isinstance(answer, Tensor) else list(answer)
        found = session.run(None, {key: value.numpy() for key, value in part.items()})
        difference = _difference(name, batch, [tensor.numpy() for tensor in wanted], found)
        if not difference.greatest <= difference.allowed:  # also where it is no number
            raise ModelError(
                f"{name}: ONNX Runtime differs from PyTorch by {difference.greatest:.2g} at batch {batch}, "
                f"allowed are {difference.allowed:.2g}",
                "report this as a bug, with the versions of torch, onnxscript and onnxruntime",
            )
        differences.append(difference)
    return differences


def _difference(name: str, batch: int, wanted: list[np.ndarray], found: list[np.ndarray]) -> Difference:
    greatest = max(float(np.abs(ours - theirs).max()) for ours, theirs in zip(wanted, found, strict=True))
    peak = max(float(np.abs(ours).max()) for ours in wanted)
    return Difference(name, batch, greatest, TOLERANCE * peak)
