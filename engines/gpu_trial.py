"""A program: takes up the GPU as a run would, and prints one line of JSON that says what came of it; may go down."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from engines.cuda.driver import Driver
from engines.errors import LiveError

FRAME = (720, 1280, 3)
"""Shape of the frames that are sent to the GPU and back, rows first."""
NETWORK = (
    b'\x08\x08\x12\x00:3\n\x0c\n\x01x\x12\x01y"\x04Relu\x12\x01gZ\x0f\n\x01x\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x01'
    b"b\x0f\n\x01y\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x01B\x04\n\x00\x10\x11"
)
"""The smallest network there is, as ONNX: y = Relu(x), of one number. A test reads it."""


def try_device(driver: Driver | None = None) -> dict[str, Any]:
    """Send as many frames to the GPU as are in flight in a run, and bring them back.

    Args:
        driver: the GPU; ``None`` opens the first one.

    Returns:
        ``name`` of the device, ``cuda`` that the driver supports, ``memory_bytes`` and ``free_bytes`` of the GPU,
        ``allocations`` as of :meth:`engines.cuda.driver.Driver.allocations`, and ``remarks``.

    Raises:
        DeviceError: it failed.
    """
    from engines.cuda.device import SLOTS, CudaDevice  # noqa: PLC0415  (not where ONNX Runtime is tried)

    device = CudaDevice(driver)
    try:
        frames = [np.zeros(FRAME, np.uint8) for _ in range(SLOTS)]
        for pixels in frames:
            device.begin(pixels)
        for pixels in frames:
            device.finish(pixels)
        gpu = device.driver.gpu
        return {
            "name": device.name,
            "cuda": gpu.driver,
            "memory_bytes": gpu.memory_bytes,
            "free_bytes": device.driver.free_bytes(),
            "allocations": list(device.memory()),
            "remarks": list(device.remarks),
        }
    finally:
        device.close()


def try_kernels(driver: Driver | None = None) -> dict[str, Any]:
    """Compile a kernel, or find it where CuPy keeps those that it has compiled.

    Args:
        driver: the GPU; ``None`` opens the first one.

    Returns:
        ``compiled``: its file.

    Raises:
        DeviceError: that cannot be done.
    """
    from engines.cuda import opening  # noqa: PLC0415  (not where ONNX Runtime is tried)

    opened = driver or opening.open_driver()
    try:
        opened.kernel("paste.cu", "paste_f16")
    finally:
        opened.close()
    return {"compiled": "paste.cu"}


def try_onnx_runtime(provider: str = "CUDAExecutionProvider") -> dict[str, Any]:
    """Open a network in ONNX Runtime, which takes the processor without a word where a provider does not start.

    Returns:
        ``really``: the provider that it was opened on, and ``why`` it is another one, as far as that is known.
    """
    import onnxruntime as ort  # noqa: PLC0415  (half a second)

    from engines.cuda.provider import load_libraries, what_is_missing  # noqa: PLC0415  (not where CUDA is tried)

    load_libraries()
    really = ort.InferenceSession(NETWORK, providers=[provider]).get_providers()[0]
    return {"really": really, "why": "" if really == provider else what_is_missing()}


TRIALS: dict[str, Callable[[], dict[str, Any]]] = {
    "device": try_device,
    "kernels": try_kernels,
    "onnxruntime": try_onnx_runtime,
}


def main(what: str) -> dict[str, Any]:
    """Try one of ``TRIALS``; an error that is for people becomes ``error`` and ``hint``."""
    try:
        return TRIALS[what]()
    except LiveError as error:
        return {"error": error.message, "hint": error.hint}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
