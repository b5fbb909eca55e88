"""Says whether ONNX Runtime runs on the GPU, which is tried in another process, and makes ready; opens no network."""

from __future__ import annotations

import ctypes
import io
import sys
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

from engines import isolated
from engines.contract import Availability
from engines.cuda import opening
from engines.errors import EngineError
from engines.providers import PROVIDERS

NAME, INSTALL = PROVIDERS["cuda"].name, PROVIDERS["cuda"].install
TRIAL = isolated.module("engines.gpu_trial", "onnxruntime")
"""What is run in a process of its own."""
MOST_S = 60.0
"""A first start reads 2 GB from the disk."""
_LIBRARY = "onnxruntime_providers_cuda.dll" if sys.platform == "win32" else "libonnxruntime_providers_cuda.so"


def probe() -> Availability:
    """Say whether ONNX Runtime's CUDA starts here; it is built into the ONNX Runtime that is installed.

    Returns:
        Usable, or why not and what to do. Tried only where there is a GPU, and once: the answer is kept for as long as
        the program runs.
    """
    gpu = opening.ask_driver()
    return tried(TRIAL, MOST_S) if gpu.ok else gpu


def prepare() -> Availability:
    """Load the libraries that it needs in this process, where :func:`probe` says that it starts."""
    found = probe()
    if found.ok:
        load_libraries()
    return found


@cache
def tried(command: tuple[str, ...], most_s: float) -> Availability:
    """Try it in a process of its own.

    Args:
        command: that prints what :func:`engines.gpu_trial.try_onnx_runtime` returns.
        most_s: it may take.
    """
    try:
        told = isolated.ask("ONNX Runtime's CUDA", command, INSTALL, most_s)
    except EngineError as error:
        return Availability(False, error.message, error.hint)
    if told["really"] != NAME:
        return Availability(False, f"ONNX Runtime's CUDA does not start: {told['why'] or 'it gave no reason'}", INSTALL)
    return Availability(True, "ONNX Runtime's CUDA")


def load_libraries() -> None:
    """Load what pip has installed of CUDA and cuDNN: the system finds none of it by itself."""
    import onnxruntime as ort  # noqa: PLC0415  (half a second, and only where it is used)

    if hasattr(ort, "preload_dlls"):  # from 1.21 on
        with redirect_stdout(io.StringIO()):  # what it does not find it prints, and the system may have it
            ort.preload_dlls()


def what_is_missing() -> str:
    """Say in the system's words why the library of the provider does not load; empty where it does."""
    import onnxruntime as ort  # noqa: PLC0415  (see above)

    try:
        ctypes.CDLL(str(Path(ort.__file__).parent / "capi" / _LIBRARY))
    except OSError as error:
        return str(error)
    return ""
