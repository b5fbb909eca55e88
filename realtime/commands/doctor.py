"""``doppelcam doctor``: shows what this machine can do and how to mend what it cannot; knows no check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from realtime.doctor import Check, can_run, examine

if TYPE_CHECKING:
    from rich.console import RenderableType

COLOURS = {"ok": "green", "missing": "yellow", "broken": "red"}


def doctor(
    as_json: Annotated[bool, typer.Option("--json", metavar=" ", help="Print JSON instead of a table.")] = False,
) -> int:
    """Say what this machine can do, and how to fix what it cannot."""
    from dataclasses import asdict

    from rich.console import Console

    checks = list(examine())
    if as_json:
        Console().print_json(data={"can_run": can_run(checks), "checks": [asdict(check) for check in checks]})
    else:
        Console().print(report(checks), soft_wrap=True)
    return 0 if can_run(checks) else 1


def report(checks: list[Check]) -> RenderableType:
    """Lay the findings out: a table, the fixes, the verdict. Packages that are all well take one row."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    packages = [check for check in checks if check.area == "packages"]
    if packages and all(check.state == "ok" for check in packages):
        place = checks.index(packages[0])
        summary = Check("packages", "all needed", "ok", f"{len(packages)} installed and loading")
        checks = [*checks[:place], summary, *checks[place + len(packages) :]]
    table = Table.grid(padding=(0, 2))
    area = ""
    for check in checks:
        heading = check.area if check.area != area else ""
        area = check.area
        state = Text(check.state, style=COLOURS[check.state])
        table.add_row(Text(heading, style="dim"), check.name, state, Text(check.found, overflow="fold"))
    # Below the table and unbroken, so that a command can be copied; what mends several things is said once.
    cures: dict[str, list[Check]] = {}
    for check in checks:
        if check.fix:
            cures.setdefault(check.fix, []).append(check)
    fixes = [
        Text(f"{', '.join(check.name for check in ill)}: {fix}", COLOURS[ill[0].state], no_wrap=True, overflow="ignore")
        for fix, ill in cures.items()
    ]
    if can_run(checks):
        verdict = Text("The main job runs on this machine.", style="green")
    else:
        verdict = Text("The main job cannot run before what is broken above is fixed.", style="red")
    return Group(table, Text(), *((Text("How to fix it", style="bold"), *fixes, Text()) if fixes else ()), verdict)
