"""Says what the processor is called and how many cores there are; asks the operating system, knows no devices."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import psutil


def processor() -> str:
    """Name of the processor as its maker sells it, or its architecture where the system does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def cores() -> int:
    """Number of cores that this program may use, >= 1.

    Two threads of one core share its arithmetic, so a network gains nothing from the second.
    """
    real = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else real
    return max(1, min(real, allowed))
