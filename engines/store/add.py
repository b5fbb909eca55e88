"""Takes a model file that its owner has into the user's folder; knows where it goes, not how it is recognised."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

from engines.card import ModelCard, load_card, names
from engines.errors import ModelError
from engines.folders import user_folder
from engines.store import disk, records
from engines.store.download import Wanted, forget
from engines.store.lock import alone
from engines.store.owner import Got, Owner, settle_licence
from engines.store.proof import digest, known_files
from engines.store.recognise import Recognised, recognise

How = Literal["copy", "move", "link"]


def add(path: Path, owner: Owner, name: str = "", how: How = "copy") -> Got:
    """Take a file that its owner has.

    Args:
        path: the file.
        owner: is asked.
        name: of the card, where its owner knows it; else the file is recognised. A card that lies beside the file
            under its name counts too, and is taken along.
        how: "copy" it into the user's folder, "move" it there, or leave it and "link" to it.

    Returns:
        Where it is, and why it was taken for that model.

    Raises:
        ModelError: it is no model, a pickle, or fits no card or several; its licence was not accepted; its owner does
            not confirm it; or the disk refuses.
    """
    beside = _card_beside(path) if name in ("", path.stem) else None
    found = recognise(path, _candidates(name, beside))
    settle_licence(found.card, owner)
    unknown = found.sha256 not in known_files(found.card)
    if unknown and not owner.confirms(found.card, found.sha256, found.size_bytes):
        raise ModelError(f"{path} was not confirmed as {found.card.name}", "find out its sha256 from its maker")
    final = user_folder() / found.card.file
    disk.make_folder(final.parent)
    with alone(final):
        if not (final.exists() and final.samefile(path)):
            _bring(path.resolve(), final, found, how)
        if found.card is beside:
            disk.copy(_toml(path), user_folder() / _toml(path).name)
        if unknown:  # last, so that a confirmed file is always one that is here
            records.confirm(found.card, found.sha256, found.size_bytes)
    return Got(found.card, final, f"{found.why}; its card came with it" if found.card is beside else found.why)


def _card_beside(path: Path) -> ModelCard | None:
    """Read the card that lies beside a file, as an export leaves it, where its name and its file's name are free.

    Raises:
        ModelError: the card is wrong.
    """
    if path.stem in names() or not _toml(path).is_file():
        return None
    card = load_card(path.stem, path.parent)
    return None if card.file in {load_card(each).file for each in names()} else card


def _toml(path: Path) -> Path:
    return path.parent / f"{path.stem}.toml"


def _candidates(name: str, beside: ModelCard | None) -> list[ModelCard]:
    if not name:
        return [*map(load_card, names()), *([beside] if beside else [])]
    if beside:
        return [beside]
    try:
        return [load_card(name)]
    except ModelError as error:
        if name in names():
            raise  # it is there, and wrong
        own = f"for a model of your own, write {name}.toml into {user_folder()} first (README, Models)"
        raise ModelError(error.message, f"{error.hint}; {own}") from error


def _bring(source: Path, final: Path, found: Recognised, how: How) -> None:
    wanted = Wanted(final, found.size_bytes, {found.sha256: found.size_bytes})
    forget(wanted)  # an unfinished download, which is not needed any more
    if how == "link":
        with disk.plain_errors(final):
            wanted.part.symlink_to(source)
            wanted.part.replace(final)
        return
    disk.need_room(final, found.size_bytes)
    try:
        with disk.plain_errors(final):
            shutil.copyfile(source, wanted.part)
        if digest(wanted.part) != found.sha256:
            raise ModelError(f"{source} changed while it was copied", "add it again when nothing writes to it")
        disk.commit(wanted.part, final)
    finally:
        forget(wanted)  # half a copy is no use: the next one starts again
    if how == "move":
        with disk.plain_errors(source):
            source.unlink()
