"""Fetches a card's file into the user's folder, unless a good one is here; knows the order of the steps, not HTTP."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import httpx

from engines.card import ModelCard, load_card, names
from engines.errors import ModelError
from engines.folders import EMBEDDED, user_folder
from engines.store import contents, disk, how_to_get, locate, records
from engines.store.download import Wanted, Watcher, fetch, forget
from engines.store.lock import alone
from engines.store.owner import Got, Owner, settle_licence
from engines.store.pack import kept_by_insightface, unpacked
from engines.store.proof import digest, known_files, size_of, verify
from engines.store.recognise import difference


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
    if not known_files(card):
        owner.can_confirm(card)
    path = user_folder() / card.file
    disk.make_folder(path.parent)
    with alone(path):
        if good := _good(card, watcher):  # another process may have brought it just before the lock
            return Got(card, good, "was already here")
        wanted = Wanted(path, card.size_bytes, known_files(card))
        if addresses:
            fetch(wanted, addresses, client, watcher)
            _seal(card, wanted, owner)
        else:
            _take_from_pack(card, wanted, owner, watcher)
    return Got(card, path, "fetched")


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


def _seal(card: ModelCard, wanted: Wanted, owner: Owner) -> None:
    """Prove a complete part, have it confirmed where nothing proves it, and give it its name."""
    part, sha256, size_bytes = wanted.part, digest(wanted.part), size_of(wanted.part)
    if wanted.known and sha256 not in wanted.known:
        forget(wanted)
        raise ModelError(
            f"{card.file} arrived with sha256 {sha256}, its card says {' or '.join(wanted.known)}",
            "ask its maker whether the file was replaced",
        )
    if not wanted.known:
        if wrong := difference(card, contents.read(part)):
            forget(wanted)
            raise ModelError(f"what arrived is not {card.name}: {wrong}", "correct the card, or its mirrors")
        if not owner.confirms(card, sha256, size_bytes):
            forget(wanted)
            raise ModelError(f"{card.file} was not confirmed and is not kept", "find out its sha256 from its maker")
    disk.commit(part, wanted.path)
    forget(wanted)
    if not wanted.known:
        records.confirm(card, sha256, size_bytes)


def _take_from_pack(card: ModelCard, wanted: Wanted, owner: Owner, watcher: Watcher) -> None:
    """Take a file out of its pack: the one that InsightFace has already, else one that is fetched."""
    if source := _file_of(wanted, kept_by_insightface(card.pack)):
        _copy(source, wanted)
        _seal(card, wanted, owner)
        return
    with unpacked(card.pack, wanted.path.parent) as folder:
        source = _file_of(wanted, folder)
        if source is None:
            has = ", ".join(sorted(file.name for file in folder.rglob("*.onnx"))) or "no model"
            sha256 = f" with sha256 {' or '.join(wanted.known)}" if wanted.known else ""
            raise ModelError(
                f"the pack {card.pack} has no {card.file}{sha256}, only {has}",
                "correct file, sha256 or pack of the card",
            )
        _copy(source, wanted)
        _seal(card, wanted, owner)
        _take_others(card, folder, owner, watcher)


def _take_others(card: ModelCard, folder: Path, owner: Owner, watcher: Watcher) -> None:
    """Take whatever else of the pack is on a card and needs no question, so that it is not fetched twice.

    What was asked for is here by now, so that nothing that goes wrong with the others may end in an error.
    """
    for name in names():
        try:
            other = load_card(name)
            if other.pack == card.pack and other.file != card.file and not other.mirrors and locate(other) is None:
                _take_other(other, folder, owner, watcher)
        except ModelError as error:
            watcher.said(f"{name} was not taken out of the pack: {error.message}")


def _take_other(other: ModelCard, folder: Path, owner: Owner, watcher: Watcher) -> None:
    more = Wanted(user_folder() / other.file, other.size_bytes, known_files(other))
    if more.known and (source := _file_of(more, folder)):
        with alone(more.path):
            _copy(source, more)
            _seal(other, more, owner)
        watcher.said(f"the pack {other.pack} also had {other.name}: {more.path}")


def _file_of(wanted: Wanted, folder: Path) -> Path | None:
    """Find a wanted file in a folder and those in it: by its hash where one is known, else by its name."""
    files = sorted(folder.rglob("*.onnx"), key=lambda file: file.name != wanted.path.name)
    if wanted.known:
        return next((file for file in files if digest(file) in wanted.known), None)
    return next((file for file in files if file.name == wanted.path.name), None)


def _copy(source: Path, wanted: Wanted) -> None:
    disk.need_room(wanted.path, size_of(source))
    try:
        with disk.plain_errors(wanted.part):
            shutil.copyfile(source, wanted.part)
    except ModelError:
        forget(wanted)  # half a copy is no use: the next one starts again
        raise
