"""Shows a download and asks the questions of ``doppelcam models`` on the terminal; knows no file and no network."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Column

from engines.card import NOT_STATED
from engines.store.proof import published
from realtime.errors import ModelError

if TYPE_CHECKING:
    from engines.card import Licence, ModelCard

_STEP = 0.1  # of the whole, between two lines where there is no terminal
_STEP_BYTES = 50_000_000  # where the whole is not known


class Terminal:
    """The person at the terminal: an ``Owner`` and a ``Watcher``. A context: at its end the bar goes.

    All goes to the error output; the result is the command's to print.
    """

    def __init__(self, what: str, accept_licence: bool, yes: bool) -> None:
        """Show nothing yet.

        Args:
            what: is fetched, for people.
            accept_licence: the answer to that question, given beforehand.
            yes: likewise, whether a file that nobody has published a hash of is the right one.
        """
        self._console = Console(stderr=True)
        self._what, self._accept_licence, self._yes = what, accept_licence, yes
        self._bar: Progress | None = None
        self._next_line_bytes = 0.0

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._hide_bar()

    def accepts(self, card: ModelCard, licence: Licence) -> bool:
        """See :class:`engines.store.owner.Owner`."""
        self._hide_bar()
        if licence.name == NOT_STATED:
            self.said(f"{card.name}: its maker states no licence ({licence.holder}).")
            self.said("Without one you may do no more than the law allows.")
        else:
            self.said(f"{card.name} is under the licence {licence.name}, given by {licence.holder}.")
            self.said("It forbids commercial use.")
        if licence.terms.startswith("https://"):
            self.said(f"Its terms: {licence.terms}")
        if self._accept_licence:
            return True
        _need_person(f"the licence of model {card.name} has to be accepted", "add --accept-licence if you accept it")
        return typer.confirm("Do you accept that?", err=True)

    def can_confirm(self, card: ModelCard) -> None:
        """See :class:`engines.store.owner.Owner`."""
        if not self._yes:
            _need_person(f"the file for {card.name} has to be confirmed", "add --yes if you trust where it is from")

    def confirms(self, card: ModelCard, sha256: str, size_bytes: int) -> bool:
        """See :class:`engines.store.owner.Owner`."""
        self._hide_bar()
        self.said(_unproven(card, size_bytes))
        self.said(f"sha256 {sha256}, {size_bytes} bytes")
        if self._yes:
            return True
        self.can_confirm(card)
        return typer.confirm("Do you trust where it is from? From now on exactly this file is demanded", err=True)

    def said(self, text: str) -> None:
        """See :class:`engines.store.download.Watcher`."""
        console = self._bar.console if self._bar else self._console
        console.print(text, soft_wrap=True, markup=False, highlight=False)

    def moved(self, done_bytes: int, total_bytes: int) -> None:
        """See :class:`engines.store.download.Watcher`."""
        if not self._console.is_terminal:
            self._line(done_bytes, total_bytes)
            return
        if self._bar is None:
            self._bar = _bar(self._console)
            self._bar.add_task(self._what, total=total_bytes or None, completed=done_bytes)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=done_bytes, total=total_bytes or None)

    def _line(self, done: int, total: int) -> None:
        if done < self._next_line_bytes and done != total:
            return
        step = total * _STEP if total else _STEP_BYTES
        self._next_line_bytes = done + step
        share = f" of {total / 1e6:.1f} MB, {done / total:.0%}" if total else " MB"
        self.said(f"{self._what}: {done / 1e6:.1f}{share}")

    def _hide_bar(self) -> None:
        if self._bar:
            self._bar.stop()
            self._bar = None


def _unproven(card: ModelCard, size_bytes: int) -> str:
    """Say why only its owner can tell whether a file is the right one."""
    files = published(card)
    if not files:
        return f"Nobody has published the sha256 of {card.name}; this file has its tensors, no more is known of it."
    whose = f"NONE of the {len(files)} published files" if len(files) > 1 else "NOT the published file"
    expected = " or ".join(dict.fromkeys(f"{size / 1e6:.1f} MB" for size in files.values() if size))
    sizes = f"{expected} expected, " if expected else ""
    return f"This is {whose} of {card.name} ({sizes}{size_bytes / 1e6:.1f} MB given); it only has the same tensors."


def _need_person(what: str, hint: str) -> None:
    if not sys.stdin.isatty():
        raise ModelError(f"{what}, and there is no terminal to ask on", hint)


def _bar(console: Console) -> Progress:
    def whole() -> Column:
        return Column(no_wrap=True)

    return Progress(  # only the bar gives way on a narrow terminal
        TextColumn("{task.description}", table_column=whole()),
        BarColumn(bar_width=None, table_column=Column(ratio=1)),
        DownloadColumn(table_column=whole()),
        TransferSpeedColumn(table_column=whole()),
        TimeRemainingColumn(table_column=whole()),
        console=console,
        expand=True,
    )
