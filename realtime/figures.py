"""The JSON file that gets the figures of a run or a bench; knows where it may lie, not what is in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from realtime.errors import ConfigError


def check_place(path: Path, option: str) -> None:
    """Find out before the run, not after it, that its figures cannot be written.

    Args:
        path: the file to be.
        option: that named it, e.g. "--stats".

    Raises:
        ConfigError: there is no folder for it, or it is one.
    """
    if path.is_dir():
        raise ConfigError(f"{option}: {path} is a folder", "name a file in it, e.g. figures.json")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"{option}: there is no folder for {path}", "make the folder, or write elsewhere")


def write(path: Path, option: str, figures: Mapping[str, Any]) -> None:
    """Write the figures, replacing an older file.

    Args:
        path: the file.
        option: that named it.
        figures: what ``json.dumps`` takes.

    Raises:
        ConfigError: it cannot be written.
    """
    try:
        path.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{option}: {path} cannot be written: {error.strerror}", "write elsewhere") from error
