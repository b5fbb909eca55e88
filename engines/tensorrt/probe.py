"""Says whether TensorRT can be used here, without ever going down with it; knows how to ask, not how to run."""

from __future__ import annotations

from functools import cache

from engines import isolated
from engines.contract import Availability
from engines.cuda import opening
from engines.errors import EngineError
from engines.tensorrt.api import INSTALL, installed

TRIAL = isolated.module("engines.tensorrt.trial")
"""What is run in a process of its own: some libraries, asked without a driver, take the process down with them."""
MOST_S = 120.0
"""Loading TensorRT for the first time reads 2 GB from the disk."""


def probe() -> Availability:
    """Say whether there is a GPU, and TensorRT is installed and starts.

    Returns:
        The version, or why not and what to do. TensorRT is only started where there is a GPU, and once: the answer is
        kept for as long as the program runs.
    """
    gpu = opening.probe()
    if not gpu.ok:
        return gpu
    if installed() is None:
        return Availability(False, "package tensorrt is not installed", INSTALL)
    return tried(TRIAL)


@cache
def tried(command: tuple[str, ...], most_s: float = MOST_S) -> Availability:
    """Try TensorRT in a process of its own.

    Args:
        command: that prints what :mod:`engines.tensorrt.trial` prints.
        most_s: it may take.

    Returns:
        What it found; not usable where it ended otherwise than with an answer.
    """
    try:
        found = isolated.ask("TensorRT", command, INSTALL, most_s)
    except EngineError as error:
        return Availability(False, error.message, error.hint)
    return Availability(found["ok"], found["reason"], found["hint"])
