"""The web server of a run: one thread with one asyncio loop, from an open socket to a clean end; knows no route."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import threading
from collections.abc import Callable

import uvicorn
from fastapi import APIRouter
from starlette.types import ASGIApp

from realtime.config.settings import WebSettings
from realtime.config.store import config_dir
from realtime.errors import SinkError
from realtime.meter import Meter
from realtime.web import tls
from realtime.web.access import Door, is_this_machine
from realtime.web.application import Parts, make_app
from realtime.web.lines import Bounds, Lines
from realtime.web.peers import Peers
from realtime.web.station import Station
from realtime.web.tokens import key_in, make_token

START_S = 10.0
STOP_S = 0.8
CUT_S = 0.05
"""Until requests that were cut have noticed it."""
LINK_HOURS = 12.0
"""How long the link that is printed works."""


class WebServer:
    """Listens from its making on, serves from ``start`` on.

    Args:
        settings: of the web room.
        meter: of the run.
        tell: told in words who comes and goes. From the server's thread.
        bounds: of connections.

    Attributes:
        station: where its peers' pictures go to and come from.
        facts: for the banner: where it listens, and who may come.

    Raises:
        SinkError: the address cannot be listened on.
        ConfigError: key or certificate cannot be used.
    """

    def __init__(
        self,
        settings: WebSettings,
        meter: Meter,
        tell: Callable[[str], None] = lambda _: None,
        bounds: Bounds = Bounds(),  # noqa: B008 - frozen
    ) -> None:
        self._settings, self._meter, self._tell, self._bounds = settings, meter, tell, bounds
        self._more: tuple[APIRouter, ...] = ()
        alone = is_this_machine(settings.host)
        self._certificate = None if settings.tls == "off" or alone else _certificate(settings)
        key = None if alone else key_in(config_dir())
        self._socket = _listen(settings.host, settings.port)
        port = self._socket.getsockname()[1]
        self._door = Door(port, settings.origins, key, secure=self._certificate is not None)
        scheme = "https" if self._certificate else "http"
        self.station = Station(f"{scheme}://{_typed(settings.host)}:{port}")
        token = make_token(key, "printed link", "control", LINK_HOURS) if key else ""
        self.link = self.station.url + (f"/#token={token}" if token else "/")
        self.facts = _facts(self.link, settings, self._certificate)
        self._thread = threading.Thread(target=self._serve, name="web", daemon=True)
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._error: BaseException | None = None
        self._stop: asyncio.Event | None = None

    def start(self, more: tuple[APIRouter, ...] = ()) -> None:
        """Begin to serve.

        Args:
            more: further routes, such as those of the desk.
        """
        self._more = more
        self._thread.start()
        self._ready.wait(START_S)
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """End every connection and the thread. Safe to call twice."""
        if self._loop is not None and self._stop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread.ident is not None:
            self._thread.join(STOP_S)
        self._socket.close()

    def _serve(self) -> None:
        """Body of the thread."""
        try:
            asyncio.run(self._main())
        except BaseException as error:  # noqa: BLE001 - the edge of a thread: raised by whoever waits for the start
            self._error = error
            if self._ready.is_set():
                self._tell(f"the web server has ended: {error}")
        finally:
            self._ready.set()

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        peers = Peers(self.station, self._settings, on_event=self._tell)
        app = make_app(Parts(self.station, peers, self._meter, self._door, self._more, self._settings.ice_servers))
        lines = Lines(app, self._bounds)
        config = self._config(lines)
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve(sockets=[]), name="uvicorn")  # they come one by one
        while not (server.started or serving.done()):
            await asyncio.sleep(0.01)
        accepting = asyncio.create_task(
            lines.accept(self._socket, lambda: _protocol(config, server), config.ssl), name="accept"
        )
        self._ready.set()
        stopping = asyncio.create_task(self._stop.wait(), name="stop")
        await asyncio.wait({serving, accepting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        accepting.cancel()
        server.should_exit = server.force_exit = True
        with contextlib.suppress(TimeoutError):  # what is left ends with its loop
            await asyncio.wait_for(peers.close_all(), STOP_S / 2)
        await serving
        lines.cut()
        with contextlib.suppress(asyncio.CancelledError):
            await accepting
        await asyncio.sleep(CUT_S)

    def _config(self, app: ASGIApp) -> uvicorn.Config:
        return uvicorn.Config(
            app,
            http="h11",
            log_config=None,
            log_level="error",  # a warning for each request that is none would be a stranger's to write
            access_log=False,
            lifespan="off",
            server_header=False,
            proxy_headers=False,  # whoever comes is whom the connection comes from, whatever they say
            ws_max_size=64 * 1024,
            ws_max_queue=8,
            timeout_keep_alive=5,
            h11_max_incomplete_event_size=16 * 1024,
            ssl_certfile=self._certificate.chain if self._certificate else None,
            ssl_keyfile=self._certificate.key if self._certificate else None,
        )


def _protocol(config: uvicorn.Config, server: uvicorn.Server) -> asyncio.Protocol:
    """What speaks HTTP on one connection, made as uvicorn makes it for a socket of its own."""
    return config.http_protocol_class(  # type: ignore[call-arg]
        config=config, server_state=server.server_state, app_state=server.lifespan.state
    )


def _listen(host: str, port: int) -> socket.socket:
    bare = host.strip("[]")
    try:
        family = socket.getaddrinfo(bare, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((bare, port), family=family, backlog=128)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise SinkError(
                f"another program listens on port {port} of {host}",
                "close it, or take another port: --set web.port=8089 (0: any that is free)",
            ) from error
        why = error.strerror or str(error)
        raise SinkError(f"{host}:{port} cannot be listened on: {why}", "check web.host and web.port") from error


def _typed(host: str) -> str:
    """The address as people type it, from another machine where that is possible."""
    name = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, host)
    return f"[{name}]" if ":" in name and not name.startswith("[") else name


def _certificate(settings: WebSettings) -> tls.Certificate:
    if settings.tls_cert or settings.tls_key:
        return tls.given(settings.tls_cert, settings.tls_key)
    return tls.own_in(config_dir(), _typed(settings.host))


def _facts(link: str, settings: WebSettings, certificate: tls.Certificate | None) -> tuple[tuple[str, str], ...]:
    facts = [("page", link)]
    if is_this_machine(settings.host):
        return (*facts, ("page", "for this machine alone"))
    facts.append(("page", f"anybody with this link, for {LINK_HOURS:.0f} hours; others: doppelcam token"))
    if certificate is None:
        facts.append(
            ("page", "WITHOUT ENCRYPTION (web.tls): everybody on the way can watch, and browsers lend no camera")
        )
    elif certificate.own:
        facts.append(("page", f"browsers ask before they trust it; its certificate is {certificate.fingerprint}"))
    return tuple(facts)
