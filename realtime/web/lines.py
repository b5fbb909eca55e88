"""The connections of the web server: how many, from whom, and how long one may say nothing; knows no HTTP.

Uvicorn waits for a request for ever, and its own bound counts a page that listens like a request that floods. So
connections are taken here, before TLS, and given to it one by one.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from realtime.web.doorlog import DoorLog

LOOK_S = 1.0
"""Between two looks at who says nothing."""
PAUSE_S = 0.2
"""After the system gave no connection: no file handles are left, or whoever came has gone."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What connections may take.

    Attributes:
        most: at a time; those of this machine are not counted, so that whoever sits at it can always steer.
        from_one: of ``most``, from one address (or one network of IPv6); a page takes six and one that stays.
        silent_s: seconds without a request: before the first, in the middle of its head, or after an answer.
        request_s: seconds for a request with its answer, of whatever size; a WebSocket may stay.
        handshake_s: seconds for TLS.
    """

    most: int = 256
    from_one: int = 64
    silent_s: float = 10.0
    request_s: float = 60.0
    handshake_s: float = 5.0


@dataclass(slots=True)
class _Line:
    socket: socket.socket
    network: str
    since_s: float  # it opened, or its last request ended
    requests: int = 0
    transport: asyncio.Transport | None = None

    def cut(self) -> None:
        """End it now, whatever is left to be sent."""
        if self.transport is not None:
            self.transport.abort()
        else:  # in the middle of TLS, which finds its end
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)


class Lines:
    """Takes connections, and lets go of those that hold one for nothing. An ASGI application around another one.

    Args:
        inner: gets every request.
        bounds: what is allowed.
    """

    def __init__(self, inner: ASGIApp, bounds: Bounds) -> None:
        self._inner, self._bounds = inner, bounds
        self._loop = asyncio.get_running_loop()
        self._lines: dict[tuple[str, int], _Line] = {}  # by the address of the other side
        self._opening: set[asyncio.Task[None]] = set()
        self._log = DoorLog(logging.getLogger(__name__))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request for no longer than is allowed."""
        line = self._lines.get(tuple(scope.get("client") or ("", 0)))
        if line is None:
            await self._inner(scope, receive, send)
            return
        line.requests += 1
        try:
            async with asyncio.timeout(None if scope["type"] == "websocket" else self._bounds.request_s):
                await self._inner(scope, receive, send)
        except TimeoutError:
            self._log.say(line.network, "took too long over a request")
            line.cut()
        finally:
            line.requests -= 1
            line.since_s = self._loop.time()

    async def accept(
        self, listener: socket.socket, make_protocol: Callable[[], asyncio.Protocol], tls: ssl.SSLContext | None
    ) -> None:
        """Take connections until it is cancelled.

        Args:
            listener: listens already; stays open.
            make_protocol: makes what speaks on one of them.
            tls: for encryption.
        """
        listener.setblocking(False)
        watching = self._loop.create_task(self._watch(), name="lines")
        try:
            while True:
                try:
                    taken, address = await self._loop.sock_accept(listener)
                except OSError:
                    await asyncio.sleep(PAUSE_S)
                    continue
                line = _Line(taken, network_of(address[0]), self._loop.time())
                if not self._has_room(line.network):
                    taken.close()
                    continue
                self._lines[address[0], address[1]] = line
                opening = self._loop.create_task(self._open(line, make_protocol, tls), name="open line")
                self._opening.add(opening)
                opening.add_done_callback(self._opening.discard)
        finally:
            watching.cancel()

    def cut(self) -> None:
        """End every connection now."""
        for line in self._open_lines():
            line.cut()

    async def _open(
        self, line: _Line, make_protocol: Callable[[], asyncio.Protocol], tls: ssl.SSLContext | None
    ) -> None:
        limit_s = self._bounds.handshake_s if tls else None
        try:
            line.transport, _ = await self._loop.connect_accepted_socket(
                make_protocol, line.socket, ssl=tls, ssl_handshake_timeout=limit_s
            )
        except OSError:  # no TLS was spoken, or not in time; ssl.SSLError is one
            line.socket.close()

    def _open_lines(self) -> list[_Line]:
        """Forget those that have ended: whoever serves them closes their socket."""
        self._lines = {address: line for address, line in self._lines.items() if line.socket.fileno() != -1}
        return list(self._lines.values())

    def _has_room(self, network: str) -> bool:
        networks = [line.network for line in self._open_lines()]
        others = sum(not _is_here(one) for one in networks)
        mine = networks.count(network)
        if mine < self._bounds.from_one and (others < self._bounds.most or _is_here(network)):
            return True
        self._log.say(network, f"is refused: it has {mine} connections of {len(networks)}")
        return False

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            latest_s = self._loop.time() - self._bounds.silent_s
            for line in self._open_lines():
                if not line.requests and line.since_s < latest_s and line.transport is not None:
                    line.cut()


def network_of(address: str) -> str:
    """What is counted as one visitor: an address, of IPv6 its network, which one machine has 2**64 addresses of."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if ip.version == 4 or ip.is_loopback or ip.is_link_local:
        return address
    if ip.ipv4_mapped:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((int(ip), 64), strict=False))


def _is_here(network: str) -> bool:
    return network.startswith("127.") or network == "::1"
