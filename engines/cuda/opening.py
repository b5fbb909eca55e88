"""Opens a GPU by the first back end that can, and says why the others cannot; knows names, drives nothing itself."""

from __future__ import annotations

import importlib
from functools import cache
from importlib.util import find_spec

from engines import isolated
from engines.contract import Availability
from engines.cuda.driver import Driver
from engines.cuda.trial import REINSTALL
from engines.errors import DeviceError, EngineError, install_extra

BACK_ENDS = {
    "pycuda": ("engines.cuda.pycuda_driver:PyCudaDriver", ("pycuda",)),
    "cuda-bindings": ("engines.cuda.bindings_driver:BindingsDriver", ("cuda.bindings",)),
}
"""Name -> "module:Class" and what it needs; the first one that can be used is taken."""

TRIAL = isolated.module("engines.cuda.trial")
"""What is run in a process of its own."""
MOST_S = 20.0
"""Where nobody keeps the driver awake, it wakes every GPU of the machine first: seconds for eight of them."""


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
    """Ask the driver alone, see :func:`probe`: in another process, since a broken one hangs or takes it down; once."""
    return asked(TRIAL, MOST_S)


@cache
def asked(command: tuple[str, ...], most_s: float) -> Availability:
    """Run what prints the answer of the driver.

    Args:
        command: that prints what :mod:`engines.cuda.trial` prints.
        most_s: it may take.
    """
    try:
        found = isolated.ask("the NVIDIA driver", command, REINSTALL, most_s)
    except EngineError as error:
        return Availability(False, error.message, error.hint)
    return Availability(found["ok"], found["reason"], found["hint"])
