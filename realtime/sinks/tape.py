"""The file under a recording: created without harming an older one, frozen at its first failure; knows no video."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
from pathlib import Path

from realtime.errors import SinkError


def check_place(path: Path, *, overwrite: bool) -> int:
    """Make sure that a file can be made there, before anything expensive starts.

    Args:
        path: the file to be.
        overwrite: an existing file may be replaced.

    Returns:
        Free space in bytes.

    Raises:
        SinkError: the folder is missing or closed, or the name is taken.
    """
    folder = path.parent
    if not folder.is_dir():
        raise SinkError(f"cannot record to {path}: there is no folder {folder}", f"make it first: mkdir -p {folder}")
    if path.is_dir():
        raise SinkError(f"cannot record to {path}: it is a folder", "name a file in it, e.g. out.mp4")
    if path.exists() and not overwrite:
        raise SinkError(f"cannot record to {path}: it exists", "take another name, or replace it with --overwrite")
    try:
        with tempfile.TemporaryFile(dir=folder):  # asking for the rights would not notice a read-only disk
            pass
    except OSError as error:
        raise SinkError(
            f"cannot record to {path}: nothing can be written in {folder} ({error.strerror})",
            "choose a folder that you may write to, on a disk with free space",
        ) from error
    return shutil.disk_usage(folder).free


class Tape:
    """A file for a muxer. Writes go to the kernel at once, so that a killed process loses nothing it had muxed.

    The first failure freezes it: from then on writes are taken and thrown away, and the owner looks at ``error``. At
    ``close`` a failed file goes back to what it was at the last ``mark``, its rewritten head included: some muxers
    rewrite the head first and then run out of space for the index that it points to.
    Until ``keep`` is called the file is on trial: an older file of its name waits beside it and comes back at
    ``close``.

    Attributes:
        error: the first failure, or ``None``.
        kept: whether the file stays.
    """

    def __init__(self, path: Path, *, overwrite: bool) -> None:
        """Create the file, moving an existing one aside.

        Raises:
            OSError: it cannot be created, or exists without ``overwrite``; the older file is where it was.
        """
        self.error: OSError | None = None
        self.kept = False
        self._path = path
        self._frozen = False
        self._whole_bytes = 0
        self._undo: list[tuple[int, bytes]] = []
        self._older = _free_name(path) if overwrite and path.exists() else None
        if self._older:
            path.replace(self._older)
        try:
            self._file = path.open("x+b", buffering=0)
        except OSError:
            if self._older:
                self._older.replace(path)
            raise

    def write(self, data: bytes) -> int:
        """Take all of ``data``; a failure shows in ``error`` only."""
        rest = memoryview(data)
        try:
            if rest and not self._frozen:
                self._remember(len(rest))
            while rest and not self._frozen:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self.error = error
            self._frozen = True
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position, as files do."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Current position in bytes."""
        return self._file.tell()

    def mark(self) -> int:
        """Say that the file ends with a whole piece now.

        Returns:
            Bytes in the file.
        """
        self._whole_bytes = os.fstat(self._file.fileno()).st_size
        self._undo.clear()
        return self._whole_bytes

    def freeze(self) -> None:
        """Throw away every write from here on."""
        self._frozen = True

    def keep(self) -> None:
        """There are pictures on disk: the file stays, and an older one is replaced for good."""
        self.kept = True
        if self._older:
            self._older.unlink(missing_ok=True)
            self._older = None

    def close(self) -> None:
        """Close the file; if it was never kept, remove it and put the older one back. Safe to call twice."""
        if self._file.closed:
            return
        if self.error:
            with contextlib.suppress(OSError):  # a disk that is gone cannot be tidied up
                self._roll_back()
        self._file.close()
        if self._older:
            self._older.replace(self._path)
        elif not self.kept:
            self._path.unlink(missing_ok=True)

    def _remember(self, count: int) -> None:
        """Keep the marked bytes that the next write will replace."""
        position = self._file.tell()
        replaced = min(count, self._whole_bytes - position)
        if replaced > 0:
            self._undo.append((position, self._file.read(replaced)))
            self._file.seek(position)

    def _roll_back(self) -> None:
        self._file.truncate(self._whole_bytes)
        for position, replaced in reversed(self._undo):
            self._file.seek(position)
            self._file.write(replaced)


def _free_name(path: Path) -> Path:
    """A name beside ``path`` that no file has."""
    for number in range(1, 1000):
        candidate = path.with_name(f"{path.stem}.before-{number}{path.suffix}")
        if not candidate.exists():
            return candidate
    raise FileExistsError(f"{path.parent} is full of set-aside recordings")
