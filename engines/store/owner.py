"""What is asked of the owner of this machine before a model may be used; knows neither terminal nor network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from engines.card import Licence, ModelCard
from engines.errors import ModelError
from engines.store import records


class Owner(Protocol):
    """Whoever decides on this machine."""

    def accepts(self, card: ModelCard, licence: Licence) -> bool:
        """Be shown a licence that forbids commercial use, and accept it or not.

        Raises:
            ModelError: nobody can be asked; the hint says how to answer beforehand.
        """

    def can_confirm(self, card: ModelCard) -> None:
        """Hear that :meth:`confirms` will be asked once the file is here, which may take long.

        Raises:
            ModelError: nobody can be asked; the hint says how to answer beforehand.
        """

    def confirms(self, card: ModelCard, sha256: str, size_bytes: int) -> bool:
        """Be shown a file whose hash is on no card, and say whether it is the right one.

        Raises:
            ModelError: nobody can be asked.
        """


@dataclass(frozen=True, slots=True)
class Got:
    """A model that may be used from now on.

    Attributes:
        card: the model.
        path: its verified file.
        how: for people: "was already here", "fetched", or why a file was taken for this model.
    """

    card: ModelCard
    path: Path
    how: str


def settle_licence(card: ModelCard, owner: Owner) -> None:
    """Have a licence that forbids commercial use accepted, once for all models under it.

    Raises:
        ModelError: it was not accepted, or nobody can be asked.
    """
    if records.is_accepted(card.licence):
        return
    if not owner.accepts(card, card.licence):
        raise ModelError(
            f"the licence of model {card.name} was not accepted",
            "choose another model: doppelcam models list",
        )
    records.accept(card.licence)
