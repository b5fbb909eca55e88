"""What a stranger on the network may try, from an address of its own; ``python -m tests.web.attacker PORT TOKEN WHAT``.

It holds back: two hundred requests a second are no trouble for whoever makes them, so that the program under attack
has its processors for itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
import time
from collections.abc import Awaitable, Callable

ADDRESSES = {
    what: f"127.0.0.{2 + n}" for n, what in enumerate(("malformed", "oversized", "tokens", "connections", "sockets"))
}
"""One for each attack: what the program counts by address starts anew."""
PER_S = 200
SECONDS = 8.0
CONNECTIONS = 1000

OFFER = """v=0\r
o=- 1 1 IN IP4 127.0.0.1\r
s=-\r
t=0 0\r
a=group:BUNDLE 0\r
m=video 9 UDP/TLS/RTP/SAVPF 96\r
c=IN IP4 0.0.0.0\r
a=mid:0\r
a=ice-ufrag:abcd\r
a=ice-pwd:abcdefghijklmnopqrstuvwx\r
a=fingerprint:sha-256 {print}\r
a=setup:actpass\r
a=sendrecv\r
a=rtcp-mux\r
a=rtpmap:96 H264/90000\r
a=fmtp:96 profile-level-id=42e01f;packetization-mode=1\r
""".replace("{print}", ":".join(["AB"] * 32))

Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Attacker:
    """Everything that it can do, each for ``SECONDS``.

    Args:
        port: of the program.
        token: a good one.
        address: that it comes from.
    """

    def __init__(self, port: int, token: str, address: str) -> None:
        self._port, self._token, self._address = port, token, address
        self._dice = random.Random(1)
        self.answers: dict[str, int] = {}

    async def malformed(self) -> None:
        """Offers that are torn, mixed and wrong, from somebody who has a token."""
        await self._at_a_rate(lambda: self._post("/session", self._broken_offer(), self._token))

    async def oversized(self) -> None:
        """Bodies that are promised to be large, and bodies that turn out to be."""
        body = b"v" * (1 << 20)

        async def once() -> None:
            if self._dice.random() < 0.5:
                await self._post("/whip", body, self._token)
            else:
                await self._post("/whip", b"", self._token, promised=10**12)

        await self._at_a_rate(once, per_s=PER_S / 10)

    async def tokens(self) -> None:
        """Tokens that are guessed."""
        await self._at_a_rate(lambda: self._post("/whep", OFFER.encode(), f"{self._dice.random():.17f}.e30.x"))

    async def connections(self) -> None:
        """A thousand connections that say half of something and stay."""
        lines: list[Line] = []
        for number in range(CONNECTIONS):
            with contextlib.suppress(OSError):
                line = await self._line()
                line[1].write(b"POST /whip HTTP/1.1\r\nHost: x\r\nX-Slow: " if number % 2 else b"")
                lines.append(line)
            await asyncio.sleep(1 / PER_S / 2)
        self._count(f"open {len(lines)}")
        await asyncio.sleep(3)
        for _, writer in lines:
            writer.close()

    async def sockets(self) -> None:
        """WebSockets that shout."""

        async def shout() -> None:
            reader, writer = await self._line()
            writer.write(
                b"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
                b"Sec-WebSocket-Protocol: doppelcam, %s\r\n\r\n" % (self._port, self._token.encode())
            )
            self._count((await reader.readline()).decode().strip())
            for number in range(300):  # a masked text frame each: garbage, or an order that exists
                text = b'{"do":"set","key":"swap.likeness","value":0.5}' if number % 2 else b"{" * 60
                writer.write(bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text)
                await writer.drain()
                await asyncio.sleep(1 / PER_S)
            writer.close()

        end_s = time.monotonic() + SECONDS
        while time.monotonic() < end_s:
            await asyncio.gather(*(shout() for _ in range(5)), return_exceptions=True)
            await asyncio.sleep(0.1)

    async def _at_a_rate(self, once: Callable[[], Awaitable[None]], per_s: float = PER_S) -> None:
        begun_s = time.monotonic()
        tasks: set[asyncio.Future[None]] = set()
        number = 0
        while time.monotonic() < begun_s + SECONDS:
            tasks.add(asyncio.ensure_future(once()))
            number += 1
            await asyncio.sleep(max(0.0, begun_s + number / per_s - time.monotonic()))
            tasks = {task for task in tasks if not task.done()}
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _post(self, path: str, body: bytes, token: str, promised: int | None = None) -> None:
        try:
            reader, writer = await self._line()
            writer.write(
                f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nContent-Type: application/sdp\r\n"
                f"Authorization: Bearer {token}\r\nConnection: close\r\n"
                f"Content-Length: {len(body) if promised is None else promised}\r\n\r\n".encode()
                + body
            )
            status = await asyncio.wait_for(reader.readline(), 5)
            self._count(status.decode().strip() or "cut off")
            writer.close()
        except (OSError, TimeoutError) as error:
            self._count(type(error).__name__)

    def _broken_offer(self) -> bytes:
        lines = OFFER.splitlines(keepends=True)
        match self._dice.randrange(5):
            case 0:
                return self._dice.randbytes(2000)
            case 1:
                return OFFER[: self._dice.randrange(len(OFFER))].encode()
            case 2:
                self._dice.shuffle(lines)
                return "".join(lines).encode()
            case 3:
                at = self._dice.randrange(len(lines))
                lines[at] = lines[at].replace("96", "99999999").replace("0", "-1", 1)
                return "".join(lines).encode()
            case _:
                return OFFER.encode()

    async def _line(self) -> Line:
        return await asyncio.open_connection("127.0.0.1", self._port, local_addr=(self._address, 0))

    def _count(self, answer: str) -> None:
        self.answers[answer] = self.answers.get(answer, 0) + 1


def main() -> None:
    """Do one thing, and print what was answered how often."""
    attacker = Attacker(int(sys.argv[1]), sys.argv[2], ADDRESSES[sys.argv[3]])
    asyncio.run(getattr(attacker, sys.argv[3])())
    print(attacker.answers)


if __name__ == "__main__":
    main()
