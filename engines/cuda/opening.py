"""Opens a GPU by the first back end that can, and says why the others cannot; knows names, drives nothing itself."""

from __future__ import annotations

import ctypes
import importlib
import sys
from importlib.util import find_spec
from typing import Any

from engines.contract import Availability
from engines.cuda.driver import Driver
from engines.errors import DeviceError, install_extra

BACK_ENDS = {
    "pycuda": ("engines.cuda.pycuda_driver:PyCudaDriver", ("pycuda",)),
    "cuda-bindings": ("engines.cuda.bindings_driver:BindingsDriver", ("cuda.bindings",)),
}
"""Name -> "module:Class" and what it needs; the first one that can be used is taken."""

LEAST_CAPABILITY = (7, 5)
"""Turing: what CUDA 13 and TensorRT 10.13 still compile for."""
DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
"""The library that comes with NVIDIA's driver and with nothing else."""


def probe() -> Availability:
    """Say whether a GPU can be driven here, without importing what would crash where there is none.

    Returns:
        Usable or not, and why: no driver, no GPU, one that is too old, or no package to drive it with.
    """
    gpu = ask_driver()
    if not gpu.ok:
        return gpu
    missing = [name for name, (_, needs) in BACK_ENDS.items() if not all(is_there(package) for package in needs)]
    if len(missing) == len(BACK_ENDS):
        return Availability(False, f"{gpu.reason}, but none of {', '.join(missing)} is installed", install_extra("gpu"))
    if not is_there("cupy"):
        return Availability(False, f"{gpu.reason}, but cupy is not installed", install_extra("gpu"))
    return gpu


def open_driver() -> Driver:
    """Open the first GPU.

    Raises:
        DeviceError: no back end can; the message has the reason of each.
    """
    found = probe()
    if not found.ok:
        raise DeviceError(f"no GPU can be used: {found.reason}", found.hint)
    reasons = []
    for name, (target, _) in BACK_ENDS.items():
        module, _, attribute = target.partition(":")
        try:
            driver: Driver = getattr(importlib.import_module(module), attribute)()
        except (ImportError, OSError, DeviceError) as error:
            reasons.append(f"{name}: {error}")
        else:
            return driver
    raise DeviceError(f"the GPU cannot be driven: {'; '.join(reasons)}", install_extra("gpu"))


def is_there(package: str) -> bool:
    """Say whether a package is installed, without importing it."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # its parent is not there
        return False


def ask_driver() -> Availability:
    """Ask the driver alone, which can be loaded and called anywhere; see :func:`probe`."""
    try:
        library = ctypes.CDLL(DRIVER)
    except OSError:
        return Availability(
            False, "there is no NVIDIA driver", "install the driver of your NVIDIA GPU, if you have one"
        )
    hint = "update the NVIDIA driver, and see whether nvidia-smi shows the GPU"
    count = ctypes.c_int(0)
    for call, arguments in (("cuInit", (0,)), ("cuDeviceGetCount", (ctypes.byref(count),))):
        if status := getattr(library, call)(*arguments):
            return Availability(False, f"the NVIDIA driver finds no GPU ({call}: error {status})", hint)
    if not count.value:
        return Availability(False, "the NVIDIA driver finds no GPU", hint)
    return _describe(library)


def _describe(library: Any) -> Availability:
    device, name, major, minor = ctypes.c_int(0), ctypes.create_string_buffer(128), ctypes.c_int(0), ctypes.c_int(0)
    library.cuDeviceGet(ctypes.byref(device), 0)
    library.cuDeviceGetName(name, len(name), device)
    library.cuDeviceGetAttribute(ctypes.byref(major), 75, device)  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
    library.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)  # and MINOR
    words, capability = name.value.decode(errors="replace"), (major.value, minor.value)
    if capability < LEAST_CAPABILITY:
        least = ".".join(map(str, LEAST_CAPABILITY))
        reason = f"{words} has compute capability {capability[0]}.{capability[1]}, less than {least}"
        return Availability(False, reason, "use the processor, or a GPU from Turing (RTX 20, GTX 16) on")
    return Availability(True, f"{words}, compute {capability[0]}.{capability[1]}")
