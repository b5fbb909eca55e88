"""Shows a run on stderr: banner, notes, a line that stays in place or plain lines; decides nothing about the run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from realtime.meter import Stats
from realtime.status import closing_line, progress_text, status_line

IN_PLACE_S = 0.25
"""Seconds between two looks at the figures where a line is drawn over: faster cannot be read."""
PLAIN_S = 10.0
"""The same where each look becomes one more line of a log."""

Look = Callable[[], tuple[Stats, int]]
"""Gives the figures of this moment and the number of faces that are swapped."""


def banner(facts: Sequence[tuple[str, str]]) -> RenderableType:
    """Lay out what really runs: label and text, several texts of one label below each other."""
    table = Table.grid(padding=(0, 2))
    last = ""
    for label, text in facts:
        table.add_row(Text("" if label == last else label, style="dim"), Text(text))
        last = label
    return table


class Terminal:
    """The person's view of one run. ``note`` may be called from any thread, everything else from one.

    Args:
        console: where to; stderr by default, so that stdout stays free.
        clock: seconds.
    """

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._clock = clock
        self._in_place: Live | None = None
        self._bar: _Bar | None = None
        self._next_s = 0.0

    def note(self, text: str) -> None:
        """Say something once; it stays above the line that changes."""
        self._console.print(Text(text), soft_wrap=True)

    def banner(self, facts: Sequence[tuple[str, str]]) -> None:
        """Show what really runs."""
        self._console.print(banner(facts))

    def start(self, conversion_frames: int | None = None) -> None:
        """Begin the line that changes.

        Args:
            conversion_frames: for a file that is converted, where progress counts and latency does not: pictures until
                the end, 0 when nobody knows. ``None`` for a live run.
        """
        self._next_s = self._clock() + (0.0 if self._console.is_terminal else PLAIN_S)
        if conversion_frames is not None:
            self._bar = _Bar(conversion_frames)
        if self._console.is_terminal:
            self._in_place = Live(console=self._console, auto_refresh=False, transient=True)
            self._in_place.start()

    def tick(self, look: Look) -> None:
        """Show the figures if it is time for that; cheap if it is not."""
        if self._clock() < self._next_s:
            return
        stats, faces = look()
        if self._in_place is None:
            self._next_s = self._clock() + PLAIN_S
            self.note(progress_text(stats, self._bar.total) if self._bar else status_line(stats, faces))
        else:
            self._next_s = self._clock() + IN_PLACE_S
            words = Text(status_line(stats, faces), no_wrap=True, overflow="ellipsis")
            line = self._bar.at(stats) if self._bar else words
            self._in_place.update(line, refresh=True)

    def end(self, stats: Stats | None) -> None:
        """Take the changing line away and sum up. Safe to call at any time.

        Args:
            stats: of the whole run; ``None`` when there was none.
        """
        if self._in_place is not None:
            self._in_place.stop()
            self._in_place = None
        if stats is not None and stats.frames:
            self.note(closing_line(stats, live=self._bar is None))


class _Bar:
    """Progress of a conversion."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._progress = Progress(
            BarColumn(), TextColumn("{task.description}"), TextColumn("left"), TimeRemainingColumn(compact=True)
        )
        self._task = self._progress.add_task("", total=total or None)

    def at(self, stats: Stats) -> RenderableType:
        self._progress.update(self._task, completed=stats.frames, description=progress_text(stats, self.total))
        return self._progress.get_renderable()
