"""Names input and outputs and makes what the loop runs of them; opens nothing before the loop does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from engines.contract import Device
from realtime import loop, sinks, sources
from realtime.app.path import build_budget
from realtime.config import Settings
from realtime.meter import Meter
from realtime.pipeline import Pipeline
from realtime.placard import placard
from realtime.sinks import Sink, SinkSpec, SinkWish, open_sink, parse_output
from realtime.sources import Source, SourceInfo, SourceSpec, SourceWish, open_source, parse_input
from realtime.web.station import Station

UNPACED_KINDS = ("video", "demo")
"""Sources without a time of their own, which can be read as fast as they are worked on."""


@dataclass(frozen=True, slots=True)
class Ends:
    """What the names of input and outputs mean.

    Attributes:
        source: to open.
        wish: how.
        sinks: to open, in order.
        station: where pictures from and for the network are; ``None`` while no web server runs.
    """

    source: SourceSpec
    wish: SourceWish
    sinks: tuple[SinkSpec, ...]
    station: Station | None = None

    @property
    def networked(self) -> bool:
        """Whether any of them needs the web server."""
        return self.source.kind in sources.NETWORKED or any(sink.kind in sinks.NETWORKED for sink in self.sinks)


def name_ends(settings: Settings) -> Ends:
    """Read what input and outputs are called; opens nothing.

    Raises:
        ConfigError: a name cannot be understood.
    """
    source = parse_input(settings.input.what)
    outputs = tuple(parse_output(text) for text in settings.output.to)
    paced = settings.input.pace == "live"
    if settings.input.pace == "auto":
        paced = source.kind not in UNPACED_KINDS or any(sink.kind not in ("recording", "null") for sink in outputs)
    wish = SourceWish(
        size=settings.input.size,
        fps=settings.input.fps or None,
        loop=settings.input.loop,
        paced=paced,
        fourcc=settings.input.fourcc,
    )
    return Ends(source, wish, outputs)


def open_again(ends: Ends, before: SourceInfo | None) -> Source:
    """Open the source: as it was named, or, the second time, the same device as before."""
    wish = replace(ends.wish, station=ends.station)
    return open_source(before.reopen if before and before.reopen else ends.source, wish)


def open_one_sink(spec: SinkSpec, settings: Settings, station: Station | None, source: SourceInfo) -> Sink:
    """Open one output for pictures of this source."""
    wish = SinkWish(
        size=source.size,
        fps=settings.output.fps or source.fps,
        live=source.live,
        mirror=settings.output.mirror_preview,
        audio_path=source.audio_path,
        audio_rate=source.audio_rate,
        overwrite=settings.output.overwrite,
        station=station,
    )
    return open_sink(spec, wish)


def build_show(settings: Settings, ends: Ends, device: Device, pipeline: Pipeline, meter: Meter) -> loop.Show:
    """Make what the loop runs; nothing is opened before it does."""
    return loop.Show(
        open_source=partial(open_again, ends),
        open_sinks=[partial(open_one_sink, spec, settings, ends.station) for spec in ends.sinks],
        process=pipeline,
        meter=meter,
        budget=build_budget(settings, works_ahead=device.works_ahead),
        make_card=placard,
        attached=device.attached,
    )
