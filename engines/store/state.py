"""Says at a glance how it stands with each model, by name and size; what is in a file only ``verify`` can tell."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from engines.card import ModelCard
from engines.folders import EMBEDDED, user_folder
from engines.store import locate
from engines.store.proof import known_files, may_have_size, only_confirmed, size_of
from engines.store.records import is_accepted

State = Literal[
    "embedded",
    "yours",
    "yours, unpublished",  # confirmed by its owner, and none of the files that its card names
    "offline",
    "damaged",  # here, but of a size that no file of this model has
    "not confirmed",  # here, but nothing says whether it is the right file
    "not accepted",  # here, but its licence was not accepted
    "can be pulled",
    "bring your own",
]


def state(card: ModelCard) -> tuple[State, Path | None]:
    """Say how it stands with a model.

    Args:
        card: the model.

    Returns:
        Its state, and its file where there is one.

    Raises:
        ModelError: the records of what was accepted and confirmed are damaged.
    """
    path = locate(card)
    if path is None:
        return ("can be pulled" if card.mirrors or card.pack else "bring your own"), None
    known = known_files(card)
    if not known:
        return "not confirmed", path
    if not may_have_size(known, size_of(path)):
        return "damaged", path
    if path.parent == EMBEDDED:
        return "embedded", path
    if not is_accepted(card.licence):
        return "not accepted", path
    mine: State = "yours, unpublished" if only_confirmed(path, card) else "yours"
    return (mine if path.parent == user_folder() else "offline"), path
