"""Live streams out, to real receivers: the pictures come, in their colours; what hangs or dies holds nothing up."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from realtime.errors import ConfigError, SinkError
from realtime.sinks import SinkWish, open_sink, parse_output, stream
from realtime.sinks.stream import Stream, shown
from realtime.types import U8, Frame, Size

SIZE = Size(640, 360)
COLOUR = (200, 60, 30)
RECEIVER = """
import sys, av
from realtime.sources.decoding import to_bgr
options = {"listen": "1"} if sys.argv[1].startswith(("rtmp", "tcp")) else {}
print("ready", flush=True)
with av.open(sys.argv[1], options=options) as container:
    for number, frame in enumerate(container.decode(video=0)):
        if number == int(sys.argv[2]):
            print(frame.width, frame.height, *to_bgr(frame)[100:200, 100:200].mean((0, 1)).round(), flush=True)
            break
"""


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port: int = taken.getsockname()[1]
        return port


@pytest.fixture
def receive() -> Iterator[Any]:
    """Starts a receiver of one address in a process of its own."""
    started: list[subprocess.Popen[str]] = []

    def start(address: str, pictures: int = 10) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", RECEIVER, address, str(pictures)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def picture() -> U8:
    return np.full((SIZE.h, SIZE.w, 3), COLOUR, np.uint8)


def connect(address: str, patience_s: float = 20.0) -> Stream:
    end_s = time.monotonic() + patience_s
    while True:
        try:
            return Stream(address, SinkWish(SIZE, 30))
        except SinkError:
            if time.monotonic() > end_s:
                raise
            time.sleep(0.2)


def send(sink: Stream, pictures: list[U8], count: int) -> None:
    for number in range(count):
        sink.write(Frame(number, time.perf_counter(), pictures[number % len(pictures)]))
        time.sleep(1 / 60)


def send_until(sink: Stream, process: subprocess.Popen[str], patience_s: float = 40.0) -> str:
    """Send until the receiver has said what it saw."""
    answer: list[str] = []
    assert process.stdout is not None
    reader = threading.Thread(target=lambda: answer.append(process.stdout.readline()))  # type: ignore[union-attr]
    reader.start()
    end_s, number = time.monotonic() + patience_s, 0
    while reader.is_alive() and time.monotonic() < end_s:
        try:
            sink.write(Frame(number, time.perf_counter(), picture()))
        except SinkError:
            break  # the receiver has seen enough and is gone
        number += 1
        time.sleep(1 / 30)
    reader.join(10)
    return answer[0]


@pytest.mark.parametrize("scheme", ["udp", "rtmp", "tcp"])
def test_the_pictures_arrive_in_their_colours(receive: Any, scheme: str) -> None:
    address = f"{scheme}://127.0.0.1:{free_port()}" + ("/live/key" if scheme == "rtmp" else "")
    process = receive(address)
    with closing(connect(address)) as sink:
        width, height, *colour = (float(word) for word in send_until(sink, process).split())
    assert (width, height) == SIZE
    assert np.abs(np.array(colour) - COLOUR).max() <= 6


def test_a_server_that_went_away_and_came_back_is_found_again(receive: Any) -> None:
    address = f"rtmp://127.0.0.1:{free_port()}/live/key"
    for _ in range(2):
        process = receive(address)
        with closing(connect(address)) as sink:
            assert send_until(sink, process)
            process.kill()
            process.wait()
            with pytest.raises(SinkError, match="was lost") as caught:
                send(sink, [picture()], 300)
            assert not caught.value.fatal


def test_a_server_that_says_nothing_holds_up_neither_start_nor_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "OPEN_S", 2.0)
    before = threading.active_count()
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        address = f"rtmp://127.0.0.1:{silent.getsockname()[1]}/live/secret"
        with pytest.raises(SinkError, match="no answer for 2 s") as caught:
            Stream(address, SinkWish(SIZE, 30))
    assert "secret" not in caught.value.message + caught.value.hint
    assert threading.active_count() <= before


def test_a_reader_that_takes_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "WRITE_S", 0.5)
    dice = np.random.default_rng(1)
    with closing(socket.create_server(("127.0.0.1", 0))) as stuck:
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sink = Stream(f"tcp://127.0.0.1:{stuck.getsockname()[1]}", SinkWish(SIZE, 30))
        with pytest.raises(SinkError, match="nothing was taken") as caught:
            send(sink, [dice.integers(0, 255, (360, 640, 3)).astype(np.uint8) for _ in range(4)], 3000)
        assert not caught.value.fatal
        sink.close()
        sink.close()


@pytest.mark.parametrize("address", ["rtmp://127.0.0.1:1/live/secret", "tcp://127.0.0.1:1"])
def test_nobody_there_is_an_error_in_words_that_tells_no_key(address: str) -> None:
    with pytest.raises(SinkError, match="cannot be opened: connection refused") as caught:
        open_sink(parse_output(address), SinkWish(SIZE, 30))
    assert "secret" not in caught.value.message
    assert not caught.value.fatal


def test_what_an_address_shows() -> None:
    assert shown("rtmp://me:pw@host:1935/live/key?x=1") == "rtmp://host:1935/..."
    assert shown("udp://10.0.0.1:5000") == "udp://10.0.0.1:5000"


@pytest.mark.parametrize("text", ["ftp://host/x", "http://host", "stream:", "stream:rtmp"])
def test_what_is_no_stream_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_output(text)
