"""A network that loses and reorders, between two peers on one machine: a relay of UDP; knows nothing of WebRTC's media.

Both sides are told, in their session descriptions, that the other one is at the relay. What the relay loses it loses in
both directions, also of the connection's own packets.
"""

from __future__ import annotations

import asyncio
import random
import re
import socket
import threading
from dataclasses import dataclass
from typing import cast

CANDIDATE = re.compile(r"^a=candidate:(\S+) (\d) (\S+) (\d+) (\S+) (\d+) typ host.*$", re.MULTILINE)
REORDER_SHARE = 0.02
"""Of the packets, while there is loss: so many come late."""
LATE_S = (0.004, 0.015)
"""A packet that is overtaken is so late: at 2 Mbit/s between one and four packets pass it."""


@dataclass
class Weather:
    """What the relay does now. May be changed while it runs, from any thread.

    Attributes:
        loss: share of the packets that vanish.
        reorder: share that comes late.
        way_s: every packet is under way for so long.
        lost: packets lost so far.
        passed: packets that came through.
    """

    loss: float = 0.0
    reorder: float = 0.0
    way_s: float = 0.0
    lost: int = 0
    passed: int = 0

    def turn_bad(self, loss: float) -> None:
        """Lose this share, and reorder."""
        self.loss, self.reorder = loss, REORDER_SHARE

    def clear_up(self) -> None:
        """Let everything through, in order."""
        self.loss = self.reorder = 0.0


class _End(asyncio.DatagramProtocol):
    """One socket of the relay: hands what it hears to the other one, and sends to whoever it was told of."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self.transport: asyncio.DatagramTransport
        self.peer: tuple[str, int] | None = None
        self.other: _End

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.DatagramTransport", transport)  # asyncio's own is no subclass before 3.12

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        self.peer = address  # where answers go: whoever spoke last, as a router does
        self._relay.pass_on(data, self.other)

    def send(self, data: bytes) -> None:
        if self.peer is not None and not self.transport.is_closing():
            self.transport.sendto(data, self.peer)


class Relay:
    """A relay for one connection, in a thread of its own. Use as a context manager.

    Args:
        seed: of the losses.

    Attributes:
        weather: what it does.
    """

    def __init__(self, seed: int = 1) -> None:
        self.weather = Weather()
        self._dice = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="relay", daemon=True)
        self._ends: tuple[_End, _End] | None = None

    def __enter__(self) -> Relay:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    def offer(self, sdp: str) -> str:
        """The offer as the server should see it."""
        return self._rewrite(sdp, 0)

    def answer(self, sdp: str) -> str:
        """The answer as the browser should see it."""
        return self._rewrite(sdp, 1)

    def pass_on(self, data: bytes, to: _End) -> None:
        """Hand one packet on, or not. In the relay's thread."""
        weather = self.weather
        if self._dice.random() < weather.loss:
            weather.lost += 1
            return
        weather.passed += 1
        late_s = weather.way_s
        if self._dice.random() < weather.reorder:
            late_s += self._dice.uniform(*LATE_S)
        if late_s:
            self._loop.call_later(late_s, to.send, data)
        else:
            to.send(data)

    def _rewrite(self, sdp: str, side: int) -> str:
        """Put the relay in the place of a description's own address.

        Args:
            sdp: of the side that is number ``side``; its first IPv4 candidate is what the relay sends to.
            side: 0 the offering one, 1 the answering one.

        Returns:
            ``sdp`` with one candidate a section, the relay's socket on the other side.
        """
        found = [match for match in CANDIDATE.finditer(sdp) if ":" not in match[5] and match[3].lower() == "udp"]
        if not found:
            raise AssertionError(f"no address in {sdp}")
        mine, theirs = self._sockets(found[0][5])
        own, seen = (mine, theirs) if side == 0 else (theirs, mine)
        own.peer = own.peer or (found[0][5], int(found[0][6]))
        host, port = seen.transport.get_extra_info("sockname")[:2]
        kept: set[int] = set()
        lines = []
        section = 0
        for line in sdp.splitlines():
            section += line.startswith("m=")
            if line.startswith("a=candidate"):
                if section in kept:
                    continue
                kept.add(section)
                line = f"a=candidate:1 1 udp 2130706431 {host} {port} typ host"  # noqa: PLW2901
            lines.append(line)
        return "\r\n".join(lines) + "\r\n"

    def _sockets(self, host: str) -> tuple[_End, _End]:
        """The relay's two ends, the offerer's first; opened at the first call."""
        if self._ends is None:
            self._ends = asyncio.run_coroutine_threadsafe(self._open(host), self._loop).result(5)
        return self._ends

    async def _open(self, host: str) -> tuple[_End, _End]:
        ends = (_End(self), _End(self))
        for end in ends:
            await self._loop.create_datagram_endpoint(lambda end=end: end, local_addr=(host, 0))  # type: ignore[misc]
            end.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        ends[0].other, ends[1].other = ends[1], ends[0]
        return ends

    async def _close(self) -> None:
        for end in self._ends or ():
            end.transport.close()
        await asyncio.sleep(0)
