"""Finds what a person may have meant: near words, near file names; knows no language and no settings."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

MOST_NAMES = 5000
"""Names of a folder that are compared; a larger folder gets no more, so that a slip never costs a long search."""


def near_words(word: str, known: Iterable[str]) -> str:
    """Say which known words look like ``word``.

    Returns:
        "did you mean X or Y? ", with a trailing space so that a hint can follow; empty when nothing is near.
    """
    near = difflib.get_close_matches(word, tuple(known), n=3, cutoff=0.7)
    return f"did you mean {' or '.join(near)}? " if near else ""


def near_files(path: Path) -> str:
    """Say which files beside a missing one look like it; same form as ``near_words``, empty when nothing is near."""
    try:
        names = [entry.name for entry, _ in zip(path.parent.iterdir(), range(MOST_NAMES), strict=False)]
    except (OSError, ValueError):  # the folder is missing too, or the name is none
        return ""
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.7)
    return f"did you mean {' or '.join(str(path.parent / name) for name in near)}? " if near else ""


def file_trouble(path: Path) -> tuple[str, str] | None:
    """Say why a file cannot even be opened, before anybody asks what is in it.

    Returns:
        Message and hint for a ``LiveError``; ``None`` when the file has at least one byte to read.
    """
    try:
        if path.is_dir():
            return f"{path} is a folder", "give one file in it"
        with path.open("rb") as file:
            return None if file.read(1) else (f"{path} is empty", "copy or export the file again")
    except FileNotFoundError:
        return f"there is no file {path}", f"{near_files(path)}check the path"
    except PermissionError:
        return f"{path} may not be read", "give yourself read permission on the file"
    except (OSError, ValueError) as error:  # a broken disk, a name that no file system takes
        return f"{path} cannot be read: {error}", "check the path and the disk"
