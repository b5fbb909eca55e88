"""``doppelcam warm``: compiles the kernels once, so that no start has to wait for that; knows no kernel."""

from __future__ import annotations

import typer


def warm() -> None:
    """Compile the kernels into their cache, so that the first start is as fast as every later one."""
    import time

    from realtime import app, config
    from realtime.meter import Meter
    from realtime.sources import SourceSpec, SourceWish, open_source
    from realtime.types import Size

    start_s = time.perf_counter()
    settings = config.load(None, [])
    source = open_source(SourceSpec("demo"), SourceWish(size=Size(640, 480), paced=False))
    with app.open_networks(settings) as networks:
        # Not a list of kernels, which would grow stale: what a run does is what gets compiled.
        pipeline = app.build_pipeline(settings, networks, app.load_faces(settings, networks), Meter())
        for _ in range(30):
            frame = source.read()
            if frame is not None:
                pipeline.process(frame, app.build_budget(settings).quality, frame.t_capture_s)
    source.close()
    typer.echo(f"ready; this took {time.perf_counter() - start_s:.1f} s")
