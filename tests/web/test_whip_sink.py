"""WHIP out, to the program's own WHIP door: pictures arrive, a server that goes is missed, and found again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("aiortc")

from realtime import config
from realtime.errors import ConfigError, SinkError
from realtime.meter import Meter
from realtime.sinks import SinkWish, open_sink, parse_output, whip
from realtime.sinks.whip import Whip
from realtime.types import Frame, Size
from realtime.web import server as server_module
from realtime.web.server import WebServer

LONG_S = 30.0


@contextmanager
def serving(port: int = 0) -> Iterator[WebServer]:
    settings = config.load(None, []).web.model_copy(update={"port": port})
    with closing(WebServer(settings, Meter())) as server:
        server.start()
        yield server


def until(met: Callable[[], object]) -> None:
    end_s = time.monotonic() + LONG_S
    while not met():
        assert time.monotonic() < end_s
        time.sleep(0.02)


def show(sink: Whip, level: int, count: int = 1) -> None:
    for number in range(count):
        sink.write(Frame(number, time.perf_counter(), np.full((240, 320, 3), level, np.uint8)))
        time.sleep(1 / 30)


def test_pictures_arrive_and_who_left_is_gone() -> None:
    before = threading.active_count()
    with serving() as server:
        spec = parse_output(f"whip:{server.station.url}/whip")
        sink: Any = open_sink(spec, SinkWish(Size(320, 240), 30))
        assert server.station.whip.who
        levels: list[float] = []
        end_s = time.monotonic() + LONG_S
        while len(levels) < 5 and time.monotonic() < end_s:
            show(sink, 90)
            if arrival := server.station.whip.take(0):
                levels.append(float(arrival.picture.to_ndarray(format="bgr24").mean()))
        assert np.abs(np.array(levels) - 90).max() < 8
        sink.close()
        sink.close()
        until(lambda: not server.station.whip.who)
    until(lambda: threading.active_count() <= before)


def test_a_server_that_goes_is_missed() -> None:
    with serving() as server:
        sink = Whip(f"{server.station.url}/whip", SinkWish(Size(320, 240), 30))
    with pytest.raises(SinkError, match="was lost") as caught:
        show(sink, 90, 600)
    assert not caught.value.fatal
    sink.close()


def test_a_server_that_wants_a_token_gets_it_and_nobody_else_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(server_module, "config_dir", lambda: tmp_path)
    monkeypatch.delenv(whip.TOKEN, raising=False)
    settings = config.load(None, []).web.model_copy(update={"port": 0, "host": "0.0.0.0", "tls": "off"})
    with closing(WebServer(settings, Meter())) as server:
        server.start()
        port = server.link.split(":")[2].split("/")[0]
        token = server.link.split("token=")[1]
        url = f"http://127.0.0.1:{port}/whip"
        with pytest.raises(SinkError, match="answers 401") as caught:
            Whip(f"{url}#wrong", SinkWish(Size(320, 240)))
        assert "wrong" not in caught.value.message
        Whip(f"{url}#{token}", SinkWish(Size(320, 240))).close()
        monkeypatch.setenv(whip.TOKEN, token)
        Whip(url, SinkWish(Size(320, 240))).close()


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/whip", "http://nosuch.invalid/whip"])
def test_nobody_there_is_an_error_in_words(url: str) -> None:
    with pytest.raises(SinkError, match="cannot be opened") as caught:
        Whip(url, SinkWish(Size(320, 240)))
    assert not caught.value.fatal


def test_what_is_no_offer_taker_is_refused() -> None:
    with serving() as server, pytest.raises(SinkError, match="answers 4"):
        Whip(f"{server.station.url}/healthz", SinkWish(Size(320, 240)))


@pytest.mark.parametrize("text", ["whip", "whip:", "whip:host/path", "whip:rtmp://host"])
def test_what_names_no_server_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="names no WHIP server"):
        parse_output(text)
