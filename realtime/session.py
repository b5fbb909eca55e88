"""One live run from checked settings to its closing line: opens, shows, remembers, sums up; knows no device."""

from __future__ import annotations

import signal
import threading
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

from realtime import app, clashes, figures, last_run, loop
from realtime.config import Settings
from realtime.desk.desk import Desk
from realtime.desk.running import RunningDesk
from realtime.errors import ConfigError
from realtime.facts import Fact, banner_facts
from realtime.machine import describe
from realtime.meter import Meter
from realtime.people.cast import ONLY_STRANGERS
from realtime.sinks import SinkInfo
from realtime.sources import SourceInfo
from realtime.terminal import Terminal


def play(
    settings: Settings,
    terminal: Terminal,
    notes: Sequence[tuple[str, str]] = (),
    *,
    open_page: bool = False,
    on_desk: Callable[[Desk], None] | None = None,
) -> None:
    """Run until the input ends, the person stops it, or something fails that cannot be mended.

    Args:
        settings: checked.
        terminal: shows the run.
        notes: more lines for the banner.
        open_page: open the control page in this desktop's browser, where the web server runs.
        on_desk: given what steers the run, once, before the first picture.

    Raises:
        LiveError: what a person can act on.
    """
    stats_file = Path(settings.run.stats_file) if settings.run.stats_file else None
    if stats_file:
        figures.check_place(stats_file, "--stats")
    clashes.refuse(settings, stats_file)
    ends = app.name_ends(settings)
    limits = loop.Limits(duration_s=settings.run.duration_s)
    with ExitStack() as stack:
        meter = Meter()
        networks, scene = stack.enter_context(app.open_run(settings, meter, terminal.note))
        pipeline = scene.pipeline

        def make_desk(ends: app.Ends) -> RunningDesk:
            desk = stack.enter_context(RunningDesk(scene, networks, meter, ends, lambda: told))
            listeners.append(desk.note)
            return desk

        def note(text: str) -> None:
            for listener in listeners:
                listener(text)

        told: list[Fact] = []
        listeners: list[Callable[[str], None]] = [terminal.note]
        ends, desk, web_facts = stack.enter_context(app.on_network(scene.settings, ends, meter, note, make_desk))
        built = app.build_show(scene.settings, ends, networks.device, pipeline, meter)

        def ready(source: SourceInfo, sinks: tuple[SinkInfo, ...]) -> None:
            runs = banner_facts(scene.settings, source, sinks, built.budget.best, built.budget.least)
            told[:] = [*scene.faces.facts, *runs, *web_facts, *networks.facts, *notes]
            terminal.banner(told)
            desk.opened(built.budget, list(zip([sink.name for sink in sinks], settings.output.to, strict=True)))
            if on_desk is not None:
                on_desk(desk)
            _keep(settings, terminal)
            if open_page and web_facts:
                webbrowser.open(web_facts[0][1])
            terminal.start(None if source.live else _length(source.frames, limits.most_frames(source)))

        try:
            with stop_on_signals() as stop, app.upgrading(scene, networks, meter, note) as take_what_is_ready:

                def tick() -> None:
                    take_what_is_ready()
                    terminal.tick(lambda: (meter.snapshot(), len(pipeline.faces)))

                show = replace(
                    built,
                    on_event=note,
                    on_quality=terminal.note,
                    on_ready=ready,
                    on_tick=tick,
                    on_start=desk.take_controls,
                )
                loop.run(show, stop, limits)
        finally:
            stats = meter.snapshot()
            terminal.end(stats)
            if strangers := stats.counters.get(ONLY_STRANGERS):
                terminal.note(
                    f"{strangers} of {stats.frames} pictures show people as they are: none of them was recognised"
                )
            if pipeline.failure:
                terminal.note(f"some pictures could not be swapped; the last reason was: {pipeline.failure}")
            if stats_file:
                figures.write(stats_file, "--stats", {"machine": describe(), **stats.to_dict()})


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """Turn Ctrl-C and SIGTERM into a wish to stop; a second one interrupts whatever the stopping waits for."""
    stop = threading.Event()
    asked: list[int] = []

    def ask(number: int, _frame: FrameType | None) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _length(promised: int, limit: int) -> int:
    """Pictures of a conversion: what the file promises, or the limit where that is less; 0 when nobody knows."""
    return min(promised, limit) if promised and limit else promised or limit


def _keep(settings: Settings, terminal: Terminal) -> None:
    try:
        last_run.keep(settings)
    except ConfigError as error:  # no reason not to run
        terminal.note(f"the next start will not repeat this run: {error.message}")
