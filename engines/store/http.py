"""Asks a server for the rest of a file; knows HTTP's words for that, not files, cards or hashes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

import httpx

from engines.errors import ModelError

CONNECT_S = 15.0
"""How long a server may take to be reached."""

SILENCE_S = 30.0
"""How long it may say nothing in the middle of a file."""

_LATER = {429, 500, 502, 503, 504}  # it may work in a moment
_RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)")


class CutError(Exception):
    """The transfer ended early in a way that trying again may mend."""


class MirrorError(Exception):
    """This address will not give the file; another may."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server is about to send.

    Attributes:
        start: byte of the file that comes first; -1 where none comes, because the file ends before what was asked for.
        total_bytes: of the whole file; 0 where the server does not say.
        validator: what names this very state of the file, for ``If-Range``; empty where the server has none.
    """

    start: int
    total_bytes: int
    validator: str


def open_client(
    schemes: frozenset[str] = frozenset({"https"}),
    transport: httpx.BaseTransport | None = None,
    silence_s: float = SILENCE_S,
) -> httpx.Client:
    """Open a client that follows redirects, obeys the proxies of the environment and never waits for ever.

    Args:
        schemes: that every address and every redirect must have.
        transport: instead of the network, for tests.
        silence_s: see :data:`SILENCE_S`.

    Returns:
        The client; the caller closes it.

    Raises:
        ModelError: the environment names a proxy that cannot be used.
    """

    def secure(request: httpx.Request) -> None:
        if request.url.scheme not in schemes:
            raise MirrorError(f"leads to {request.url.scheme}://{request.url.host}, which is not {'/'.join(schemes)}")

    try:
        return httpx.Client(
            follow_redirects=True,
            timeout=httpx.Timeout(silence_s, connect=CONNECT_S),
            event_hooks={"request": [secure]},
            transport=transport,
        )
    except (ValueError, ImportError, httpx.InvalidURL) as error:
        raise ModelError(
            f"the proxy in the environment cannot be used: {error}", "correct HTTPS_PROXY, or take it away"
        ) from error


def headers(start: int, validator: str) -> Mapping[str, str]:
    """Word the wish for a file from a byte on.

    Args:
        start: first byte wanted.
        validator: of the state of the file that the bytes before it are from; empty where that is not known.

    Returns:
        The request's headers. ``identity`` because a range of a compressed answer is no range of the file.
    """
    plain = {"Accept-Encoding": "identity"}
    if not start:
        return plain
    condition = {"If-Range": validator} if validator else {}
    return {**plain, "Range": f"bytes={start}-", **condition}


def read_answer(response: httpx.Response, asked: int) -> Answer:
    """Understand what a server is about to send.

    Args:
        response: its status and headers.
        asked: the first byte that was asked for.

    Returns:
        Where it starts, which may be 0 where the server knows no ranges or its file has changed. ``start`` equal to
        ``total_bytes`` means that nothing is missing.

    Raises:
        CutError: the server cannot at the moment.
        MirrorError: it does not have the file, or sends something else than its bytes.
    """
    status = response.status_code
    if status in _LATER:
        raise CutError(_says(response))
    found = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    total = int(found[2]) if found and found[2].isdigit() else 0
    if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and asked:
        return Answer(asked if total == asked else -1, total, "")
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise MirrorError(f"sends the file packed ({response.headers['Content-Encoding']})")
    if status == HTTPStatus.PARTIAL_CONTENT and found and found[1]:
        return Answer(int(found[1]), total, _validator(response))
    if status == HTTPStatus.OK:
        length = response.headers.get("Content-Length", "")
        return Answer(0, int(length) if length.isdigit() else 0, _validator(response))
    raise MirrorError(_says(response))


def _validator(response: httpx.Response) -> str:
    tag: str = response.headers.get("ETag", "")
    # A weak tag says "means the same", not "same bytes": it must not be used for ranges (RFC 9110, 13.1.5).
    return tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified", "")


def _says(response: httpx.Response) -> str:
    return f"answers {response.status_code} {response.reason_phrase}".strip()
