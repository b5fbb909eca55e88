"""Opens the web server where an input or output is on the network, and nothing of it where none is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TypeVar

from realtime.app.show import Ends
from realtime.config import Settings
from realtime.desk.desk import Desk
from realtime.errors import ConfigError, install_extra
from realtime.facts import Fact
from realtime.meter import Meter

D = TypeVar("D", bound=Desk)


@contextmanager
def on_network(
    settings: Settings, ends: Ends, meter: Meter, tell: Callable[[str], None], make_desk: Callable[[Ends], D]
) -> Iterator[tuple[Ends, D, tuple[Fact, ...]]]:
    """Serve for as long as the context lasts.

    Args:
        settings: checked.
        ends: of the run.
        meter: of the run.
        tell: told in words who comes and goes. From another thread.
        make_desk: makes what the page steers, of the ends with their station.

    Yields:
        The ends, with the station that they need, the desk, and lines for the banner.

    Raises:
        ConfigError: a package that this takes is missing, or a setting of it is wrong.
        SinkError: the address cannot be listened on.
    """
    if not ends.networked:
        yield ends, make_desk(ends), ()
        return
    try:
        from realtime.web.control import make_router  # noqa: PLC0415
        from realtime.web.server import WebServer  # noqa: PLC0415  (a second, only where something is on the network)
    except ModuleNotFoundError as error:
        raise ConfigError(f"what is on the network needs the package {error.name}", install_extra("webrtc")) from error
    server = WebServer(settings.web, meter, tell)
    with closing(server):
        ends = replace(ends, station=server.station)
        desk = make_desk(ends)
        server.start((make_router(desk),))
        yield ends, desk, server.facts
