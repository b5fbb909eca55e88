"""Starts a server, the measuring one or the program itself, as a process of its own and watches it from outside."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import httpx
import psutil

from tests.conftest import ROOT

START_S = 60.0
"""Kernels may have to be compiled."""
CLI = ("-c", "from realtime.cli import main; main()")


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


class Program:
    """``doppelcam serve`` as a person would start it, with settings and caches of its own. Use as a context manager.

    Args:
        home: an empty folder.
        options: more of the command line.

    Attributes:
        url: of the page.
        port: of that address.
        log: file of what it says.
        process: for looking at it.
        token: that its figures are asked with; empty where it asks for none.
    """

    def __init__(self, home: Path, *options: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.token = ""
        self.log = home / "serve.log"
        places = {name: str(home) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")}
        self._environment = {**os.environ, **places}
        command = [*CLI, "serve", "--no-open", "--port", str(self.port), *options]
        with self.log.open("w") as file:
            self._child = subprocess.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        self.process = psutil.Process(self._child.pid)

    def __enter__(self) -> Program:
        end_s = time.monotonic() + START_S
        while "/whep" not in self.said():  # the banner
            if self._child.poll() is not None or time.monotonic() > end_s:
                self.__exit__()
                raise AssertionError(f"the program did not start:\n{self.said()}")
            time.sleep(0.1)
        return self

    def __exit__(self, *_: object) -> None:
        if self._child.poll() is None:
            self._child.send_signal(signal.SIGINT)
        try:
            self._child.wait(10)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    @property
    def code(self) -> int | None:
        """It ended with, ``None`` while it runs."""
        return self._child.poll()

    def take_token(self) -> None:
        """Let the program make a token, and use it from now on."""
        command = [sys.executable, *CLI, "token"]
        done = subprocess.run(command, cwd=ROOT, env=self._environment, capture_output=True, text=True, check=True)
        self.token = done.stdout.split()[-1]

    def said(self) -> str:
        """Everything so far."""
        return self.log.read_text()

    def metrics(self) -> dict[str, float]:
        """Its figures by name, labels included."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        text = httpx.get(f"{self.url}/metrics", headers=headers).raise_for_status().text
        rows = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in rows}

    def holdings(self) -> dict[str, float]:
        """What it holds now: memory (MB), threads, file handles."""
        lowest = min(self._rss_mb() for _ in range(5))  # the least of a second: a picture more or less is no growth
        return {"rss_mb": lowest, "threads": self.process.num_threads(), "handles": self.process.num_fds()}

    def _rss_mb(self) -> float:
        time.sleep(0.2)
        return float(self.process.memory_info().rss) / 2**20
