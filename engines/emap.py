"""Takes the identity matrix out of the ONNX file of a swapper of inswapper's kind; knows arrays and files, no faces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engines.errors import ModelError, install_extra

SHAPE = (512, 512)
"""Of the matrix, in every model of this kind."""


def read_emap(path: Path) -> NDArray[np.float32]:
    """Read the matrix that takes a recogniser's vector into the space of a swapper.

    It is the last initialiser of the file as its maker published it; optimisers fold it away or move it, so this needs
    the file itself and not what a runtime made of it. Where the last one has another shape, it is the only one of the
    right shape.

    Args:
        path: of the ONNX file, verified.

    Returns:
        (512, 512) float32, C-contiguous, the caller's own; a vector is multiplied from the left. Half precision is
        widened.

    Raises:
        ModelError: the package onnx is not installed, the file is no ONNX model, or it has no such matrix or several.
    """
    try:
        import onnx  # noqa: PLC0415  (optional, and slow to import)
        from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # noqa: PLC0415  (no types)
    except ImportError as error:
        raise ModelError(
            f"{path.name} holds a matrix that only the package onnx can read, which is not installed",
            install_extra("neural"),
        ) from error
    try:
        weights = onnx.load(path, load_external_data=False).graph.initializer
    except (DecodeError, OSError) as error:
        raise ModelError(f"{path} cannot be read as an ONNX model: {error}", "replace it with a good copy") from error
    fitting = [weight for weight in weights if tuple(weight.dims) == SHAPE]
    is_last = bool(weights) and tuple(weights[-1].dims) == SHAPE
    if not is_last and len(fitting) != 1:
        count = f"{len(fitting)} of them, none at its end" if fitting else "none"
        raise ModelError(
            f"{path.name} should hold one matrix of 512x512 for the identity, but has {count}",
            "use the file as its maker published it: one that was simplified or optimised has lost the matrix",
        )
    return np.array(onnx.numpy_helper.to_array(fitting[-1]), np.float32, order="C")
