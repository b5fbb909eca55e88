"""Finds the file of a model card and proves that it is the right one; knows folders and hashes, not models."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import platformdirs

from engines.card import ModelCard
from engines.errors import ModelError

EMBEDDED = Path(__file__).resolve().parent / "weights"
"""Where the weights lie that come with the program."""

ENVIRONMENT = "DOPPELCAM_MODELS"
"""Environment variable that names the user's model folder."""


def user_folder() -> Path:
    """Return the folder where a user's own models belong; it need not exist.

    Returns:
        ``$DOPPELCAM_MODELS`` where that is set, else ``models`` in the system's data folder for this program.
    """
    chosen = os.environ.get(ENVIRONMENT)
    return Path(chosen).expanduser() if chosen else platformdirs.user_data_path("doppelcam", appauthor=False) / "models"


def find(card: ModelCard, folders: tuple[Path, ...] | None = None) -> Path:
    """Find a card's file and verify it.

    Args:
        card: the card.
        folders: where to look, in this order; by default the user's folder, then the embedded weights.

    Returns:
        Path of a file with the card's size and hash.

    Raises:
        ModelError: there is no such file, or it is not the one that the card describes.
    """
    places = (user_folder(), EMBEDDED) if folders is None else folders
    for folder in places:
        path = folder / card.file
        if path.is_file():
            verify(path, card)
            return path
    raise ModelError(
        f"model {card.name}: {card.file} is in none of: {', '.join(str(place) for place in places)}",
        f"put the file there ({card.licence.origin})",
    )


def verify(path: Path, card: ModelCard) -> None:
    """Check a file against its card.

    Args:
        path: an existing file.
        card: its card.

    Raises:
        ModelError: the size or the hash differs, or the file cannot be read.
    """
    hint = f"replace it with an undamaged copy ({card.licence.origin})"
    try:
        size = path.stat().st_size
        if size != card.size_bytes:
            raise ModelError(f"{path} has {size} bytes, its card says {card.size_bytes}", hint)
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}", "check the file's permissions") from error
    if found != card.sha256:
        raise ModelError(f"{path} has sha256 {found}, its card says {card.sha256}", hint)
