"""Where the pictures of a run come from and go to, changed while it goes on; knows no page."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from platformdirs import user_videos_path

from realtime import app
from realtime.config import Settings
from realtime.controls import Controls
from realtime.errors import ConfigError, LiveError
from realtime.sinks import IN_MAIN_THREAD, NETWORKED, Sink, parse_output
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
        self._lock = threading.Lock()  # around what is being recorded

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
        self._add(to, lambda error: self._tell(f"{to} is {'not ' if error else ''}open", error))

    def remove(self, name: str) -> None:
        """Close an output."""

        def told(error: LiveError | None) -> None:
            if error is None:
                self._closed(name)
            self._tell(f"{name} is {'not ' if error else ''}closed", error)

        self._run().remove_sink(name, told)

    def record(self, on: bool) -> None:
        """Start a recording, or finish it; does nothing where that is so already.

        Raises:
            ConfigError: there is no folder for it.
        """
        run = self._run()
        with self._lock:
            if on == bool(self.recording):
                return
            path, self.recording = self.recording, _new_recording() if on else ""
        if on:
            self._begin_recording(self.recording)
        else:
            name = _name_of(path)
            run.remove_sink(name, lambda error: self._tell(f"recorded to {path}", error))

    def _begin_recording(self, path: str) -> None:
        def told(error: LiveError | None) -> None:
            if error is not None:
                self._closed(_name_of(path))
            self._tell("nothing is recorded" if error else f"recording to {path}", error)

        self._add(path, told)

    def _closed(self, name: str) -> None:
        with self._lock:
            if self.recording and name == _name_of(self.recording):
                self.recording = ""
        self.asked.pop(name, None)

    def _add(self, to: str, told: Callable[[LiveError | None], None]) -> None:
        spec = parse_output(to)
        if spec.kind in NETWORKED:
            self._demand_network(to)

        def open_sink(info: SourceInfo) -> Sink:
            sink = app.open_one_sink(spec, _careful(self._settings()), self._ends.station, info)
            self.asked[sink.info.name] = to
            return sink

        self._run().add_sink(open_sink, told, aside=spec.kind not in IN_MAIN_THREAD)

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


def _new_recording() -> str:
    """A file that does not exist yet.

    Raises:
        ConfigError: there is no folder for it.
    """
    folder = user_videos_path()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"nothing can be recorded in {folder}: {error.strerror}"
        raise ConfigError(message, "add an output with a file's name instead") from error
    name = f"doppelcam {datetime.datetime.now():%Y-%m-%d %H.%M.%S}"
    names = (name, *(f"{name} ({count})" for count in range(2, 100)))
    return str(next(path for each in names if not (path := folder / f"{each}.mp4").exists()))


def _name_of(path: str) -> str:
    """What the output is called that records to a file."""
    return f"recording {path}"
