"""Builds what is missing for the best runtime while a run goes on, and takes it between two frames; paints nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from realtime.app.fallback import Scene
from realtime.app.networks import Networks, open_models
from realtime.app.path import build_painters
from realtime.meter import Meter
from realtime.pipeline import Painters


@contextmanager
def upgrading(
    scene: Scene, networks: Networks, meter: Meter, tell: Callable[[str], None]
) -> Iterator[Callable[[], None]]:
    """Let plans be built in the background, where a GPU has none for the networks that paint.

    Args:
        scene: what runs; its painters are replaced when better ones are ready.
        networks: of the run.
        meter: gets the laps of the new painters.
        tell: told in words how far it is. From another thread.

    Yields:
        What is to be called now and then, by any one thread: it takes what is ready. What the frames in flight are
        painted with stays open until the end.
    """
    settings = scene.settings
    painting = (settings.swap.engine, settings.enhance.model)
    missing = [name for name in networks.models.improvable if name in painting]
    if not settings.engine.build or not missing:
        yield lambda: None
        return
    from engines.building import BuildSettings  # noqa: PLC0415  (0.2 s, only where something is built)
    from realtime.upgrade import Upgrade, plan_of  # noqa: PLC0415

    batches = {settings.swap.engine: settings.swap.boost**2}
    parts = [
        plan_of(networks.models.card(name), BuildSettings(pictures=batches.get(name, 1)))  # of all tiles at once
        for name in missing
    ]
    with ExitStack() as stack:
        models = stack.enter_context(open_models(settings, networks.device))

        def open_new() -> Painters:
            with networks.device.attached():
                return build_painters(settings, replace(networks, models=models), scene.faces, meter)

        upgrade = stack.enter_context(Upgrade(parts, open_new, tell))

        def take() -> None:
            if new := upgrade.poll():
                scene.pipeline.painters = new

        yield take
