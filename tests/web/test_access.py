"""Who is let in: hosts, origins, tokens, sizes, rates; each refusal in words, and each guard seen to let others in."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("limits")

import httpx
import jwt

from realtime.errors import ConfigError
from realtime.web.access import PHOTO_BYTES, SDP_BYTES, Access, Door, is_this_machine
from realtime.web.tokens import TokenError, key_in, make_token, read_token

KEY = b"k" * 32
HERE = "http://127.0.0.1:8088"


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Says who came, and how much they sent."""
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    body = json.dumps({"who": scope["bearer"].name, "size": size}).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def ask(door: Door, path: str, method: str = "GET", times: int = 1, **how: Any) -> httpx.Response:
    async def go() -> httpx.Response:
        transport = httpx.ASGITransport(Access(echo, door), client=("192.0.2.7", 5))
        async with httpx.AsyncClient(transport=transport, base_url=how.pop("base", HERE)) as client:
            for _ in range(times):
                answer = await client.request(method, path, **how)
            return answer

    return asyncio.run(go())


ALONE, OPEN = Door(8088), Door(8088, key=KEY, secure=True)
FAR = "https://studio.test:8088"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.0.0.1:1"])
def test_on_this_machine_nobody_needs_a_token(host: str) -> None:
    assert ask(ALONE, "/api/state", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.test", "evil.test:8088", "", "127.0.0.1.evil.test", "8.8.8.8", "[::1"])
def test_a_name_that_was_pointed_at_this_machine_is_refused(host: str) -> None:
    assert ask(ALONE, "/", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("origin", ["http://evil.test", "null", "https://127.0.0.1:8088", "http://127.0.0.1:9"])
def test_pages_of_others_are_refused(origin: str) -> None:
    assert ask(ALONE, "/session", "POST", headers={"Origin": origin}).status_code == 403


def test_its_own_page_and_those_that_were_named_are_let_in() -> None:
    assert ask(ALONE, "/session", "POST", headers={"Origin": HERE}).status_code == 200
    friend = Door(8088, origins=("https://friend.test",))
    assert ask(friend, "/session", "POST", headers={"Origin": "https://friend.test"}).status_code == 200


@pytest.mark.parametrize(
    ("scope", "path", "status"),
    [
        ("control", "/api/state", 200),
        ("control", "/whip", 200),
        ("view", "/whep", 200),
        ("view", "/whip", 403),
        ("view", "/api/orders", 403),
        ("view", "/session", 403),
        ("send", "/whip", 200),
        ("send", "/whip/abc", 200),
        ("send", "/whep", 403),
        ("send", "/metrics", 403),
    ],
)
def test_elsewhere_a_token_says_what_its_bearer_may_do(scope: Any, path: str, status: int) -> None:
    token = make_token(KEY, "ann", scope, 1)
    answer = ask(OPEN, path, base=FAR, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == status
    if status == 200:
        assert answer.json()["who"] == "ann"


@pytest.mark.parametrize("path", ["/", "/app.js", "/style.css", "/healthz"])
def test_the_pages_own_files_need_none(path: str) -> None:
    assert ask(OPEN, path, base=FAR).status_code == 200


@pytest.mark.parametrize("path", ["/api/state", "/metrics", "/ws", "/session", "/api/before.jpg", "/x/../api/state"])
def test_everything_else_does(path: str) -> None:
    answer = ask(OPEN, path, base=FAR)
    assert answer.status_code == 401
    assert answer.json() == {"error": "a token is missing", "try": "make one with: doppelcam token"}
    assert answer.headers["www-authenticate"] == "Bearer"


def forged() -> list[str]:
    good = make_token(KEY, "ann", "control", 1)
    head, body, mark = good.split(".")
    claims = jwt.decode(good, options={"verify_signature": False})
    none = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').rstrip(b"=").decode()
    return [
        "",
        "nonsense",
        f"{none}.{body}.",
        f"{head}.{body}.{mark[:-4]}AAAA",
        make_token(b"x" * 32, "ann", "control", 1),
        make_token(KEY, "ann", "control", -1),
        jwt.encode(claims, KEY * 2, algorithm="HS512"),
        *(jwt.encode({k: v for k, v in claims.items() if k != left}, KEY) for left in claims),
        jwt.encode({**claims, "aud": "other"}, KEY),
        jwt.encode({**claims, "iss": "other"}, KEY),
        jwt.encode({**claims, "scope": "root"}, KEY),
    ]


@pytest.mark.parametrize("token", forged())
def test_a_token_that_is_not_good_is_refused_without_being_repeated(token: str) -> None:
    answer = ask(OPEN, "/api/state", base=FAR, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 401
    assert not token or token not in answer.text


def test_a_websocket_carries_it_among_its_protocols() -> None:
    token = make_token(KEY, "ann", "control", 1)
    headers = {"Sec-WebSocket-Protocol": f"doppelcam, {token}"}
    assert ask(OPEN, "/api/state", base=FAR, headers=headers).status_code == 200


def test_who_guesses_tokens_has_to_wait() -> None:
    answer = ask(OPEN, "/api/state", times=12, base=FAR, headers={"Authorization": "Bearer guess"})
    assert answer.status_code == 429


def test_who_shares_an_address_with_a_guesser_does_not_wait() -> None:
    async def go() -> list[int]:
        client = httpx.ASGITransport(Access(echo, OPEN), client=("192.0.2.7", 5))
        good = {"Authorization": f"Bearer {make_token(KEY, 'ann', 'control', 1)}"}
        async with httpx.AsyncClient(transport=client, base_url=FAR) as web:
            heads = [{"Authorization": "Bearer guess"}] * 12 + [good]
            return [(await web.get("/api/state", headers=head)).status_code for head in heads]

    assert asyncio.run(go())[-2:] == [429, 200]


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_pages_of_others_embed_nothing(site: str) -> None:
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
    assert ask(ALONE, "/api/before.jpg", headers=headers).status_code == 403
    assert ask(ALONE, "/", headers=headers).status_code == 200  # a link to the page
    friend = Door(8088, origins=("https://friend.test",))
    assert ask(friend, "/api/state", headers={**headers, "Origin": "https://friend.test"}).status_code == 200
    for own in ("same-origin", "none"):
        assert ask(ALONE, "/api/before.jpg", headers={"Sec-Fetch-Site": own}).status_code == 200


def test_pages_of_others_do_not_use_up_what_its_own_page_may_ask() -> None:
    async def go() -> int:
        transport = httpx.ASGITransport(Access(echo, ALONE), client=("127.0.0.1", 5))
        async with httpx.AsyncClient(transport=transport, base_url=HERE) as web:
            for _ in range(60):
                await web.get("/api/state", headers={"Origin": "http://evil.test"})
            return (await web.get("/api/state", headers={"Origin": HERE})).status_code

    assert asyncio.run(go()) == 200


def test_what_a_stranger_sends_is_logged_in_plain_characters(caplog: pytest.LogCaptureFixture) -> None:
    ask(ALONE, "/%1b[2J%0aerror:%20forged", headers={"Host": "evil.test"})
    assert "192.0.2.7" in caplog.text
    assert "\x1b" not in caplog.text
    assert "\nerror" not in caplog.text


def test_offers_are_counted_and_the_pages_files_are_not() -> None:
    assert ask(ALONE, "/whep", "POST", times=61).status_code == 429
    assert ask(ALONE, "/app.js", times=60).status_code == 200


@pytest.mark.parametrize(("path", "most"), [("/whip", SDP_BYTES), ("/api/photos", PHOTO_BYTES)])
def test_a_body_that_is_too_large_is_refused_before_it_is_read(path: str, most: int) -> None:
    assert ask(ALONE, path, "POST", content=b"x" * (most + 1)).status_code == 413
    assert ask(ALONE, path, "POST", content=b"x" * 1000).json()["size"] == 1000


def test_a_body_that_does_not_say_how_large_it_is_ends_there() -> None:
    got: list[int] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        while (message := await receive())["type"] == "http.request":
            got.append(len(message["body"]))

    async def go() -> None:
        async def receive() -> Any:
            return {"type": "http.request", "body": b"x" * 30_000, "more_body": True}

        async def send(_: Any) -> None: ...

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/whip",
            "headers": [(b"host", b"127.0.0.1")],
            "client": None,
        }
        await Access(inner, ALONE)(scope, receive, send)

    asyncio.run(go())
    assert sum(got) <= SDP_BYTES


def test_what_is_this_machine() -> None:
    assert all(map(is_this_machine, ["127.0.0.1", "::1", "[::1]", "localhost", "127.8.8.8"]))
    assert not any(map(is_this_machine, ["0.0.0.0", "::", "192.168.0.2", "example.test", ""]))


def test_the_key_is_made_once_and_for_its_user_alone(tmp_path: Path) -> None:
    key = key_in(tmp_path / "new")
    assert key_in(tmp_path / "new") == key
    assert len(key) == 32
    assert (tmp_path / "new" / "web.key").stat().st_mode & 0o077 == 0
    (tmp_path / "new" / "web.key").write_bytes(b"short")
    with pytest.raises(ConfigError, match="damaged"):
        key_in(tmp_path / "new")


def test_a_token_is_read_as_it_was_made() -> None:
    bearer = read_token(KEY, make_token(KEY, "ann", "view", 1))
    assert (bearer.name, bearer.scope, bearer.may("view"), bearer.may("send")) == ("ann", "view", True, False)
    with pytest.raises(TokenError, match="expired"):
        read_token(KEY, make_token(KEY, "ann", "view", 1, clock=lambda: 1e9))
