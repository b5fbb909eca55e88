"""Writes files so that a half one is never seen, and says in plain words why a disk refuses; knows no models."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engines.errors import ModelError

_SPARE_BYTES = 64 * 2**20  # what is left for everybody else on the disk
_MB = 1e6


@contextmanager
def plain_errors(path: Path) -> Iterator[None]:
    """Turn what the system says about writing a file into an error for people.

    Args:
        path: the file that is written.

    Yields:
        While it is written.

    Raises:
        ModelError: instead of an ``OSError``.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _no_room(path, f"the disk is full: {error.strerror}") from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise ModelError(
                f"{path} cannot be written: {error.strerror}",
                f"make {path.parent} writable, or set DOPPELCAM_MODELS to a folder that is",
            ) from error
        raise ModelError(f"{path} cannot be written: {error.strerror or error}", f"look at {path.parent}") from error


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, where they are not there yet.

    Raises:
        ModelError: that cannot be done.
    """
    with plain_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)


def need_room(path: Path, size_bytes: int) -> None:
    """Refuse to begin what cannot be finished.

    Args:
        path: the file that will be written; its folder exists.
        size_bytes: that it will still grow.

    Raises:
        ModelError: the disk has less than that, and a little to spare.
    """
    free = shutil.disk_usage(path.parent).free
    if free < size_bytes + _SPARE_BYTES:
        raise _no_room(path, f"{free / _MB:.0f} MB are free, {(size_bytes + _SPARE_BYTES) / _MB:.0f} MB are needed")


def commit(part: Path, path: Path) -> None:
    """Give a complete file its name, in one step that survives a power cut.

    Args:
        part: the complete file, in the same folder.
        path: its name from now on; what was there is replaced.

    Raises:
        ModelError: the disk refuses.
    """
    with plain_errors(path):
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(path)
        if sys.platform != "win32":  # where a folder cannot be opened
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def copy(source: Path, path: Path) -> None:
    """Copy a small file so that a half one is never seen.

    Raises:
        ModelError: it cannot be read, or the disk refuses.
    """
    part = path.with_name(f"{path.name}.part")
    with plain_errors(path):
        shutil.copyfile(source, part)
    commit(part, path)


def _no_room(path: Path, why: str) -> ModelError:
    return ModelError(
        f"no room for {path}: {why}", "free some space, or set DOPPELCAM_MODELS to a folder on a larger disk"
    )
