"""Programs in processes of their own, which may hang or go down without taking this one along; knows no library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engines.errors import EngineError

_ROOT = Path(__file__).resolve().parents[1]


def module(name: str, *arguments: str) -> tuple[str, ...]:
    """Say how a module of this program is run; -P: nothing is imported from the folder that it is started in."""
    return sys.executable, "-P", "-m", name, *arguments


def environment() -> dict[str, str]:
    """Give the environment variables with which such a process finds this program, wherever it is started."""
    path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}


def ask(what: str, command: Sequence[str], hint: str, most_s: float) -> dict[str, Any]:
    """Run a program in a process of its own and read its answer.

    Args:
        what: is tried, for people: "TensorRT".
        command: of the program, whose last line on its output is a table as JSON.
        hint: what to try where it goes down.
        most_s: it may take.

    Returns:
        The table.

    Raises:
        EngineError: it ended otherwise than with an answer, did not end, or did not begin.
    """
    try:
        done = subprocess.run(
            command, env=environment(), capture_output=True, text=True, errors="replace", timeout=most_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise EngineError(f"{what} did not start within {most_s:g} s", "check the driver: nvidia-smi") from error
    except OSError as error:
        raise EngineError(f"{what} cannot be tried: {error.strerror}", "check the installation of Python") from error
    try:
        answer = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        answer = None
    if isinstance(answer, dict):
        return answer
    last = (done.stderr.strip().splitlines() or ["without a word"])[-1]
    ended = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
    raise EngineError(f"{what} takes its process down when it starts ({ended}): {last}", hint)
