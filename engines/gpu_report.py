"""What of a GPU is here and what is missing, from the best way to run networks to the last; runs none of them.

Whatever may crash a process is asked for by the probes in a process of its own.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from engines import registry

TRIED = (720, 1280, 3)
"""Shape of the frame that is sent to the GPU and back, rows first."""


class Step(NamedTuple):
    """One way to run networks.

    Attributes:
        name: for people.
        ok: whether it can be used here.
        found: what was found.
        fix: what to do; empty where it is ok.
    """

    name: str
    ok: bool
    found: str
    fix: str


def chain() -> tuple[Step, ...]:
    """Say of each way, the best first, whether it can be used here and why not."""
    gpu, planned, host = registry.probe("device", "cuda"), registry.probe("runtime", "tensorrt"), _onnx_runtime()
    works = planned if gpu.ok else gpu
    lacking = [package for package in ("cupy", "tensorrt") if find_spec(package) is None]
    also = f"; {' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} not installed" if lacking else ""
    return (
        Step("1 TensorRT", gpu.ok and planned.ok, works.reason if works.ok else works.reason + also, works.hint),
        host,
        Step("3 ONNX Runtime, processor", True, registry.probe("runtime", "onnxrt").reason, ""),
        Step("4 mesh", True, "needs no network", ""),
    )


def _onnx_runtime() -> Step:
    import onnxruntime as ort  # noqa: PLC0415  (half a second)

    from engines.cuda import opening  # noqa: PLC0415

    gpu = opening.ask_driver()
    name, offered = "2 ONNX Runtime, CUDA", "CUDAExecutionProvider" in ort.get_available_providers()
    if not gpu.ok:
        return Step(name, False, gpu.reason, gpu.hint)
    if not offered:
        fix = "pip uninstall onnxruntime, then pip install onnxruntime-gpu"
        return Step(name, False, f"this ONNX Runtime {ort.__version__} is built without CUDA", fix)
    return Step(name, True, f"ONNX Runtime {ort.__version__} with CUDA", "")


def memory() -> tuple[tuple[str, str, int], ...]:
    """Send a frame to the GPU and back, and list what that has allocated: where, what for, bytes.

    Raises:
        DeviceError: it failed.
    """
    from engines.cuda.device import CudaDevice  # noqa: PLC0415  (drives a GPU)

    device = CudaDevice()
    try:
        pixels = np.zeros(TRIED, np.uint8)
        device.begin(pixels)
        device.finish(pixels)
        return tuple(device.memory())
    finally:
        device.close()
