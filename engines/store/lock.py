"""Lets one process at a time write a file; knows the system's file locks, which end with the process that holds them.

So a lock is never stale, however its holder ended. The lock files are small, hidden and stay: taking one away while
another process waits for it would let two in.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engines.errors import ModelError
from engines.store.disk import plain_errors

_BUSY = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}
_LOOK_AGAIN_S = 0.05


@contextmanager
def alone(path: Path, *, wait: bool = False, doing: str = "fetching") -> Iterator[None]:
    """Keep every other process (and every other lock in this one) out while a file is written.

    Args:
        path: the file that will be written; its folder exists.
        wait: until the other one is done; for what takes no time.
        doing: what is done with the file, for people.

    Yields:
        While the lock is held.

    Raises:
        ModelError: another process is at it, or the folder cannot be written.
    """
    with plain_errors(path):
        handle = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while not _try(handle, path):
            if not wait:
                raise ModelError(f"another doppelcam is {doing} {path.name} right now", "wait until it is done")
            time.sleep(_LOOK_AGAIN_S)
        yield
    finally:
        os.close(handle)  # which ends the lock


def _try(handle: int, path: Path) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415  (only there)

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # noqa: PLC0415  (not on Windows)

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _BUSY:
            return False
        raise ModelError(
            f"{path.parent} cannot be locked: {error.strerror}", "set DOPPELCAM_MODELS to a folder on a local disk"
        ) from error
    return True
