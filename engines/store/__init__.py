"""Finds the file of a model card and proves that it may be used; knows folders, hashes and licences, not models."""

from __future__ import annotations

from pathlib import Path

from engines.card import ModelCard
from engines.errors import ModelError
from engines.folders import EMBEDDED, ENVIRONMENT, OFFLINE, model_folders, offline_folders, user_folder
from engines.store.proof import fingerprint, only_confirmed, verify
from engines.store.records import demand_licence

__all__ = [
    "EMBEDDED",
    "ENVIRONMENT",
    "OFFLINE",
    "find",
    "fingerprint",
    "how_to_get",
    "locate",
    "offline_folders",
    "only_confirmed",
    "user_folder",
    "verify",
]


def find(card: ModelCard, folders: tuple[Path, ...] | None = None) -> Path:
    """Find a card's file, and prove that it is the right one and that its owner knows its licence.

    Args:
        card: the card.
        folders: where to look, in this order; by default the user's folder, the offline ones, the embedded weights.

    Returns:
        Path of a file with the card's size and hash.

    Raises:
        ModelError: there is no such file, its licence has not been accepted, it is not the one that the card
            describes, or the card has no hash and nobody has confirmed the file.
    """
    path = locate(card, folders)
    if path is None:
        places = model_folders() if folders is None else folders
        raise ModelError(
            f"model {card.name}: {card.file} is in none of: {', '.join(str(place) for place in places)}",
            how_to_get(card),
        )
    if path.parent != EMBEDDED:
        demand_licence(card)
    verify(path, card)
    return path


def locate(card: ModelCard, folders: tuple[Path, ...] | None = None) -> Path | None:
    """Find a card's file without looking into it.

    Args:
        card: the card.
        folders: see :func:`find`.

    Returns:
        The first file with the card's file name; a good one further down does not hide it. None where there is none.
    """
    places = model_folders() if folders is None else folders
    return next((path for folder in places if (path := folder / card.file).is_file()), None)


def how_to_get(card: ModelCard) -> str:
    """Say what a person does to have a card's file, as an instruction."""
    if card.mirrors or card.pack:
        return f"doppelcam models pull {card.name}; where you have the file: doppelcam models add FILE"
    return f"get it from its maker ({card.licence.origin}), then: doppelcam models add FILE"
