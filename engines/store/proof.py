"""Proves that a file is the one its card means, by size and hash; knows nothing of where files come from."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Mapping
from pathlib import Path

from engines.card import ModelCard
from engines.errors import ModelError
from engines.folders import EMBEDDED
from engines.store.records import read

UNKNOWN_SIZE = 0


def published(card: ModelCard) -> Mapping[str, int]:
    """List the files that a card names: its own and the copies.

    Returns:
        sha256 -> size in bytes, 0 where nobody said it. Empty for a card without a hash.
    """
    own = {card.sha256: card.size_bytes} if card.sha256 else {}
    return {**own, **{copy.sha256: copy.size_bytes for copy in card.copies}}


def known_files(card: ModelCard) -> Mapping[str, int]:
    """List what a card's file may be: the card's own, a copy that the card names, or what its owner confirmed.

    Args:
        card: the card.

    Returns:
        sha256 -> size in bytes, 0 where nobody said it. Empty for a card without a hash that nobody has confirmed.

    Raises:
        ModelError: the records of what was confirmed are damaged.
    """
    confirmed = read().files.get(card.name)
    return {**published(card), **({confirmed.sha256: confirmed.size_bytes} if confirmed else {})}


def verify(path: Path, card: ModelCard) -> str:
    """Check a file against its card.

    Args:
        path: an existing file.
        card: its card.

    Returns:
        The file's sha256.

    Raises:
        ModelError: the size or the hash differs, nothing is known to compare with, or the file cannot be read.
    """
    size = size_of(path)
    makers = published(card)
    if makers and may_have_size(makers, size) and (found := digest(path)) in makers:
        return found  # what its owner decided need not even be readable
    known = known_files(card)
    if not known:
        raise ModelError(
            f"nobody has published the sha256 of model {card.name}, and you have not confirmed {path}",
            f"doppelcam models add {path} --as {card.name}",
        )
    hint = f"replace it with an undamaged copy ({card.licence.origin})"
    if not may_have_size(known, size):
        says = " or ".join(str(n) for n in sorted(set(known.values())))
        raise ModelError(f"{path} has {size} bytes, its card says {says}", hint)
    found = digest(path)
    if found not in known:
        raise ModelError(f"{path} has sha256 {found}, its card says {' or '.join(known)}", hint)
    return found


def only_confirmed(path: Path, card: ModelCard) -> bool:
    """Say whether a file is one that nobody but its owner vouches for; without proving it, see :func:`fingerprint`.

    Raises:
        ModelError: the file cannot be read, or the records of what was confirmed are damaged.
    """
    confirmed = None if path.parent == EMBEDDED else read().files.get(card.name)
    if confirmed is None or confirmed.sha256 in published(card):
        return False
    return fingerprint(path, card) == confirmed.sha256


def fingerprint(path: Path, card: ModelCard) -> str:
    """Say which weights a file should hold, without proving it: by its size where that tells, else by its hash.

    Args:
        path: an existing file.
        card: its card.

    Returns:
        A sha256, for use in keys of what was computed with these weights.

    Raises:
        ModelError: the file cannot be read.
    """
    known, size = known_files(card), size_of(path)
    fitting = [sha256 for sha256, its_size in known.items() if its_size in (size, UNKNOWN_SIZE)]
    return fitting[0] if len(fitting) == 1 else digest(path)


def may_have_size(known: Mapping[str, int], size: int) -> bool:
    """Say whether one of the known files can have this size; any size will do where one of theirs is not known."""
    return not known or size in known.values() or UNKNOWN_SIZE in known.values()


def size_of(path: Path) -> int:
    """Return a file's size in bytes.

    Raises:
        ModelError: it cannot be asked.
    """
    try:
        return path.stat().st_size
    except OSError as error:
        raise _unreadable(path, error) from error


def digest(path: Path) -> str:
    """Return a file's sha256, lower-case hexadecimal.

    Raises:
        ModelError: the file cannot be read, or is a pipe or a device, which may never end.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ModelError(f"{path} is no file", "name the model file itself")
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> ModelError:
    return ModelError(f"{path} cannot be read: {error.strerror}", "check that it is there and its permissions")
