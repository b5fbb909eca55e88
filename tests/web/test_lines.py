"""Connections that are held for nothing: bounded, let go of, named in the log; and whoever steers still gets in."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")

import httpx
from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from websockets.sync.client import connect

from realtime import config
from realtime.meter import Meter
from realtime.web import server as server_module
from realtime.web.doorlog import DoorLog, plain
from realtime.web.lines import Bounds, network_of
from realtime.web.server import WebServer

SOON_S = 8.0
"""By then something has happened, on however slow a machine."""


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(server_module, "config_dir", lambda: tmp_path)


def echo() -> APIRouter:
    router = APIRouter()

    @router.websocket("/ws")
    async def listen(socket: WebSocket) -> None:
        await socket.accept()
        with suppress(WebSocketDisconnect):
            while True:
                await socket.send_text(await socket.receive_text())

    return router


@contextmanager
def serving(host: str = "127.0.0.1", **bounds: Any) -> Iterator[int]:
    """A server that listens; gives its port."""
    settings = config.load(None, []).web.model_copy(update={"port": 0, "host": host})
    with closing(WebServer(settings, Meter(), bounds=Bounds(**bounds))) as server:
        server.start((echo(),))
        yield int(server.station.url.rpartition(":")[2])


def line(stack: ExitStack, port: int, says: bytes = b"", address: str = "127.0.0.1") -> socket.socket:
    one = stack.enter_context(socket.create_connection(("127.0.0.1", port), source_address=(address, 0)))
    one.sendall(says)
    one.settimeout(SOON_S)
    return one


def is_cut(one: socket.socket) -> bool:
    """Whether it ends soon; what was answered on it before is passed over."""
    try:
        while one.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def stays(one: socket.socket) -> bool:
    one.settimeout(0.3)
    try:
        return one.recv(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False


HALF_A_HEAD = b"POST /whip HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
HALF_A_BODY = (
    b"POST /whip HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/sdp\r\nContent-Length: 99\r\n\r\nv=0"
)


@pytest.mark.parametrize("says", [b"", HALF_A_HEAD], ids=["nothing", "half a head"])
def test_who_holds_a_connection_without_a_request_is_let_go(says: bytes) -> None:
    with serving(silent_s=0.5) as port, ExitStack() as stack:
        assert is_cut(line(stack, port, says))


def test_an_answer_is_no_leave_to_stay() -> None:
    with serving(silent_s=0.5) as port, ExitStack() as stack:
        one = line(stack, port, b"GET /nothing.svg HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert one.recv(65536).startswith(b"HTTP/1.1 404")
        one.sendall(b"G")  # uvicorn's own clock for such connections stops here
        assert is_cut(one)


def test_a_body_that_never_ends_is_let_go(caplog: pytest.LogCaptureFixture) -> None:
    with serving(request_s=0.5) as port, ExitStack() as stack:
        assert is_cut(line(stack, port, HALF_A_BODY))
    assert "127.0.0.1 took too long" in caplog.text


def test_a_page_that_listens_may_stay(caplog: pytest.LogCaptureFixture) -> None:
    with serving(silent_s=0.3, request_s=0.3) as port, connect(f"ws://127.0.0.1:{port}/ws") as page:
        time.sleep(2.5)  # two looks at who is silent
        page.send("still here")
        assert page.recv(timeout=SOON_S) == "still here"
    assert "Traceback" not in caplog.text


def test_one_visitor_may_not_take_all_connections(caplog: pytest.LogCaptureFixture) -> None:
    with serving(from_one=3) as port, ExitStack() as stack:
        mine = [line(stack, port, address="127.0.0.2") for _ in range(4)]
        assert is_cut(mine[3])
        assert all(map(stays, mine[:3]))
        assert httpx.get(f"http://127.0.0.1:{port}/").status_code == 200
        mine[0].close()
        deadline_s = time.monotonic() + SOON_S
        while not stays(line(stack, port, address="127.0.0.2")):  # there is room again
            assert time.monotonic() < deadline_s
    assert "127.0.0.2 is refused: it has 3 connections of 3" in caplog.text


def test_who_sits_at_this_machine_gets_in_where_no_stranger_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("realtime.web.lines._is_here", lambda network: network == "127.0.0.1")
    with serving(most=2) as port, ExitStack() as stack:
        far = [line(stack, port, address=f"127.0.0.{number}") for number in (2, 3, 4)]
        assert is_cut(far[2])
        assert httpx.get(f"http://127.0.0.1:{port}/").status_code == 200


def test_who_speaks_no_tls_is_let_go() -> None:
    with serving("0.0.0.0", handshake_s=0.5) as port, ExitStack() as stack:
        assert is_cut(line(stack, port))
        unchecked = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
        assert httpx.get(f"https://127.0.0.1:{port}/", verify=unchecked).status_code == 200


def test_what_is_under_way_at_the_end_is_cut_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    before = threading.active_count()
    with ExitStack() as stack:
        with serving() as port:
            half = line(stack, port, HALF_A_BODY)
            silent = line(stack, port)
            time.sleep(0.2)
        assert is_cut(half)
        assert is_cut(silent)
    assert "Traceback" not in caplog.text
    assert threading.active_count() <= before


@pytest.mark.parametrize("says", [b"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", b"\x16\x03\x01\x02\x00", b"\r\n" * 2000])
def test_what_is_no_request_is_no_error_of_ours(says: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with serving(silent_s=0.5) as port, ExitStack() as stack:
        one = line(stack, port, says)
        answer = one.recv(65536)
        assert not answer or answer.split()[1] in (b"400", b"421")
    assert "Traceback" not in caplog.text


def test_one_machine_is_one_visitor() -> None:
    assert network_of("192.0.2.7") == "192.0.2.7"
    assert network_of("2001:db8::1") == network_of("2001:db8::2:3:4:5") == "2001:db8::/64"
    assert network_of("2001:db8:0:1::1") != network_of("2001:db8::1")
    assert network_of("::ffff:192.0.2.7") == "192.0.2.7"
    assert network_of("fe80::1%eth0") == "fe80::1%eth0"
    assert network_of("::1") == "::1"
    assert network_of("unknown") == "unknown"


def test_nobody_writes_to_this_terminal_what_is_no_text() -> None:
    assert plain("a\x1b[2J\nerror: forged\u202e") == "a\\x1b[2J\\nerror: forged\\u202e"
    assert plain("für dich") == "für dich"
    assert len(plain("x" * 5000)) < 300


def test_the_log_names_everybody_and_is_flooded_by_nobody(caplog: pytest.LogCaptureFixture) -> None:
    door_log = DoorLog(logging.getLogger("door"))
    for _ in range(100):
        door_log.say("192.0.2.7", "is refused")
    door_log.say("192.0.2.8", "is refused")
    assert caplog.text.count("192.0.2.7") == 10
    assert caplog.text.count("no more of these") == 1
    assert caplog.text.count("192.0.2.8") == 1
    for number in range(1000):
        door_log.say(f"198.51.100.{number}", "is refused")
    assert len(caplog.records) == 200


def test_a_system_without_file_handles_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    loop_type, failures = asyncio.SelectorEventLoop, [OSError(24, "Too many open files")]
    accept = loop_type.sock_accept

    async def scarce(self: Any, sock: Any) -> Any:
        if failures:
            raise failures.pop()
        return await accept(self, sock)

    monkeypatch.setattr(loop_type, "sock_accept", scarce)
    with serving() as port:
        assert httpx.get(f"http://127.0.0.1:{port}/").status_code == 200
    assert not failures
