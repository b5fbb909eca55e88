"""What may be changed while a run goes on, as whoever steers it sees it; carries nothing out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from realtime.budget import Budget
from realtime.capture import OpenSource
from realtime.emitter import Card
from realtime.errors import LiveError
from realtime.outputs import OpenSink

Told = Callable[[LiveError | None], None]
"""Told that an order was carried out, or why it was not. In any thread."""


class Controls(Protocol):
    """The controls of one run. From any thread; none of them waits for a device."""

    def add_sink(self, open_sink: OpenSink, told: Told, *, aside: bool) -> None:
        """Open one more output, of another name than those that are open.

        Args:
            open_sink: opens it.
            told: see ``Told``.
            aside: in a thread of its own, because the answer of a server may take seconds; else in the calling thread
                of ``run``, which windows belong to.
        """

    def remove_sink(self, name: str, told: Told) -> None:
        """Close an output, or forget one that was given up. The last one stays."""

    def change_source(self, open_source: OpenSource, told: Told) -> None:
        """Take the pictures from another live source; where it cannot be opened, the one before is opened again."""

    def change_budget(self, budget: Budget) -> None:
        """Let another one choose the quality, at once."""

    def cover(self, card: Card | None) -> None:
        """Show a card instead of every picture on every output, at once and until ``None`` is said."""

    def sinks(self) -> tuple[tuple[str, str], ...]:
        """The name of each output, and why it was given up, empty while it works."""
