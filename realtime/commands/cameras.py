"""``doppelcam cameras``: lists what ``--input`` can name; opens nothing."""

from __future__ import annotations

import typer


def cameras() -> int:
    """List the cameras of this machine, with the number and name that --input takes."""
    from realtime.sources.cameras import list_cameras

    found = list_cameras()
    for camera in found:
        typer.echo(f"{camera.index}  {camera.name}")
    if not found:
        typer.echo("no camera found; --input demo and --input FILE work without one")
    return 0
