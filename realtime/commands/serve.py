"""``doppelcam serve`` and ``doppelcam token``: a run that a browser steers, and who may; knows no server."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from realtime.commands.live import Many, Text, flags


def serve(
    source: Annotated[
        Many, typer.Option("--source", "-s", metavar="FILE", help="Photo of the face to show; repeat for more photos.")
    ] = None,
    input_: Annotated[
        str, typer.Option("--input", "-i", metavar="WHERE", help="browser, whip (OBS), or anything that `live` takes.")
    ] = "browser",
    output: Annotated[
        Many, typer.Option("--output", "-o", metavar="WHERE", help="Where else the picture goes; repeatable.")
    ] = None,
    model: Annotated[
        Text, typer.Option(metavar="NAME", help="What makes the face: mesh, or a model of `doppelcam models list`.")
    ] = None,
    host: Annotated[
        Text, typer.Option(metavar="ADDRESS", help="Listen there; any but 127.0.0.1 asks for a token and TLS.")
    ] = None,
    port: Annotated[Text, typer.Option(metavar="N", help="Listen on this port; 0: any that is free.")] = None,
    open_: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
    duration: Annotated[Text, typer.Option(metavar="S", help="Stop after so many seconds.")] = None,
    profile: Annotated[Text, typer.Option(metavar="NAME", help="Use a shipped or saved set of settings.")] = None,
    set_: Annotated[
        Many, typer.Option("--set", metavar="KEY=VALUE", help="Any setting of configs/default.toml; repeatable.")
    ] = None,
) -> None:
    """Use a browser as camera, screen and remote control: the page of the run.

    Without options the browser's own camera is used, with the face of the last run. Ctrl-C ends it.
    """
    from realtime import config, last_run
    from realtime.session import play
    from realtime.terminal import Terminal

    options = {
        "--source source.photos": source or None,
        "--input input.what": input_,
        "--output output.to": ["webrtc", *(output or [])],
        "--model swap.engine": model,
        "--host web.host": host,
        "--port web.port": port and config.read_value(port),
        "--duration run.duration_s": duration and config.read_value(duration),
    }
    remembered, warnings = last_run.recall(new_face=bool(source))
    settings = config.load(profile, [config.from_set_options(set_ or []), *flags(options)], remembered)
    terminal = Terminal()
    for warning in warnings:
        terminal.note(warning)
    play(settings, terminal, open_page=open_)


def token(
    for_: Annotated[
        Literal["view", "send", "control"],
        typer.Option("--for", help="view: to watch; send: to send pictures (OBS); control: everything."),
    ] = "control",
    hours: Annotated[float, typer.Option(metavar="N", min=0.1, max=8760, help="How long it works.")] = 12.0,
    name: Annotated[str, typer.Option(metavar="WHO", help="Whom it is for; goes into the log.")] = "somebody",
) -> None:
    """Print a token for whoever uses this program from another machine.

    A page takes it behind its address (#token=...), OBS as its bearer token, a player in the header Authorization.
    """
    from realtime.config.store import config_dir
    from realtime.errors import ConfigError, install_extra

    try:
        from realtime.web.tokens import key_in, make_token
    except ModuleNotFoundError as error:
        raise ConfigError(f"tokens need the package {error.name}", install_extra("webrtc")) from error
    typer.echo(make_token(key_in(config_dir()), name, for_, hours))
