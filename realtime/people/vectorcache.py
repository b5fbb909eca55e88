"""Keeps on disk what took a network to compute from a photo; knows arrays and their keys, not what they mean.

The vectors can be used to recognise people, so the files can be read by their owner only.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from realtime.types import F32

VERSION = "1"
"""Part of every key: to be raised when the same photo and model would give another vector than before."""
_DIGEST_BYTES = 32


class VectorCache:
    """Arrays by what they were made from.

    Args:
        folder: where they are kept; made when first needed. ``None`` keeps nothing.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def recall(self, key: Sequence[str | bytes], make: Callable[[], F32]) -> F32:
        """Give an array again, or make it and keep it.

        A file that is damaged counts as none, and a disk that refuses costs time at the next start and nothing else:
        neither is an error.

        Args:
            key: everything that the array depends on.
            make: makes it.

        Returns:
            float32; the caller's own.
        """
        if self._folder is None:
            return make()
        path = self._folder / f"{_digest_of(key)}.vector"
        kept = _read(path)
        if kept is None:
            kept = make()
            with suppress(OSError):
                _write(path, kept)
        return kept


def _digest_of(key: Sequence[str | bytes]) -> str:
    parts = [part.encode() if isinstance(part, str) else part for part in (VERSION, *key)]
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(len(part).to_bytes(8, "big") + part)  # with its length: "a", "bc" is not "ab", "c"
    return hashed.hexdigest()


def _read(path: Path) -> F32 | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, data = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    if hashlib.sha256(data).digest() != digest:
        return None
    array: F32 = np.load(io.BytesIO(data), allow_pickle=False)
    return array


def _write(path: Path, array: F32) -> None:
    """Write in one step a file that nobody else may read; ``mkstemp`` and the folder are private from the start."""
    data = io.BytesIO()
    np.save(data, array, allow_pickle=False)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(data.getvalue()).digest() + data.getvalue())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
