"""A program: asks NVIDIA's driver for its first GPU, and prints one line of JSON that says what it is; may go down.

Light on purpose: every run that could use a GPU begins with it.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
"""It comes with NVIDIA's driver and with nothing else."""
LEAST_CAPABILITY = (7, 5)
"""Turing: what CUDA 13 and TensorRT 10.13 still compile for."""
INSTALL = (
    "if you have an NVIDIA GPU, install its driver (nvidia-smi then shows the GPU); in a container, start it with "
    "--gpus all"
)
UPDATE = "update the NVIDIA driver, restart, and see whether nvidia-smi shows the GPU"
REINSTALL = "install the NVIDIA driver again, and see whether nvidia-smi shows the GPU"

_NOT_THERE = (f"{LIBRARY}: cannot open shared object file: No such file", "Could not find", "dlopen(")
"""What Linux, Windows and macOS say of a library that is nowhere, and not of one that they find and cannot load."""
PCI = Path("/sys/bus/pci/devices")
"""Where Linux lists what is plugged in, driver or not."""

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR

Answer = dict[str, Any]
"""``ok``, ``reason`` and ``hint``, see :class:`engines.contract.Availability`."""


def ask() -> Answer:
    """Ask for the first GPU and what it is."""
    try:
        return _first(ctypes.CDLL(LIBRARY))
    except OSError as error:
        words = str(error)
    except AttributeError as error:  # a call that the library does not have
        return _no(f"the NVIDIA driver is damaged: {error}", REINSTALL)
    if not words.startswith(_NOT_THERE):
        return _no(f"the NVIDIA driver does not load: {words}", REINSTALL)
    return _no(f"there is no NVIDIA driver{_plugged_in()}", INSTALL)


def _first(library: ctypes.CDLL) -> Answer:
    count, device, name = ctypes.c_int(0), ctypes.c_int(0), ctypes.create_string_buffer(128)
    numbers = {_MAJOR: ctypes.c_int(0), _MINOR: ctypes.c_int(0)}
    if fault := _fault(library, ("cuInit", 0), ("cuDeviceGetCount", ctypes.byref(count))):
        return _no(fault, UPDATE)
    if not count.value:
        return _no("the NVIDIA driver finds no GPU", UPDATE)
    asked = [("cuDeviceGetAttribute", ctypes.byref(number), what, device) for what, number in numbers.items()]
    first = ("cuDeviceGet", ctypes.byref(device), 0)
    if fault := _fault(library, first, ("cuDeviceGetName", name, len(name), device), *asked):
        return _no(fault, UPDATE)
    words, capability = name.value.decode(errors="replace"), tuple(number.value for number in numbers.values())
    here, least = (".".join(map(str, pair)) for pair in (capability, LEAST_CAPABILITY))
    if capability < LEAST_CAPABILITY:
        hint = "use the processor, or a GPU from Turing (RTX 20, GTX 16) on"
        return _no(f"{words} has compute capability {here}, less than {least}", hint)
    return {"ok": True, "reason": f"{words}, compute {here}", "hint": ""}


def _fault(library: ctypes.CDLL, *calls: tuple[Any, ...]) -> str:
    """Make calls until one fails; say which and how, empty where none does."""
    for name, *arguments in calls:
        if status := getattr(library, name)(*arguments):
            return f"the NVIDIA driver finds no GPU ({name}: error {status})"
    return ""


def _plugged_in() -> str:
    """Say whether there is a GPU for which a driver would be worth while, where that can be seen."""
    if not PCI.is_dir():
        return ""
    for device in PCI.iterdir():
        vendor, kind = ((device / name).read_text() for name in ("vendor", "class"))
        if vendor.startswith("0x10de") and kind.startswith("0x03"):  # NVIDIA, and something that shows pictures
            return ", but there is an NVIDIA GPU"
    return ", nor does the system see an NVIDIA GPU"


def _no(reason: str, hint: str) -> Answer:
    return {"ok": False, "reason": reason, "hint": hint}


if __name__ == "__main__":
    print(json.dumps(ask()))
