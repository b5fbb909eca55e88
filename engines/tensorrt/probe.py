"""Says whether TensorRT can be used here, without ever going down with it; knows how to ask, not how to run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from engines.contract import Availability
from engines.cuda import opening
from engines.tensorrt.api import INSTALL, installed

TRIAL = (sys.executable, "-P", "-m", "engines.tensorrt.trial")
"""What is run in a process of its own: some libraries, asked without a driver, take the process down with them. It
imports nothing from the folder that it is started in, which may have a ``tensorrt`` too."""
MOST_S = 120.0
"""Loading TensorRT for the first time reads 2 GB from the disk."""
_ROOT = Path(__file__).resolve().parents[2]


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
    path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    try:
        done = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=most_s, check=False
        )
    except subprocess.TimeoutExpired:
        return Availability(False, f"TensorRT did not start within {most_s:g} s", "check the driver: nvidia-smi")
    except OSError as error:
        return Availability(False, f"TensorRT cannot be tried: {error.strerror}", "check the installation of Python")
    try:
        found = json.loads(done.stdout.splitlines()[-1])
        return Availability(found["ok"], found["reason"], found["hint"])
    except (IndexError, ValueError, KeyError, TypeError):
        last = (done.stderr.strip().splitlines() or ["without a word"])[-1]
        ended = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
        return Availability(False, f"TensorRT takes its process down when it starts ({ended}): {last}", INSTALL)
