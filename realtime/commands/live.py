"""``doppelcam live`` and ``run_live.py``: from options to settings to a run; knows no thread and no device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from realtime.config import Layer

Text = str | None
Many = list[str] | None


def live(
    source: Annotated[
        Many, typer.Option("--source", "-s", metavar="FILE", help="Photo of the face to show; repeat for more photos.")
    ] = None,
    input_: Annotated[
        Text, typer.Option("--input", "-i", metavar="WHERE", help="auto, demo, camera number, file, stream, screen.")
    ] = None,
    output: Annotated[
        Many,
        typer.Option("--output", "-o", metavar="WHERE", help="auto, virtualcam, preview, webrtc, FILE.mp4, ..."),
    ] = None,
    model: Annotated[
        Text, typer.Option(metavar="NAME", help="What makes the face: mesh, or a model of `doppelcam models list`.")
    ] = None,
    enhance: Annotated[Text, typer.Option(metavar="NAME", help="Model that makes the new face finer.")] = None,
    only: Annotated[
        Many, typer.Option(metavar="FILE", help="Swap only the person in this photo; repeat for more people.")
    ] = None,
    map_: Annotated[
        Many,
        typer.Option("--map", metavar="THEM=ME", help="Put the face of photo ME on the person of THEM; repeatable."),
    ] = None,
    faces: Annotated[Text, typer.Option(metavar="WHICH", help="largest, all, or a number of faces.")] = None,
    on_lost: Annotated[
        Text, typer.Option(metavar="WHAT", help="When a face is lost, show: blur, card, hold or raw.")
    ] = None,
    size: Annotated[Text, typer.Option(metavar="WxH", help="Size of the incoming pictures.")] = None,
    fps: Annotated[Text, typer.Option(metavar="N", help="Incoming pictures per second.")] = None,
    duration: Annotated[Text, typer.Option(metavar="S", help="Stop after so many seconds.")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", metavar=" ", help="A recording may replace a file.")
    ] = False,
    stats: Annotated[Text, typer.Option(metavar="FILE", help="Write the figures of the run as JSON.")] = None,
    profile: Annotated[Text, typer.Option(metavar="NAME", help="Use a shipped or saved set of settings.")] = None,
    save: Annotated[Text, typer.Option(metavar="NAME", help="Save the settings of this run as a profile.")] = None,
    set_: Annotated[
        Many, typer.Option("--set", metavar="KEY=VALUE", help="Any setting of configs/default.toml; repeatable.")
    ] = None,
) -> None:
    """Show another face on the person in view.

    Without options the last run is repeated; the first time, the camera and a built-in face are used. Ctrl-C ends it.
    """
    from realtime import config, last_run
    from realtime.session import play
    from realtime.terminal import Terminal

    options = {
        "--source source.photos": source or None,
        "--input input.what": input_,
        "--output output.to": output or None,
        "--model swap.engine": model,
        "--enhance enhance.model": enhance,
        "--only faces.only": only or None,
        "--map faces.map": map_ or None,
        "--faces faces.which": faces,
        "--on-lost faces.on_lost": on_lost,
        "--size input.size": size,
        "--fps input.fps": fps and config.read_value(fps),
        "--duration run.duration_s": duration and config.read_value(duration),
        "--overwrite output.overwrite": overwrite or None,
        "--stats run.stats_file": stats,
    }
    remembered, warnings = last_run.recall(new_face=bool(source or only or map_))
    layers = [config.from_set_options(set_ or []), *flags(options)]
    settings = config.load(profile, layers, remembered)
    terminal = Terminal()
    for warning in warnings:
        terminal.note(warning)
    again = last_run.repeated(settings, remembered, {key for layer in layers for key in layer.values})
    notes = [("as last time", ", ".join(again))] if again else []
    if save is not None:
        notes.append(("saved", f"profile {save}: {config.save_profile(save, last_run.with_full_paths(settings))}"))
    play(settings, terminal, notes)


def flags(options: Mapping[str, object]) -> list[Layer]:
    """Make a layer of each option that was given; a key is the option and the setting that it stands for."""
    from realtime.config import flag

    pairs = ((names.partition(" "), value) for names, value in options.items() if value is not None)
    return [flag(option, key, value) for (option, _, key), value in pairs]
