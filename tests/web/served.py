"""Starts a server, the measuring one or the program itself, as a process of its own and watches it from outside."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import psutil

from tests.conftest import ROOT


class Served:
    """A process that prints an address and ends with its standard input. Use as a context manager.

    Args:
        command: after the name of the interpreter.
        log: gets what it says on its standard error.

    Attributes:
        url: where it serves.
        process: for looking at it.
    """

    def __init__(self, command: Sequence[str], log: IO[str] | None = None) -> None:
        self._child = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log or subprocess.DEVNULL,
            text=True,
        )
        assert self._child.stdout is not None
        self.url = self._child.stdout.readline().strip()
        self.process = psutil.Process(self._child.pid)

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()
        try:
            self._child.wait(10)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._child.stdout.close()

    def cpu_share(self, seconds: float) -> float:
        """Processor seconds per second, over so long from now on."""
        before_s, begun_s = self._cpu_s(), time.perf_counter()
        time.sleep(seconds)
        return (self._cpu_s() - before_s) / (time.perf_counter() - begun_s)

    def _cpu_s(self) -> float:
        times = self.process.cpu_times()
        return times.user + times.system


def serve(peers: str, show: str, clips: Path | None = None, log: IO[str] | None = None) -> Served:
    """Start ``tests.web.serve``; see there."""
    command = ["-m", "tests.web.serve", "--peers", peers, "--show", show]
    return Served([*command, "--clips", str(clips)] if clips else command, log)
