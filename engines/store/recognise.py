"""Tells which card a file belongs to: by its hash, else by its tensors; knows no folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from math import inf
from pathlib import Path

from engines.card import ModelCard
from engines.conform import check_file
from engines.errors import EngineError, ModelError
from engines.store import contents
from engines.store.contents import Contents
from engines.store.proof import digest, known_files, size_of

_NEAR = 0.7  # of SequenceMatcher: below, two names have nothing to do with each other
_BY_TENSORS = "its tensors are those of the card; its sha256 is not on it"


@dataclass(frozen=True, slots=True)
class Recognised:
    """What a file was taken for.

    Attributes:
        card: the model.
        sha256: of the file, lower-case hexadecimal.
        size_bytes: of the file.
        why: for people: "its sha256 is the one on the card".
    """

    card: ModelCard
    sha256: str
    size_bytes: int
    why: str


def recognise(path: Path, cards: Sequence[ModelCard]) -> Recognised:
    """Tell which model a file is.

    Args:
        path: the file.
        cards: that it may belong to; one where its owner has said which.

    Returns:
        The one card that it fits; of several with its tensors, the one whose file has its name.

    Raises:
        ModelError: the file is no model or a pickle, it fits no card, or it fits several (they are named, the
            likeliest first).
    """
    sha256, size_bytes = digest(path), size_of(path)
    same = [card for card in cards if sha256 in known_files(card)]
    if len(same) > 1:  # one file that goes by several names
        same = [card for card in same if card.file == path.name] or same
    if len(same) == 1:
        return Recognised(same[0], sha256, size_bytes, _by_hash(same[0], sha256))
    if same:
        raise _ambiguous(path, same, "its sha256 is on several cards")
    has = contents.read(path)
    fitting = [card for card in cards if not difference(card, has)]
    named = [card for card in fitting if card.file == path.name]
    if len(fitting) > 1 and len(named) == 1:
        return Recognised(named[0], sha256, size_bytes, f"{_BY_TENSORS}, and it has its file's name")
    if len(fitting) > 1:
        raise _ambiguous(path, fitting, f"several models have its tensors ({has})")
    if not fitting:
        reason = f"it is not {cards[0].name}: {difference(cards[0], has)}" if len(cards) == 1 else "it fits no card"
        raise ModelError(
            f"{path}: {reason}; it has {has}",
            "add a card for it to your models folder, or name the right one with --as",
        )
    return Recognised(fitting[0], sha256, size_bytes, _BY_TENSORS)


def difference(card: ModelCard, has: Contents) -> str:
    """Say in which way a file does not fit a card.

    Args:
        card: the card.
        has: the file's tensors.

    Returns:
        The first difference, or nothing where it fits. An output that the card does not name does no harm; an input
        that it does not name could not be fed.
    """
    if has.runtime not in card.runtimes:
        return f"the card is served by {', '.join(card.runtimes)}, the file needs {has.runtime}"
    try:
        inputs, _ = check_file(card, has.inputs, has.outputs)
    except EngineError as error:
        return error.message
    unknown = set(has.inputs) - set(inputs)
    return f"the card has no input {', '.join(sorted(unknown))}" if unknown else ""


def _by_hash(card: ModelCard, sha256: str) -> str:
    if sha256 == card.sha256:
        return "its sha256 is the one on the card"
    note = next((copy.note for copy in card.copies if copy.sha256 == sha256), None)
    if note is None:
        return "its sha256 is the one that you confirmed"
    return f"its sha256 is that of a copy on the card ({note})" if note else "its sha256 is that of a copy on the card"


def _ambiguous(path: Path, cards: Sequence[ModelCard], why: str) -> ModelError:
    likely = sorted(cards, key=lambda card: _distance(path, card))
    names = ", ".join(card.name for card in likely)
    return ModelError(f"{path} could be any of: {names}; {why}", f"say which: --as {likely[0].name}")


def _distance(path: Path, card: ModelCard) -> tuple[float, float]:
    """Say how unlike a card a file is that fits it: first by name where that is near at all, then by bytes."""
    stem = path.stem.lower()
    likeness = max(SequenceMatcher(None, stem, word.lower()).ratio() for word in (card.name, Path(card.file).stem))
    size = size_of(path)
    sizes = [abs(size - known) for known in known_files(card).values() if known]
    return -likeness if likeness >= _NEAR else 0.0, min(sizes, default=inf)
