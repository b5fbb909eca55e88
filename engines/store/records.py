"""Remembers what the owner of this machine decided: licences accepted, files confirmed; knows no file but its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import date

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from engines.card import NOT_STATED, Licence, ModelCard
from engines.errors import ModelError
from engines.folders import user_folder
from engines.store import disk
from engines.store.lock import alone

FILE = "known.json"
"""Name of the records in the user's folder."""

_STRICT = ConfigDict(extra="forbid")


@with_config(_STRICT)
@dataclass(frozen=True, slots=True)
class Confirmed:
    """A file that its owner said is the right one.

    Attributes:
        sha256: of the file, lower-case hexadecimal.
        size_bytes: of the file.
        on: day, ISO 8601.
    """

    sha256: str
    size_bytes: int
    on: str


@with_config(_STRICT)
@dataclass(frozen=True, slots=True)
class Records:
    """All decisions.

    Attributes:
        files: name of a card -> the one file that was confirmed for it, the newest where there were several.
        licences: name and holder of a licence -> day of acceptance, ISO 8601.
    """

    files: Mapping[str, Confirmed] = field(default_factory=dict)
    licences: Mapping[str, str] = field(default_factory=dict)


def read() -> Records:
    """Read the records.

    Returns:
        What was decided so far; empty where nothing was.

    Raises:
        ModelError: the file is damaged or cannot be read.
    """
    path = user_folder() / FILE
    try:
        return TypeAdapter(Records).validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return Records()
    except ValidationError as error:
        raise ModelError(
            f"{path} is damaged: {error.errors()[0]['msg']}", "delete it: licences and files are then asked for again"
        ) from error
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}", "check its permissions") from error


def is_accepted(licence: Licence) -> bool:
    """Say whether a model under this licence may be used: it allows everything, or it was accepted."""
    return licence.commercial_use or _key(licence) in read().licences


def demand_licence(card: ModelCard) -> None:
    """Refuse a model whose licence forbids commercial use and was not accepted.

    Raises:
        ModelError: so it is; the hint is the command that shows the licence and asks.
    """
    if not is_accepted(card.licence):
        says = f"is not for commercial use ({_key(card.licence)})"
        if card.licence.name == NOT_STATED:
            says = f"has no licence that its maker states ({card.licence.holder})"
        raise ModelError(
            f"model {card.name} {says}, and you have not accepted that",
            f"doppelcam models pull {card.name} (shows the licence and asks; --accept-licence in scripts)",
        )


def accept(licence: Licence) -> None:
    """Note that a licence was shown and accepted today.

    Raises:
        ModelError: it cannot be noted.
    """
    _change(lambda old: replace(old, licences={**old.licences, _key(licence): date.today().isoformat()}))


def confirm(card: ModelCard, sha256: str, size_bytes: int) -> None:
    """Note that the owner says this file is the right one for a card; from now on it is demanded.

    Raises:
        ModelError: it cannot be noted.
    """
    entry = Confirmed(sha256, size_bytes, date.today().isoformat())
    _change(lambda old: replace(old, files={**old.files, card.name: entry}))


def _key(licence: Licence) -> str:
    return f"{licence.name}, {licence.holder}"


def _change(new_from_old: Callable[[Records], Records]) -> None:
    path = user_folder() / FILE
    disk.make_folder(path.parent)
    with alone(path, wait=True):
        text = json.dumps(asdict(new_from_old(read())), indent=2, ensure_ascii=False)
        part = path.with_name(f"{FILE}.part")
        with disk.plain_errors(path):
            part.write_text(text + "\n", encoding="utf-8")
        disk.commit(part, path)
