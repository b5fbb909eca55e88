"""Says what the processor is called; knows files of the operating system, nothing of devices."""

from __future__ import annotations

import platform
from pathlib import Path


def processor() -> str:
    """Name of the processor as its maker sells it, or its architecture where the system does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
