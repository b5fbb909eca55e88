"""Fetches one file from a list of addresses, goes on where an earlier try ended, and proves the result.

Knows bytes, sizes and hashes; knows neither cards nor people. The half file is ``<name>.part``, and beside it lies a
note of where it came from; neither is ever taken for the file.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import shorten
from typing import Protocol

import httpx

from engines.errors import ModelError
from engines.store import disk
from engines.store.http import Answer, CutError, MirrorError, headers, read_answer
from engines.store.proof import digest, may_have_size

TRIES = 4
"""How often a server is asked again when nothing more came."""

MOST_LETTERS = 250
"""Of the error that ends a failed download."""

PAUSE_S = 1.0
"""Before it is asked again."""


class Watcher(Protocol):
    """Whoever looks on."""

    def moved(self, done_bytes: int, total_bytes: int) -> None:
        """Hear how much is here, of how much; a total of 0 is unknown."""

    def said(self, text: str) -> None:
        """Hear what happened: a mirror failed, a transfer starts again."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be fetched.

    Attributes:
        path: where it will lie; its folder exists and the caller holds its lock.
        size_bytes: of the file; 0 where nobody said.
        known: sha256 -> size of every file that will do; empty where any will, because its owner is asked afterwards.
    """

    path: Path
    size_bytes: int
    known: Mapping[str, int]

    @property
    def part(self) -> Path:
        """Where it lies until it is complete and proven."""
        return self.path.with_name(f"{self.path.name}.part")

    @property
    def note(self) -> Path:
        """Where is noted what the part came from."""
        return self.path.with_name(f"{self.path.name}.part.json")


def fetch(
    wanted: Wanted,
    addresses: Sequence[str],
    client: httpx.Client,
    watcher: Watcher,
    pause: Callable[[float], None] = time.sleep,
) -> Path:
    """Fetch a file.

    Args:
        wanted: the file.
        addresses: where it may be had, best first; at least one.
        client: asks for it.
        watcher: looks on.
        pause: waits so many seconds before the next try.

    Returns:
        The complete part, with a known size and hash where any is known. The caller gives it its name.

    Raises:
        ModelError: no address gave it, each host is named with its first reason; or the disk refuses. What came so
            far stays for the next call, unless it was wrong.
    """
    reasons: dict[str, str] = {}
    terse = _Terse(watcher)
    for address in addresses:
        try:
            _Transfer(wanted, address, client, terse, pause).prove()
        except MirrorError as error:
            reasons.setdefault(_host(address), str(error))
            terse.said(f"{_host(address)} {error}")
        else:
            return wanted.part
    raise ModelError(
        _failed(wanted.path.name, reasons),
        "check the network (a proxy goes into HTTPS_PROXY) and try again: it goes on where it stopped; or fetch "
        f"{addresses[0]} with a browser, then: doppelcam models add FILE",
    )


def forget(wanted: Wanted) -> None:
    """Throw away what came so far.

    Raises:
        ModelError: the disk refuses.
    """
    with disk.plain_errors(wanted.part):
        wanted.part.unlink(missing_ok=True)
        wanted.note.unlink(missing_ok=True)


@dataclass(slots=True)
class _Terse:
    """A ``Watcher`` that passes on what is new: who is told the same again and again reads nothing."""

    watcher: Watcher
    told: set[str] = field(default_factory=set)

    def moved(self, done_bytes: int, total_bytes: int) -> None:
        self.watcher.moved(done_bytes, total_bytes)

    def said(self, text: str) -> None:
        if text not in self.told:
            self.told.add(text)
            self.watcher.said(text)


@dataclass(slots=True)
class _Transfer:
    """One file from one address."""

    wanted: Wanted
    address: str
    client: httpx.Client
    watcher: Watcher
    pause: Callable[[float], None]

    def prove(self) -> None:
        """Fetch all of it and compare it with what is known; a wrong one is thrown away, nothing mends it."""
        resumed = self._here() > 0
        self._finish()
        if not self.wanted.known or (found := digest(self.wanted.part)) in self.wanted.known:
            return
        forget(self.wanted)
        if not resumed:
            raise MirrorError(f"sent a file with sha256 {found}, which its card does not name")
        self.watcher.said("what was here before does not belong to this file: starting again")
        self.prove()

    def _finish(self) -> None:
        """Ask until all is here; a server that cuts is asked again as long as each try brings more than ever before."""
        most, left = self._here(), TRIES
        while True:
            try:
                return self._once()
            except CutError as cut:
                left = TRIES if self._here() > most else left - 1
                most = max(most, self._here())
                if not left:
                    raise MirrorError(str(cut)) from cut
                self.watcher.said(f"{_host(self.address)} {cut}; trying again")
                self.pause(PAUSE_S)
            except (httpx.RequestError, httpx.InvalidURL) as error:
                raise MirrorError(_reason(error)) from error

    def _once(self) -> None:
        here, validator = self._here(), self._validator()
        if here and here == self.wanted.size_bytes:
            return  # an earlier run ended before it could prove the file
        if not validator and not self.wanted.known:
            here = 0  # the bytes here may be another file's, and no hash would tell
        try:
            with self.client.stream("GET", self.address, headers=headers(here, validator if here else "")) as response:
                answer = read_answer(response, here)
                if here and answer.start == answer.total_bytes == here:
                    return
                self._check(answer, here)
                self._receive(response, answer)
        except httpx.TransportError as error:
            raise CutError(_reason(error)) from error

    def _check(self, answer: Answer, here: int) -> None:
        """Decide whether this answer can lead to the file."""
        total = answer.total_bytes
        if total and not may_have_size(self.wanted.known, total):
            raise MirrorError(f"has {total} bytes, its card says {self._sizes()}")
        if answer.start not in (0, here) or (here and total and here > total):
            forget(self.wanted)
            raise CutError("has another part of the file than was asked for")
        if here and not answer.start:
            self.watcher.said("the server does not go on where it stopped: starting again")
        disk.need_room(self.wanted.path, max(0, (total or self.wanted.size_bytes) - answer.start))

    def _receive(self, response: httpx.Response, answer: Answer) -> None:
        done, total = answer.start, answer.total_bytes
        limit = total or max(self.wanted.known.values(), default=0)
        with disk.plain_errors(self.wanted.part), self.wanted.part.open("ab" if done else "wb") as part:
            self._note(answer.validator)
            self.watcher.moved(done, total or self.wanted.size_bytes)
            for chunk in response.iter_bytes():
                part.write(chunk)
                done += len(chunk)
                if limit and done > limit:
                    break
                self.watcher.moved(done, total or self.wanted.size_bytes)
        if limit and done > limit:
            forget(self.wanted)
            raise MirrorError(f"sends more than the {limit} bytes of the file")
        if (total and done < total) or not may_have_size(self.wanted.known, done):
            raise CutError(f"stopped after {done} of {total or self._sizes()} bytes")

    def _here(self) -> int:
        try:
            return self.wanted.part.stat().st_size
        except FileNotFoundError:
            return 0

    def _sizes(self) -> str:
        return " or ".join(str(size) for size in sorted(set(self.wanted.known.values())))

    def _note(self, validator: str) -> None:
        self.wanted.note.write_text(json.dumps({"address": self.address, "validator": validator}), encoding="utf-8")

    def _validator(self) -> str:
        """Read what names the state of the file that the part is from; empty where that was another address's."""
        try:
            note = json.loads(self.wanted.note.read_bytes())
        except (OSError, ValueError):
            return ""  # a note that is lost or torn costs a restart, nothing else
        same = isinstance(note, dict) and note.get("address") == self.address
        return str(note.get("validator", "")) if same else ""


def _failed(name: str, reasons: Mapping[str, str]) -> str:
    """Say on few lines who did not give a file; the whole reasons were told when they came up."""
    head = f"{name} could not be fetched: "
    room = (MOST_LETTERS - len(head)) // len(reasons) - len("; ")
    return head + "; ".join(shorten(f"{host} {reason}", room, placeholder=" ...") for host, reason in reasons.items())


def _host(address: str) -> str:
    return httpx.URL(address).host


def _reason(error: Exception) -> str:
    said = str(error) or type(error).__name__
    return f"cannot be reached: {said}" if isinstance(error, httpx.ConnectError) else f"failed: {said}"
