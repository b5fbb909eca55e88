"""The command line: which commands there are and how a person is told of an error; knows nothing of what they do.

Modules of ``realtime.commands`` import what they need inside their functions, so that ``--help`` answers at once.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from realtime.commands.bench import bench
from realtime.commands.cameras import cameras
from realtime.commands.doctor import doctor
from realtime.commands.live import live
from realtime.commands.models import models_app
from realtime.commands.serve import serve, token
from realtime.commands.warm import warm
from realtime.doctor import LIBRARIES, lacks_library
from realtime.errors import LiveError

INTERRUPTED = 130  # what a shell expects of a program that Ctrl-C ended before its work began


def _new(text: str) -> typer.Typer:
    return typer.Typer(help=text, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"doppelcam {importlib.metadata.version('doppelcam')}")
        raise typer.Exit


def _doppelcam() -> typer.Typer:
    app = _new("A real-time face-swap camera: your photo's face on the person in view, sent to a virtual webcam.")

    @app.callback()
    def main(
        version: Annotated[
            bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
        ] = False,
    ) -> None: ...

    for command in (live, serve, token, bench, doctor, cameras, warm):
        app.command()(command)
    app.add_typer(models_app, name="models")
    return app


def _live_only() -> typer.Typer:
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(live)
    return app


def run(app: typer.Typer, name: str, arguments: Sequence[str]) -> int:
    """Run a command line and tell errors as two lines on stderr.

    Args:
        app: the commands.
        name: program name for the help.
        arguments: without the program name.

    Returns:
        The exit code: 0 done, 1 a check failed, 2 settings or files, 3 a source or sink, 4 a model or engine,
        5 consent, 130 interrupted before the work began. A bug is not caught: its traceback is what a report needs.
    """
    _fill_streams()
    try:
        result = app(list(arguments), prog_name=name, standalone_mode=False)
    except LiveError as error:
        return _tell(error.message, error.hint, error.exit_code)
    except typer.TyperException as error:
        if not error.format_message():
            return 2  # no command was given, and the help has been shown
        return _tell(error.format_message(), _usage_hint(error.format_message(), name), 2)
    except ImportError as error:
        if not lacks_library(error):
            raise
        return _tell(f"a system library is missing: {error}", LIBRARIES, 4)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    return result if isinstance(result, int) else 0


def main() -> None:
    """Entry of the console script ``doppelcam``."""
    sys.exit(run(_doppelcam(), "doppelcam", sys.argv[1:]))


def main_live() -> None:
    """Entry of ``run_live.py``: the command ``live`` alone."""
    sys.exit(run(_live_only(), "run_live.py", sys.argv[1:]))


def _fill_streams() -> None:
    """Give a program that was started without input or output (pythonw, a service) nowhere to read from and write to.

    Otherwise the first file that is opened, such as a recording, takes the free number of the error output, and what a
    library complains about goes into it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open to the end


def _tell(message: str, hint: str, exit_code: int) -> int:
    # One line each, whatever a file name or a system message holds.
    sys.stderr.write(f"error: {' '.join(message.split())}\ntry: {' '.join(hint.split())}\n")
    return exit_code


def _usage_hint(message: str, name: str) -> str:
    if "extra argument" in message:
        return f"give an option again for each value, e.g. --source a.png --source b.png; see {name} --help"
    return f"{name} --help lists the options"
