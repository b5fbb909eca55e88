"""Asks a process of its own for a plan, listens, and ends it when it must; knows no GPU and no network."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from engines import errors, isolated
from engines.building.messages import Failed, Finished, Message, Request, Said, Unfinished, read_message, to_line
from engines.building.progress import Progress
from engines.building.settings import BuildSettings
from engines.card import ModelCard
from engines.errors import EngineError, LiveError
from engines.plan import Plan, open_plan

COMMAND = isolated.module("engines.building.child")
"""Of the process."""
_LOOK_S = 0.1  # between two looks at whether the build is to be stopped
_END_S = 10.0  # that a process may take to end when it has told its result
_MOST_LAST_WORDS = 2000


class StoppedError(EngineError):
    """A build was stopped by whoever asked for it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a build.

    Attributes:
        plan: the plan.
        is_new: whether it was built now; else there was one that fits.
        reasons: why the plan that was there before was not used; empty where there was none.
    """

    plan: Plan
    is_new: bool
    reasons: tuple[str, ...]


def build(
    card: ModelCard,
    settings: BuildSettings,
    on_progress: Callable[[Progress], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
    *,
    on_warning: Callable[[str], None] = lambda _: None,
    force: bool = False,
    command: Sequence[str] = COMMAND,
) -> Outcome:
    """Build the plan of a model, unless there is one that fits this machine.

    Blocks until there is; what is done meanwhile is done by another process, which is ended with this call, however it
    ends: by an error, by Ctrl-C, by ``cancelled``. Then no half file is left.

    Args:
        card: of the model, as published.
        settings: how it is built.
        on_progress: told how far it is, in the calling thread.
        cancelled: asked ten times a second whether to stop.
        on_warning: told what TensorRT warns of, in the calling thread.
        force: build it even where there is one that fits.
        command: of the process.

    Returns:
        The plan and how it came to be.

    Raises:
        StoppedError: ``cancelled`` said so.
        ModelError: the file is missing, damaged or cannot be prepared, the samples cannot be used, or the disk refuses.
        EngineError: TensorRT is not installed, cannot build it, took too long, or crashed.
        DeviceError: no GPU can be used.
    """
    settings.demand_possible()
    deadline_s = time.monotonic() + settings.time_limit_s
    progress = Progress.of(settings.precision)
    with _process(Request(card, settings, force), command) as process:
        for message in process.messages():
            if cancelled():
                raise StoppedError(f"the build of {card.name} was stopped", "start it again when you like")
            if time.monotonic() > deadline_s:
                raise _too_long(card, settings, progress)
            match message:
                case None:
                    continue
                case Said(_, text):
                    on_warning(text)
                case Unfinished(path):
                    process.unfinished.append(path)
                case Failed(kind, text, hint):
                    raise _error(kind)(text, hint)
                case Finished(path, is_new, reasons):
                    process.unfinished.clear()
                    return Outcome(open_plan(path), is_new, reasons)
                case _:
                    progress = progress.after(message)
                    on_progress(progress)
        raise EngineError(
            f"the process that builds the plan of {card.name} {process.how_it_ended()} while {progress.stage}",
            "try again with nothing else on the GPU; where it happens again, update the NVIDIA driver and TensorRT",
        )


@dataclass(slots=True)
class _Process:
    """The process, while it runs.

    Attributes:
        popen: itself.
        lines: what it tells, ended by None.
        complaints: its error output.
        unfinished: files that go with it.
    """

    popen: subprocess.Popen[bytes]
    lines: queue.SimpleQueue[bytes | None]
    complaints: IO[bytes]
    unfinished: list[Path] = field(default_factory=list)

    def messages(self) -> Iterator[Message | None]:
        """Give what it tells until it ends, and ``None`` ten times a second where it is silent."""
        while True:
            try:
                line = self.lines.get(timeout=_LOOK_S)
            except queue.Empty:
                yield None
                continue
            if line is None:
                return
            yield read_message(line)

    def how_it_ended(self) -> str:
        """Say it in words, with its last words."""
        with suppress(subprocess.TimeoutExpired):
            self.popen.wait(_END_S)
        code = self.popen.poll()
        if code is None:
            return "fell silent"
        words = self._last_words()
        how = f"was ended by {_signal_name(-code)}" if code < 0 else f"ended with code {code}"
        return f"{how} ({words})" if words else how

    def _last_words(self) -> str:
        self.complaints.seek(0, os.SEEK_END)
        self.complaints.seek(max(0, self.complaints.tell() - _MOST_LAST_WORDS))
        lines = self.complaints.read().decode(errors="replace").strip().splitlines()
        fatal = [line for line in lines if line.startswith("Fatal Python error")]
        return (fatal or lines or [""])[-1].strip()


@contextmanager
def _process(request: Request, command: Sequence[str]) -> Iterator[_Process]:
    """Start the process, and end it and what it left unfinished."""
    with TemporaryFile() as complaints, _started(command, complaints) as popen:
        process = _Process(popen, queue.SimpleQueue(), complaints)
        reader = threading.Thread(target=_read, args=(popen, process.lines), name="build", daemon=True)
        reader.start()
        try:
            _ask(popen, request)
            yield process
        finally:
            popen.kill()  # also where it has told its end: all that is worth keeping is on the disk
            popen.wait()
            reader.join()
            for path in process.unfinished:
                path.unlink(missing_ok=True)


@contextmanager
def _started(command: Sequence[str], complaints: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    try:
        popen = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env=isolated.environment(),
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except OSError as error:
        raise EngineError(
            f"the process that builds does not start: {error.strerror}", "close other programs, and try again"
        ) from error
    try:
        yield popen
    finally:
        for pipe in filter(None, (popen.stdin, popen.stdout)):
            with suppress(BrokenPipeError):  # what was not read of the request
                pipe.close()


def _ask(popen: subprocess.Popen[bytes], request: Request) -> None:
    """Hand the request over. The pipe stays open: its end would end the process."""
    if popen.stdin is not None:
        with suppress(BrokenPipeError):  # it has ended already: what it left tells why
            popen.stdin.write(to_line(request))
            popen.stdin.flush()


def _read(popen: subprocess.Popen[bytes], lines: queue.SimpleQueue[bytes | None]) -> None:
    for line in popen.stdout or ():
        if line.endswith(b"\n"):  # else it was ended in the middle of it
            lines.put(line)
    lines.put(None)


def _too_long(card: ModelCard, settings: BuildSettings, progress: Progress) -> EngineError:
    return EngineError(
        f"the plan of {card.name} was not built within {settings.time_limit_s / 60:g} min: "
        f"{progress.share:.0%} done, {progress.stage}",
        "allow more with --time-limit, or close what else uses the GPU; what was measured so far is measured again",
    )


def _error(kind: str) -> type[LiveError]:
    """Find the class of an error by its name."""
    found = getattr(errors, kind, EngineError)
    return found if isinstance(found, type) and issubclass(found, LiveError) else EngineError


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
