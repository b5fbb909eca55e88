"""Reads which tensors a model file has, by having its runtime load it; knows no card, and never unpickles anything."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engines.conform import Found
from engines.errors import ModelError

_PICKLES = {".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".bin", ".tar"}
_ZIP = b"PK\x03\x04"  # what PyTorch saves today, and the InsightFace packs
_PICKLE_START = b"\x80"  # the first opcode of every pickle since protocol 2, then the protocol
_PICKLE_PROTOCOLS = b"\x02\x03\x04\x05"
_TFLITE_MARK = b"TFL3"  # at byte 4
_ELSEWHERE = b"\x0a\x08location\x12"  # ONNX: the key under which a tensor says in which other file its data is


@dataclass(frozen=True, slots=True)
class Contents:
    """The tensors of a model file.

    Attributes:
        runtime: that loaded it, by its name in ``engines.registry``.
        inputs: see :data:`engines.conform.Found`.
        outputs: likewise.
    """

    runtime: Literal["litert", "onnxrt"]
    inputs: Found
    outputs: Found

    def __str__(self) -> str:
        """Say them on one line, for people."""
        return f"inputs {_text(self.inputs)}; outputs {_text(self.outputs)}"


def _refuse_pickle(path: Path) -> None:
    """Refuse a file that can run code when it is opened, and archives.

    Raises:
        ModelError: it is one, by its name or its first bytes; or it cannot be read.
    """
    try:
        with path.open("rb") as file:
            start = file.read(8)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}", "name a file that is there") from error
    pickled = start[:1] == _PICKLE_START and start[1:2] in _PICKLE_PROTOCOLS and len(start) > 1
    if pickled or path.suffix.lower() in _PICKLES:
        raise ModelError(
            f"{path} is a PyTorch file: opening one can run any code that is in it, so it is never taken",
            "export the model to ONNX, and add that file",
        )
    if start.startswith(_ZIP):
        raise ModelError(f"{path} is an archive, not a model", "unpack it, and add the .onnx file that is in it")


def read(path: Path) -> Contents:
    """Read which tensors a model file has.

    Args:
        path: an ONNX or TFLite file.

    Returns:
        Its tensors.

    Raises:
        ModelError: it is no model, is damaged, has operators that the runtime does not have, or keeps its weights in
            another file.
    """
    _refuse_pickle(path)
    with path.open("rb") as file:
        start = file.read(8)
    return _read_tflite(path) if start[4:] == _TFLITE_MARK else _read_onnx(path)


def _read_tflite(path: Path) -> Contents:
    from engines import litert  # noqa: PLC0415  (only for a file of its kind)

    try:
        interpreter = litert.open_interpreter(path)
    except (ValueError, RuntimeError) as error:
        raise _not_loaded(path, "LiteRT", str(error), "unresolved custom op") from error
    return Contents(
        "litert", litert.found(interpreter.get_input_details()), litert.found(interpreter.get_output_details())
    )


def _read_onnx(path: Path) -> Contents:
    import onnxruntime as ort  # noqa: PLC0415  (only for a file of its kind)
    from onnxruntime.capi.onnxruntime_pybind11_state import InvalidProtobuf  # noqa: PLC0415

    from engines import onnxrt  # noqa: PLC0415

    _refuse_two_files(path)
    options = ort.SessionOptions()
    options.log_severity_level = 4  # its errors become ours
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL  # only its tensors are looked at
    try:
        session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except InvalidProtobuf as error:
        raise ModelError(
            f"{path} is no ONNX or TFLite model, or only half of one", "name an undamaged .onnx or .tflite file"
        ) from error
    except onnxrt.ERRORS as error:
        raise _not_loaded(path, "ONNX Runtime", str(error), "is not a registered function") from error
    return Contents("onnxrt", onnxrt.found(session.get_inputs()), onnxrt.found(session.get_outputs()))


def _refuse_two_files(path: Path) -> None:
    """Refuse an ONNX file whose weights lie beside it: only one file is hashed, copied and found again."""
    with path.open("rb") as file:
        if path.stat().st_size:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
                elsewhere = view.find(_ELSEWHERE) >= 0
            if elsewhere:
                raise ModelError(
                    f"{path} keeps its weights in another file", "save it as one file: onnx.save(onnx.load(FILE), NEW)"
                )


def _not_loaded(path: Path, runtime: str, said: str, custom: str) -> ModelError:
    if custom in said.lower():
        return ModelError(
            f"{path} has operators of its own, which {runtime} does not have: {said}",
            "export the model with standard operators only",
        )
    return ModelError(f"{runtime} cannot load {path}: {said}", "name an undamaged file that this runtime can load")


def _text(tensors: Found) -> str:
    return ", ".join(f"{name} {dtype} {list(shape)}" for name, (shape, dtype) in tensors.items()) or "none"
