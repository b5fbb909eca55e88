"""The table of ``doppelcam models list``; knows its layout, not what a state means."""

from __future__ import annotations

import os
from itertools import groupby
from typing import TYPE_CHECKING

import typer

from realtime.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.table import Table
    from rich.text import Text

    from engines.card import ModelCard
    from engines.store.state import State

    Row = tuple[ModelCard, State, Path | None]

COLOURS = {
    "embedded": "green",
    "yours": "green",
    "yours, unpublished": "yellow",
    "offline": "green",
    "damaged": "red",
    "not confirmed": "yellow",
    "not accepted": "yellow",
}
SHORT: dict[State, str] = {"yours, unpublished": "yours*"}
NOTE = "* confirmed by you, not a published file"
PLAN, PLAN_NOTE = " +plan", "+plan: a TensorRT plan has been built (doppelcam models build)"
HELP = "pull NAME fetches a model, add FILE takes one that you have, verify checks them."
PIPE_WIDTH = 160  # columns where there is no terminal to ask: nothing is cut there that a script may want


def show(family: str, *, as_json: bool, here: bool) -> int:
    """Print the models; cards that cannot be read are named on the error output.

    Args:
        family: only this one; empty for all.
        as_json: instead of a table.
        here: only models whose file is on this machine.

    Returns:
        Exit code: 1 where a card cannot be read.

    Raises:
        ModelError: there is no such family.
    """
    from rich.console import Console

    rows, errors = _rows()
    for error in errors:
        typer.echo(f"error: {error.message}\ntry: {error.hint}", err=True)
    families = sorted({card.family for card, _, _ in rows})
    if family and family not in families:
        raise ModelError(f"no model is of family {family!r}", f"use one of: {', '.join(families)}")
    rows = [row for row in rows if family in ("", row[0].family) and (row[2] or not here)]
    if as_json:
        Console().print_json(data={"models": [_as_data(row) for row in rows]})
    else:
        console = Console(width=None if Console().is_terminal or "COLUMNS" in os.environ else PIPE_WIDTH)
        console.print(table(rows))
        if any(state in SHORT for _, state, _ in rows):
            console.print(f"\n{NOTE}", soft_wrap=True)
        if any(_has_plan(card) for card, _, _ in rows):
            console.print(f"\n{PLAN_NOTE}", soft_wrap=True)
        console.print(f"\n{HELP}", soft_wrap=True)
    return 1 if errors else 0


def table(rows: Sequence[Row]) -> Table:
    """Lay the models out, each family under its name."""
    from rich.table import Table
    from rich.text import Text

    from engines.store.proof import size_of
    from realtime.families import role_of

    # Only the licence gives way on a narrow terminal: all of the others is needed to type the next command.
    # "profit" and not "commercial", so that the licence has room on 80 columns.
    out = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", expand=True)
    out.add_column("family and model", no_wrap=True)
    out.add_column("size", justify="right", no_wrap=True)
    out.add_column("state", no_wrap=True)
    out.add_column("profit", no_wrap=True)
    out.add_column("licence", overflow="ellipsis", no_wrap=True, ratio=1)
    for family, members in groupby(rows, key=lambda row: row[0].family):
        out.add_row(Text.assemble((family, "bold cyan"), f" {role_of(family)}"))
        for card, state, path in members:
            use = Text("yes") if card.licence.commercial_use else Text("no", style="yellow")
            out.add_row(
                f"  {card.name}",
                _size(size_of(path) if path else card.size_bytes),
                _state(card, state),
                use,
                Text(_short(card.licence.name)),
            )
    return out


def _rows() -> tuple[list[Row], list[ModelError]]:
    from engines.card import load_card, names
    from engines.store.state import state

    rows, errors = [], []
    for name in names():
        try:
            card = load_card(name)
        except ModelError as error:
            errors.append(error)
        else:
            rows.append((card, *state(card)))
    return sorted(rows, key=lambda row: (row[0].family, row[0].name)), errors


def _state(card: ModelCard, state: State) -> Text:
    from rich.text import Text

    shown = Text(SHORT.get(state, state), style=COLOURS.get(state, "dim"))
    return shown.append(PLAN) if _has_plan(card) else shown


def _has_plan(card: ModelCard) -> bool:
    from engines.plan import built_plans

    return bool(built_plans(card.name))


def _as_data(row: Row) -> dict[str, object]:
    from engines.plan import built_plans

    card, state, path = row
    return {
        "name": card.name,
        "family": card.family,
        "file": card.file,
        "size_bytes": card.size_bytes,
        "sha256": card.sha256,
        "licence": card.licence.name,
        "holder": card.licence.holder,
        "terms": card.licence.terms,
        "commercial_use": card.licence.commercial_use,
        "state": state,
        "path": str(path) if path else None,
        "plans": [str(plan.path) for plan in built_plans(card.name)],
    }


def _short(licence: str) -> str:
    """Say of a licence what fits beside its model; ``--json`` has all of it."""
    if "non-commercial" in licence:
        return "non-commercial"
    name, more, _ = licence.partition(" (")
    return f"{name} (...)" if more else name


def _size(size_bytes: int) -> str:
    if not size_bytes:
        return "?"
    if size_bytes >= 1e9:
        return f"{size_bytes / 1e9:.2f} GB"
    return f"{size_bytes / 1e6:.0f} MB" if size_bytes >= 1e7 else f"{size_bytes / 1e6:.1f} MB"
