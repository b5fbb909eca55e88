"""The one table of what was measured on a GPU; knows lines and limits, nothing that is measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Line(NamedTuple):
    """One measurement.

    Attributes:
        what: for people.
        figure: with its unit.
        limit: that it must keep, for people; empty where it is only told.
        kept: whether it does.
    """

    what: str
    figure: str
    limit: str = ""
    kept: bool = True


@dataclass(slots=True)
class Table:
    """Lines in the order in which they were measured."""

    lines: list[Line] = field(default_factory=list)

    def tell(self, what: str, figure: str) -> None:
        """Note a figure."""
        self.lines.append(Line(what, figure))

    def demand(self, what: str, value: float, most: float, unit: str) -> None:
        """Note a figure that may be so large at most; the line stays when it is not.

        Raises:
            AssertionError: it is larger, or no number.
        """
        line = Line(what, f"{value:.2f} {unit}".rstrip(), f"<= {most:.4g} {unit}".rstrip(), value <= most)
        self.lines.append(line)
        assert line.kept, f"{what}: {line.figure}, not {line.limit}"

    def text(self) -> str:
        """All of it, in columns."""
        names = max((len(line.what) for line in self.lines), default=0)
        held = [line for line in self.lines if line.limit]  # what is only told may be long
        figures = max((len(line.figure) for line in held), default=0)
        limits = max((len(line.limit) for line in held), default=0)
        return "\n".join(
            f"{line.what:<{names}}  {line.figure:<{figures}}  {line.limit:<{limits}}  {_verdict(line)}".rstrip()
            for line in self.lines
        )


def _verdict(line: Line) -> str:
    if not line.limit:
        return ""
    return "ok" if line.kept else "FAILS"
