"""Where the pictures of a run come from and go to, changed while it goes on; knows no page."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from platformdirs import user_videos_path

from realtime import app
from realtime.config import Settings
from realtime.errors import ConfigError, LiveError
from realtime.loop import Controls
from realtime.sinks import NETWORKED, Sink, SinkSpec, parse_output
from realtime.sources import NETWORKED as SENT
from realtime.sources import SourceInfo, parse_input

Note = Callable[[str, LiveError | None], None]
"""Told what was done, or what could not be, and why."""


class Places:
    """The ends of a run.

    Args:
        ends: as they were named at the start.
        settings: as they are when an output is opened.
        tell: see ``Note``. From several threads.

    Attributes:
        controls: of the run.
        input: as it was named last.
        recording: the file that ``record`` is writing; empty when it is not.
        asked: what each output was asked for as, by its name.
    """

    def __init__(self, ends: app.Ends, settings: Callable[[], Settings], tell: Note) -> None:
        self._ends, self._settings, self._tell = ends, settings, tell
        self.controls: Controls | None = None
        self.input = settings().input.what
        self.recording = ""
        self.asked: dict[str, str] = {}

    def use_input(self, what: str) -> None:
        """Take the pictures from somewhere else.

        Raises:
            ConfigError: it cannot be understood, or needs the web server.
        """
        spec = parse_input(what)
        if spec.kind in SENT:
            self._demand_network(what)
        ends = replace(self._ends, source=spec, wish=replace(self._ends.wish, paced=True, loop=True))

        def told(error: LiveError | None) -> None:
            if error is None:
                self.input = what
            self._tell(f"{what} cannot be used" if error else f"the pictures come from {what} now", error)

        self._run().change_source(partial(app.open_again, ends), told)

    def add(self, to: str) -> None:
        """Show the picture in one more place.

        Raises:
            ConfigError: it cannot be understood, or needs the web server.
        """
        spec = parse_output(to)
        if spec.kind in NETWORKED:
            self._demand_network(to)
        self._add(spec, to, lambda error: self._tell(f"{to} is {'not ' if error else ''}open", error))

    def remove(self, name: str) -> None:
        """Close an output."""
        if name == f"recording {self.recording}":
            self.recording = ""
        self._run().remove_sink(name, lambda error: self._tell(f"{name} is {'not ' if error else ''}closed", error))

    def record(self, on: bool) -> None:
        """Start a recording, or finish it; does nothing where that is so already.

        Raises:
            ConfigError: there is no folder for it.
        """
        if on == bool(self.recording):
            return
        if not on:
            path, self.recording = self.recording, ""
            self._run().remove_sink(f"recording {path}", lambda error: self._tell(f"recorded to {path}", error))
            return
        folder = user_videos_path()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"nothing can be recorded in {folder}: {error.strerror}"
            raise ConfigError(message, "add an output with a file's name instead") from error
        path = str(folder / f"doppelcam {datetime.datetime.now():%Y-%m-%d %H.%M.%S}.mp4")
        self.recording = path

        def told(error: LiveError | None) -> None:
            if error is not None:
                self.recording = ""
            self._tell("nothing is recorded" if error else f"recording to {path}", error)

        self._add(parse_output(path), path, told)

    def _add(self, spec: SinkSpec, to: str, told: Callable[[LiveError | None], None]) -> None:
        run = self._run()
        before: set[str] | None = None  # names at the first opening; later ones are of the same output

        def open_sink(info: SourceInfo) -> Sink:
            nonlocal before
            sink = app.open_one_sink(spec, _careful(self._settings()), self._ends.station, info)
            name = sink.info.name
            if before is None and name in (before := {known for known, _ in run.sinks()}):
                sink.close()
                raise ConfigError(f"{name} is open already", "remove it first")
            self.asked[name] = to
            return sink

        run.add_sink(open_sink, told)

    def _demand_network(self, what: str) -> None:
        if self._ends.station is None:
            raise ConfigError(f"{what} needs the web server", "start with: doppelcam serve")

    def _run(self) -> Controls:
        if self.controls is None:
            raise ConfigError("the run has not begun", "try again in a moment")
        return self.controls


def _careful(settings: Settings) -> Settings:
    """Never over an older file: whoever steers a run may sit elsewhere, and has not said so on this machine."""
    return settings.model_copy(update={"output": settings.output.model_copy(update={"overwrite": False})})
