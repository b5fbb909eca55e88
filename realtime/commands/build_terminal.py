"""Shows how far a build is on the terminal: a bar, TensorRT's phases under it, the time; knows no plan."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

if TYPE_CHECKING:
    from engines.building import Phase
    from engines.building import Progress as Step

_STEP = 0.1  # of the whole, between two lines where there is no terminal
_MOST_PHASES = 4
_INDENT = "  "


class BuildTerminal:
    """A context: at its end the bar goes. All goes to the error output; the result is the command's to print."""

    def __init__(self, what: str, console: Console | None = None) -> None:
        """Show nothing yet.

        Args:
            what: is built, for people.
            console: to show it on.
        """
        self._what, self._console = what, console or Console(stderr=True)
        self._stage, self._next_line = "", 0.0
        self._warned: set[str] = set()
        self._bar = _bar(self._console)
        self._task: TaskID = self._bar.add_task(what, total=1.0, stage="starting")
        self._phases: tuple[Phase, ...] = ()
        self._live = Live(get_renderable=self.shown, console=self._console, transient=True, refresh_per_second=4)

    def __enter__(self) -> BuildTerminal:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._live.stop()
        if kind is KeyboardInterrupt:
            self._say(f"stopped; nothing half is left. Build it when you like: doppelcam models build {self._what}")

    def moved(self, now: Step) -> None:
        """Show how far the build is."""
        self._phases = now.phases
        self._bar.update(self._task, completed=now.share, stage=now.stage)
        if not self._console.is_terminal and (now.stage != self._stage or now.share >= self._next_line):
            self._next_line = now.share + _STEP
            self._say(f"{self._what}: {now.share:.0%}, {now.stage}")
        self._stage = now.stage

    def warned(self, text: str) -> None:
        """Show what TensorRT warns of, each warning once."""
        if text not in self._warned:
            self._warned.add(text)
            self._say(f"TensorRT: {text}", "dim")

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(text, style=style, soft_wrap=True, markup=False, highlight=False)

    def shown(self) -> RenderableType:
        """Lay out what is shown now."""
        rows = [
            Text(
                f"{_INDENT * (depth + 1)}{phase.done}/{phase.steps}  {phase.name}",
                style="dim",
                no_wrap=True,
                overflow="ellipsis",
            )
            for depth, phase in enumerate(self._phases[:_MOST_PHASES])
        ]
        return Group(self._bar, *rows)


def _bar(console: Console) -> Progress:
    def whole() -> Column:
        return Column(no_wrap=True)

    return Progress(  # only the bar gives way on a narrow terminal
        TextColumn("{task.description}", table_column=whole()),
        TextColumn("{task.fields[stage]}", table_column=whole()),
        BarColumn(bar_width=None, table_column=Column(ratio=1)),
        TaskProgressColumn(table_column=whole()),
        TimeElapsedColumn(table_column=whole()),
        console=console,
        expand=True,
        auto_refresh=False,
    )
