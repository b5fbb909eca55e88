"""Sees that a run would write over a file that it needs or writes as well; knows names, not what is in the files."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

from realtime.config import Settings
from realtime.errors import ConfigError
from realtime.people.parts import parts_of
from realtime.sinks import parse_output
from realtime.sources import parse_input


def refuse(settings: Settings, figures: Path | None) -> None:
    """Find out before anything is opened that two of the files are one, under whatever names.

    Overwriting means an older result, never what this run reads: a clip that is converted into itself is lost.

    Args:
        settings: name the photos, the input and the recordings.
        figures: the file that gets the figures of the run.

    Raises:
        ConfigError: one file is named for two things, at least one of which is written.
    """
    source = parse_input(settings.input.what)
    sinks = [parse_output(text) for text in settings.output.to]
    parts = parts_of(settings)
    read = [("a photo", photo) for part in parts for photo in (*part.photos, *part.people)]
    if source.kind in ("video", "image"):
        read.append(("the input", source.target))
    written = [("an output", sink.target) for sink in sinks if sink.kind == "recording"]
    if figures:
        written.append(("the file of the figures", str(figures)))
    pairs = [(a, b) for a in read for b in written] + list(combinations(written, 2))
    for (what, name), (other, other_name) in pairs:
        if _is_one(Path(name).expanduser(), Path(other_name).expanduser()):
            raise ConfigError(f"{other_name} is {other}, but also {what}", "name another file to write to")


def _is_one(a: Path, b: Path) -> bool:
    """Whether two paths lead to one regular file, also through links; devices and pipes may be named twice."""
    if a.exists() and b.exists():
        return a.is_file() and a.samefile(b)
    return a.resolve() == b.resolve()
