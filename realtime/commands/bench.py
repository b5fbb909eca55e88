"""``doppelcam bench``: measures this machine without a camera and shows the figures; knows no measurement."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

Many = list[str] | None


def bench(
    source: Annotated[
        Many, typer.Option("--source", "-s", metavar="FILE", help="Photo of the face to show; repeat for more photos.")
    ] = None,
    input_: Annotated[
        str, typer.Option("--input", "-i", metavar="FILE|demo", help="Where the pictures are from.")
    ] = "demo",
    size: Annotated[str, typer.Option(metavar="WxH", help="Size of the pictures.")] = "1280x720",
    frames: Annotated[int, typer.Option(min=60, help="Pictures in each of the three runs.")] = 600,
    face_height: Annotated[
        float, typer.Option(metavar="PX", min=0, help="Show the face at this height, forehead to chin; 0: as it is.")
    ] = 0.0,
    copies: Annotated[
        int, typer.Option("--faces", metavar="N", help="Show the picture 1, 4 or 9 times side by side.")
    ] = 1,
    versus: Annotated[
        str,
        typer.Option(
            "--vs", metavar="insightface", help="Time a swap without its network against that program's, and no more."
        ),
    ] = "",
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the figures as JSON.")] = None,
    profile: Annotated[str | None, typer.Option(metavar="NAME", help="Use a shipped or saved set of settings.")] = None,
    set_: Annotated[
        Many, typer.Option("--set", metavar="KEY=VALUE", help="Any setting of configs/default.toml; repeatable.")
    ] = None,
) -> None:
    """Measure the real loop on prepared pictures: free running, then paced at 30 and 60 pictures per second.

    The quality stays at its highest, so that what is measured is the work and not how it is avoided.
    """
    from rich.console import Console

    from realtime import clashes, config, figures
    from realtime.bench import Scene, measure

    if copies not in (1, 4, 9):
        raise typer.BadParameter(f"{copies} is not 1, 4 or 9", param_hint="--faces")
    if versus not in ("", "insightface"):
        raise typer.BadParameter(f"{versus!r} is not insightface", param_hint="--vs")
    if json_file is not None:
        figures.check_place(json_file, "--json")
    options = [config.flag("--input", "input.what", input_), config.flag("--size", "input.size", size)]
    options += [config.flag("--source", "source.photos", source)] if source else []
    still = config.from_set_options(["quality.adaptive=false", f"faces.which={'all' if copies > 1 else 'largest'}"])
    settings = config.load(profile, [still, config.from_set_options(set_ or []), *options])
    if settings.input.size is None:
        raise typer.BadParameter("a benchmark needs a size in numbers", param_hint="--size")
    clashes.refuse(settings, json_file)
    progress = Console(stderr=True, highlight=False)
    if versus:
        from realtime import versus as comparison

        measured = comparison.measure(settings, progress.print)
        shown = report_versus(measured)
    else:
        measured = measure(settings, Scene(settings.input.size, frames, face_height, copies), progress.print)
        shown = report(measured)
    Console(highlight=False).print(shown)
    if json_file is not None:
        figures.write(json_file, "--json", measured)


def report(figures: dict[str, Any]) -> RenderableType:
    """Lay the figures out: a table of times, then the rest in words."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from realtime.status import drops_text

    table = Table("milliseconds", box=None, padding=(0, 2))
    for name in ("p50", "p95", "p99"):
        table.add_column(name, justify="right")
    rows = {
        **figures["steps"],
        "compute, free running": figures["compute_ms"],
        **{f"compute, paced at {rate}": row for rate, row in figures["compute_paced_ms"].items()},
        **{f"capture to output, paced at {rate}": row for rate, row in figures["latency_ms"].items()},
    }
    for name, row in rows.items():
        table.add_row(name, *(f"{row[key]:.2f}" for key in ("p50", "p95", "p99")))
    drops = "; ".join(f"{run}: {drops_text(causes)}" for run, causes in figures["drops"].items())
    return Group(
        table,
        Text(f"\n{figures['fps_free']:.0f} pictures per second, free running; faces in each: {figures['faces']:g}"),
        Text(f"{drops}"),
        Text(f"{figures['peak_rss_mb']:.0f} MB at most"),
        Text(f"{figures['size']}, {figures['engine']} on {figures['device']}; {figures['machine']}"),
    )


def report_versus(figures: dict[str, Any]) -> RenderableType:
    """Lay a comparison out: a table of scenes, then how it was made."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    threads = figures["threads"]
    table = Table("ms, without network", box=None, padding=(0, 1))
    for name in ("ours", "theirs", "times", "processor time", "alike"):
        table.add_column(name, justify="right")
    for row in figures["vs"]:
        table.add_row(
            f"{row['size']}, face {row['face_px']}",
            f"{row['ours_ms']:.2f}",
            f"{row['theirs_ms']:.1f}",
            f"{row['ratio']:.0f}",
            f"{row['cpu']['ours_ms']:.2f} / {row['cpu']['theirs_ms']:.1f}: {row['cpu']['ratio']:.0f}",
            f"{row['psnr_db']:.0f} dB",
        )
    return Group(
        table,
        Text(f"\nmedians of {figures['runs']} rounds; OpenCV threads: {threads['ours']}, theirs {threads['theirs']}"),
        Text(figures["machine"]),
    )
