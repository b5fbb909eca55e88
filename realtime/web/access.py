"""Who may do what at the door: host names, origins, tokens, sizes and rates; knows no picture and no peer.

On this machine alone no token is asked for, so the one danger is another web page in the same browser: its requests
carry its own origin, and a name that it points at this machine (DNS rebinding) is in their Host header. Both are
refused. On any other address everything but the page's own files asks for a token.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from limits import RateLimitItem, RateLimitItemPerMinute, RateLimitItemPerSecond
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from realtime.web.doorlog import DoorLog
from realtime.web.lines import network_of
from realtime.web.tokens import Bearer, TokenError, read_token
from realtime.web.tokens import Scope as Right

OPEN_PATHS = re.compile(r"^/(?:healthz|favicon\.ico|page/[\w.-]+|[\w-]+\.(?:html|css|js|svg|jpg|png|webmanifest))?$")
"""The page's own files: they tell nothing, and a browser asks for them before it has a token."""
_RIGHTS: tuple[tuple[str, Right], ...] = (("/whip", "send"), ("/whep", "view"))
"""What a path asks for, by how it begins; any other asks for everything."""

SDP_BYTES = 64 * 1024
PHOTO_BYTES = 20 * 1024 * 1024
_BODY_BYTES = (("/api/photos", PHOTO_BYTES), ("", SDP_BYTES))

_REQUESTS = RateLimitItemPerSecond(50)
_OFFERS = RateLimitItemPerMinute(60)
_WRONG_TOKENS = RateLimitItemPerMinute(10)
_OFFER_PATHS = ("/whip", "/whep", "/session")


class Refusal(Exception):  # noqa: N818 - an answer, no error of ours
    """A request that is not let in.

    Attributes:
        status: of the HTTP answer.
        message: what is wrong, in words.
        hint: what to try.
    """

    def __init__(self, status: int, message: str, hint: str) -> None:
        super().__init__(message)
        self.status, self.message, self.hint = status, message, hint


@dataclass(frozen=True, slots=True)
class Door:
    """What is asked of whoever comes.

    Attributes:
        port: that is listened on.
        origins: further pages that may use it, such as "https://studio.example".
        key: that tokens are signed with; ``None`` where none is asked for: on this machine alone.
        secure: whether it speaks TLS.
    """

    port: int
    origins: tuple[str, ...] = ()
    key: bytes | None = None
    secure: bool = False


def is_this_machine(host: str) -> bool:
    """Whether an address or name means this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Access:
    """Looks at each request before anything of it is read. An ASGI application around another one.

    Args:
        inner: gets what is let in; ``scope["bearer"]`` says who it is.
        door: what is asked for.
    """

    def __init__(self, inner: ASGIApp, door: Door) -> None:
        self._inner, self._door = inner, door
        self._limiter = MovingWindowRateLimiter(MemoryStorage())
        self._log = DoorLog(logging.getLogger(__name__))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let it in, or answer why not."""
        if scope["type"] not in ("http", "websocket"):
            await self._inner(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            scope["bearer"] = self._check(scope, headers)
            counted = _Counted(receive, _most_bytes(scope["path"]), headers.get("content-length", ""))
        except Refusal as refusal:
            self._log.say(_address(scope), f"{scope['path']}: {refusal.status}: {refusal.message}")
            await _refuse(scope, send, refusal)
            return
        await self._inner(scope, counted.receive if scope["type"] == "http" else receive, send)

    def _check(self, scope: Scope, headers: dict[str, str]) -> Bearer:
        address, path = _address(scope), scope["path"]
        whence, is_open = network_of(address), bool(OPEN_PATHS.match(path))
        self._demand_host(headers.get("host", ""))
        self._demand_origin(headers, is_open=is_open)
        if not is_open:  # counted after that: another page in this browser has the same address
            self._demand_rate(_REQUESTS, "requests", whence)
        if path.startswith(_OFFER_PATHS) and scope.get("method") == "POST":
            self._demand_rate(_OFFERS, "offers", whence)
        if self._door.key is None or is_open or scope.get("method") == "OPTIONS":
            return Bearer(address, "control")
        return self._bearer(self._door.key, whence, path, headers)

    def _bearer(self, key: bytes, whence: str, path: str, headers: dict[str, str]) -> Bearer:
        right: Right = next((right for start, right in _RIGHTS if path.startswith(start)), "control")
        try:
            bearer = read_token(key, _token_in(headers))
        except TokenError as error:  # only who shows wrong ones waits, not whoever else is at that address
            self._demand_rate(_WRONG_TOKENS, "wrong tokens", whence)
            raise Refusal(401, str(error), "make one with: doppelcam token") from error
        if not bearer.may(right):
            raise Refusal(403, f"this token is for {bearer.scope} alone", f"doppelcam token --for {right}")
        return bearer

    def _demand_rate(self, rate: RateLimitItem, what: str, whence: str) -> None:
        if not self._limiter.hit(rate, what, whence):
            raise Refusal(429, f"too many {what} came from this address", "wait a minute, then ask less often")

    def _demand_host(self, host: str) -> None:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:  # half an address
            name = ""
        if self._door.key is None and not is_this_machine(name):
            raise Refusal(421, f"this is not {name or 'a server without a name'}", "use the address that it printed")

    def _demand_origin(self, headers: dict[str, str], *, is_open: bool) -> None:
        origin, host = headers.get("origin", ""), headers.get("host", "")
        own = f"{'https' if self._door.secure else 'http'}://{host}"
        if origin and origin.lower() != own.lower() and origin not in self._door.origins:
            raise Refusal(403, f"pages of {origin} may not use this", "name it in web.origins if it is yours")
        # A picture or script that another page embeds is asked for without an origin, but not without this.
        if not (origin or is_open) and headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise Refusal(403, "other pages may not show what this shows", "open it by its own address")


class _Counted:
    """A request's body, up to a size."""

    def __init__(self, receive: Receive, most: int, promised: str) -> None:
        self._receive, self._left = receive, most
        if promised and (not promised.isdecimal() or int(promised) > most):
            raise Refusal(413, f"the body has more than {most} bytes", "send less")

    async def receive(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            return {"type": "http.disconnect"}
        return message


def _most_bytes(path: str) -> int:
    return next(most for start, most in _BODY_BYTES if path.startswith(start))


def _address(scope: Scope) -> str:
    client: tuple[str, int] | None = scope.get("client")
    return client[0] if client else "unknown"


def _token_in(headers: dict[str, str]) -> str:
    """The token of the Authorization header, or, because a page cannot set that, among a WebSocket's protocols."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and token.strip():
        return token.strip()
    offered = [word.strip() for word in headers.get("sec-websocket-protocol", "").split(",")]
    if len(offered) == 2 and offered[0] == "doppelcam":
        return offered[1]
    raise TokenError("a token is missing")


async def _refuse(scope: Scope, send: Send, refusal: Refusal) -> None:
    body = json.dumps({"error": refusal.message, "try": refusal.hint}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": refusal.message[:120]})
        return
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
