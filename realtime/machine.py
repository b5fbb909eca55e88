"""Names the machine that a measurement was made on, and counts its memory; knows no program."""

from __future__ import annotations

import os
import platform
import sys

import psutil

from engines.processor import processor


def describe() -> str:
    """One line: processor, cores, memory, system, Python."""
    memory_gb = psutil.virtual_memory().total / 2**30
    return (
        f"{processor()}, {cores()} cores, {memory_gb:.0f} GB, "
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    )


def cores() -> int:
    """Processors that this process may use, which in a container are fewer than the machine has."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def peak_rss_mb() -> float:
    """Most memory that this process ever held, in units of 2^20 bytes."""
    if sys.platform == "win32":
        return float(psutil.Process().memory_info().peak_wset) / 2**20
    import resource  # noqa: PLC0415 - does not exist on Windows

    # Linux counts in units of 1024 bytes, macOS in bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
