"""Programs in processes of their own, which may hang or go down without taking this one along; knows no library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from engines.errors import EngineError

_ROOT = Path(__file__).resolve().parents[1]
_END_S = 2.0  # that a process may take to end when it is killed


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
        popen = subprocess.Popen(
            command,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise EngineError(f"{what} cannot be tried: {error.strerror}", "check the installation of Python") from error
    try:
        said, complaints = popen.communicate(timeout=most_s)
    except subprocess.TimeoutExpired as error:
        raise EngineError(
            f"{what} did not answer within {most_s:g} s", "restart the machine, and see whether nvidia-smi answers"
        ) from error
    finally:
        _end(popen)
    try:
        answer = json.loads(said.splitlines()[-1])
    except (IndexError, ValueError):
        answer = None
    if isinstance(answer, dict):
        return answer
    last = (complaints.strip().splitlines() or ["without a word"])[-1]
    ended = f"signal {-popen.returncode}" if popen.returncode < 0 else f"exit code {popen.returncode}"
    raise EngineError(f"{what} takes its process down when it starts ({ended}): {last}", hint)


def _end(popen: subprocess.Popen[str]) -> None:
    """End a process. One that hangs inside a driver cannot be ended: it is left, and not waited for."""
    popen.kill()
    with suppress(subprocess.TimeoutExpired):
        popen.wait(_END_S)
    for pipe in filter(None, (popen.stdout, popen.stderr)):
        pipe.close()
