"""``doppelcam warm``: compiles the kernels once, so that no start has to wait for that; knows no kernel."""

from __future__ import annotations

import typer


def warm() -> None:
    """Compile the kernels into their cache, so that the first start is as fast as every later one."""
    import time

    from realtime.warming import warm_up

    start_s = time.perf_counter()
    warm_up()
    typer.echo(f"ready; this took {time.perf_counter() - start_s:.1f} s")
