"""Opens the web server where an input or output is on the network, and nothing of it where none is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from realtime.app.show import Ends
from realtime.config import Settings
from realtime.errors import ConfigError, install_extra
from realtime.facts import Fact
from realtime.meter import Meter


@contextmanager
def on_network(
    settings: Settings, ends: Ends, meter: Meter, tell: Callable[[str], None]
) -> Iterator[tuple[Ends, tuple[Fact, ...]]]:
    """Serve for as long as the context lasts.

    Args:
        settings: checked.
        ends: of the run.
        meter: of the run.
        tell: told in words who comes and goes. From another thread.

    Yields:
        The ends, with the station that they need, and lines for the banner.

    Raises:
        ConfigError: a package that this takes is missing, or a setting of it is wrong.
        SinkError: the address cannot be listened on.
    """
    if not ends.networked:
        yield ends, ()
        return
    try:
        from realtime.web.server import WebServer  # noqa: PLC0415  (a second, only where something is on the network)
    except ModuleNotFoundError as error:
        raise ConfigError(f"what is on the network needs the package {error.name}", install_extra("webrtc")) from error
    with WebServer(settings.web, meter, tell) as server:
        yield replace(ends, station=server.station), server.facts
