"""Brings a model into the user's folder, from the network or from a file; asks its owner, knows no terminal."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import httpx

from engines.card import Licence, ModelCard, load_card, names
from engines.errors import ModelError
from engines.folders import EMBEDDED, user_folder
from engines.store import contents, disk, how_to_get, locate, records
from engines.store.download import Wanted, Watcher, fetch, forget
from engines.store.lock import alone
from engines.store.pack import unpacked
from engines.store.proof import digest, known_files, size_of, verify
from engines.store.recognise import Recognised, difference, recognise

How = Literal["copy", "move", "link"]


class Owner(Protocol):
    """Whoever decides on this machine."""

    def accepts(self, card: ModelCard, licence: Licence) -> bool:
        """Be shown a licence that forbids commercial use, and accept it or not.

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
        how: for people: "was already here", "fetched", or what a file was taken for.
    """

    card: ModelCard
    path: Path
    how: str


def pull(
    card: ModelCard, owner: Owner, watcher: Watcher, client: httpx.Client, addresses: Sequence[str] | None = None
) -> Got:
    """Fetch a card's file, unless a good one is here.

    Args:
        card: the model.
        owner: is asked.
        watcher: looks on.
        client: from :func:`engines.store.http.open_client`.
        addresses: instead of the card's mirrors.

    Returns:
        Where it is.

    Raises:
        ModelError: its licence was not accepted, it cannot be fetched, it is not the file of the card, another process
            is fetching it, or the disk refuses. Nothing wrong or half is left under the file's name.
    """
    addresses = card.mirrors if addresses is None else addresses
    if (here := locate(card)) and here.parent == EMBEDDED:
        verify(here, card)
        return Got(card, here, "is part of the program")
    settle_licence(card, owner)
    if good := _good(card, watcher):
        return Got(card, good, "was already here")
    if not addresses and not card.pack:
        raise ModelError(f"model {card.name} has no address that it could be fetched from", how_to_get(card))
    path = user_folder() / card.file
    disk.make_folder(path.parent)
    with alone(path):
        if good := _good(card, watcher):  # another process may have brought it just before the lock
            return Got(card, good, "was already here")
        wanted = Wanted(path, card.size_bytes, known_files(card))
        if addresses:
            part = fetch(wanted, addresses, client, watcher)
        else:
            part = _from_pack(card, wanted)
        _seal(card, wanted, part, owner)
    return Got(card, path, "fetched")


def add(path: Path, owner: Owner, name: str = "", how: How = "copy") -> Got:
    """Take a file that its owner has.

    Args:
        path: the file.
        owner: is asked.
        name: of the card, where its owner knows it; else the file is recognised.
        how: "copy" it into the user's folder, "move" it there, or leave it and "link" to it.

    Returns:
        Where it is, and what it was taken for.

    Raises:
        ModelError: it is no model, a pickle, or fits no card or several; its licence was not accepted; its owner does
            not confirm it; or the disk refuses.
    """
    cards = [load_card(each) for each in ([name] if name else names())]
    found = recognise(path, cards)
    settle_licence(found.card, owner)
    unknown = found.sha256 not in known_files(found.card)
    if unknown and not owner.confirms(found.card, found.sha256, found.size_bytes):
        raise ModelError(f"{path} was not confirmed as {found.card.name}", "find out its sha256 from its maker")
    final = user_folder() / found.card.file
    disk.make_folder(final.parent)
    with alone(final):
        if not (final.exists() and final.samefile(path)):
            _bring(path.resolve(), final, found, how)
        if unknown:
            records.confirm(found.card, found.sha256, found.size_bytes)
    return Got(found.card, final, found.why)


def settle_licence(card: ModelCard, owner: Owner) -> None:
    """Have a licence that forbids commercial use accepted, once for all models under it.

    Raises:
        ModelError: it was not accepted, or nobody can be asked.
    """
    if records.is_accepted(card.licence):
        return
    if not owner.accepts(card, card.licence):
        raise ModelError(f"the licence of model {card.name} was not accepted", "use a model that is free to use")
    records.accept(card.licence)


def _good(card: ModelCard, watcher: Watcher) -> Path | None:
    """Find a file that is what the card says; a damaged one is told of, and will be replaced."""
    here = locate(card)
    if here is None:
        return None
    if not known_files(card):
        verify(here, card)  # raises: whether it is the right one is for its owner to say, not for a download
    try:
        verify(here, card)
    except ModelError as error:
        watcher.said(error.message)
        return None
    return here


def _from_pack(card: ModelCard, wanted: Wanted) -> Path:
    with unpacked(card.pack, wanted.path.parent) as folder:
        files = sorted(folder.rglob("*.onnx"))
        named = [file for file in files if file.name == card.file]
        right = named or [file for file in files if wanted.known and digest(file) in wanted.known]
        if not right:
            has = ", ".join(file.name for file in files) or "no model"
            raise ModelError(f"the pack {card.pack} has no {card.file}, only {has}", "correct file or pack of the card")
        disk.need_room(wanted.path, size_of(right[0]))
        with disk.plain_errors(wanted.part):
            shutil.copyfile(right[0], wanted.part)
    return wanted.part


def _seal(card: ModelCard, wanted: Wanted, part: Path, owner: Owner) -> None:
    """Prove a complete file, have it confirmed where nothing proves it, and give it its name."""
    sha256 = digest(part)
    if wanted.known and sha256 not in wanted.known:
        forget(wanted)
        raise ModelError(
            f"{card.file} arrived with sha256 {sha256}, its card says {' or '.join(wanted.known)}", "try again later"
        )
    size = size_of(part)
    if not wanted.known:
        if wrong := difference(card, contents.read(part)):
            forget(wanted)
            raise ModelError(f"what arrived is not {card.name}: {wrong}", "correct the card, or its mirrors")
        if not owner.confirms(card, sha256, size):
            forget(wanted)
            raise ModelError(f"{card.file} was not confirmed and is not kept", "find out its sha256 from its maker")
    disk.commit(part, wanted.path)
    forget(wanted)
    if not wanted.known:
        records.confirm(card, sha256, size)


def _bring(source: Path, final: Path, found: Recognised, how: How) -> None:
    """Put a recognised file under its final name."""
    wanted = Wanted(final, found.size_bytes, {found.sha256: found.size_bytes})
    forget(wanted)  # of an unfinished download, which is not needed any more
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
