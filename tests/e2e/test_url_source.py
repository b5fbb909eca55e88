"""Real streams over loopback: MPEG-TS by UDP and motion JPEG by HTTP, slow readers, drops, silence and refusals."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import av
import cv2
import pytest

from realtime.errors import ConfigError, SourceError
from realtime.sources import SourceWish, url
from realtime.sources.url import UrlSource, without_password
from tests.clips import make_clip, make_song, number_of, numbered

FPS = 30


class Sender:
    """Sends numbered pictures at a steady rate until told to stop; ``sent`` is the number of the last one."""

    def __init__(self, send: Callable[[int], None]) -> None:
        self.sent = -1
        self._send = send
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        start_s = time.perf_counter()
        for number in range(4000):
            if self._stop.wait(max(0.0, start_s + number / FPS - time.perf_counter())):
                return
            self._send(number)
            self.sent = number

    def __enter__(self) -> Sender:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def free_udp_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def udp() -> Iterator[tuple[str, Sender]]:
    """A running MPEG-TS sender with a key frame every 10 pictures."""
    port = free_udp_port()
    with av.open(f"udp://127.0.0.1:{port}?pkt_size=1316", "w", format="mpegts") as out:
        stream = out.add_stream("libx264", rate=FPS)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = 192, 96, "yuv420p"
        stream.options = {"preset": "ultrafast", "tune": "zerolatency", "g": "10"}

        def send(number: int) -> None:
            frame = av.VideoFrame.from_ndarray(numbered(number), format="bgr24")
            frame.pts, frame.time_base = number, Fraction(1, FPS)
            out.mux(stream.encode(frame))

        with Sender(send) as sender:
            yield f"udp://127.0.0.1:{port}", sender


class Camera(BaseHTTPRequestHandler):
    """An HTTP camera; the path says how it behaves."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (name given by the base class)
        del format, args

    def do_GET(self) -> None:
        paths = {"/live": self.live, "/drop": self.drop, "/mute": self.mute, "/page": self.page}
        with contextlib.suppress(OSError):  # the reader went away
            paths.get(self.path, self.missing)()

    def live(self) -> None:
        self._head()
        site = self.server
        assert isinstance(site, Site)
        sender = Sender(self._picture)
        site.senders.append(sender)
        sender._run()

    def drop(self) -> None:
        self._head()
        for number in range(20):
            self._picture(number)

    def mute(self) -> None:
        self._head()
        for number in range(20):
            self._picture(number)
        site = self.server
        assert isinstance(site, Site)
        site.over.wait(20)

    def page(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<html>log in, please</html>" * 50)

    def missing(self) -> None:
        self.send_error(404)

    def _head(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=shot")
        self.end_headers()

    def _picture(self, number: int) -> None:
        jpeg = cv2.imencode(".jpg", numbered(number))[1].tobytes()
        head = f"--shot\r\nContent-Type: image/jpeg\r\nContent-Length: {len(jpeg)}\r\n\r\n"
        self.wfile.write(head.encode() + jpeg + b"\r\n")


class Site(ThreadingHTTPServer):
    """The server that cameras live on."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Camera)
        self.senders: list[Sender] = []
        self.over = threading.Event()


@pytest.fixture
def site() -> Iterator[Site]:
    server = Site()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.over.set()
    for sender in server.senders:
        sender._stop.set()
    server.shutdown()
    thread.join()
    server.server_close()


def address(site: Site, path: str, user: str = "") -> str:
    return f"http://{user}127.0.0.1:{site.server_port}{path}"


def behind(source: UrlSource, sender: Sender, reads: int, pause_s: float) -> list[int]:
    """How many pictures had been sent beyond the one that each read gave."""
    lags = []
    for _ in range(reads):
        frame = source.read()
        lags.append(sender.sent - number_of(frame.pixels))
        time.sleep(pause_s)
    return lags


def test_udp_is_read_and_stamped(udp: tuple[str, Sender]) -> None:
    source = UrlSource(udp[0], SourceWish())
    assert source.info.size == (192, 96)
    assert source.info.live
    assert "h264 192x96 in mpegts" in source.info.facts
    before_s = time.perf_counter()
    frames = [source.read() for _ in range(20)]
    source.close()
    numbers = [number_of(frame.pixels) for frame in frames]
    assert numbers == sorted(set(numbers))
    assert len({frame.seq - number for frame, number in zip(frames, numbers, strict=True)}) == 1
    assert before_s < frames[0].t_capture_s < frames[-1].t_capture_s <= time.perf_counter()


def test_a_udp_reader_four_times_too_slow_stays_near_the_newest(udp: tuple[str, Sender]) -> None:
    source = UrlSource(udp[0], SourceWish())
    lags = behind(source, udp[1], reads=20, pause_s=4 / FPS)
    source.close()
    # A reader that took every picture would be 60 behind in the end.
    assert max(lags[5:]) <= 15


def test_an_http_reader_four_times_too_slow_stays_near_the_newest(site: Site) -> None:
    source = UrlSource(address(site, "/live"), SourceWish())
    lags = behind(source, site.senders[-1], reads=20, pause_s=4 / FPS)
    source.close()
    assert max(lags[5:]) <= 15


def test_a_counted_stream_claims_no_rate(site: Site) -> None:
    source = UrlSource(address(site, "/live"), SourceWish())
    assert source.info.fps == 0
    source.close()


def test_a_stream_that_ends_may_be_opened_again(site: Site) -> None:
    source = UrlSource(address(site, "/drop"), SourceWish())
    with pytest.raises(SourceError, match="ended") as caught:
        [source.read() for _ in range(30)]
    assert not caught.value.fatal
    source.close()


def test_a_stream_that_falls_silent_is_an_error_in_time(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(url, "READ_TIMEOUT_S", 0.5)
    source = UrlSource(address(site, "/mute"), SourceWish())
    with pytest.raises(SourceError, match="silent") as caught:
        [source.read() for _ in range(30)]
    assert not caught.value.fatal
    source.close()


def test_closing_does_not_wait_for_a_silent_stream(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(url, "READ_TIMEOUT_S", 1.0)
    source = UrlSource(address(site, "/mute"), SourceWish())
    errors: list[SourceError] = []

    def reader() -> None:
        try:
            while True:
                source.read()
        except SourceError as error:
            errors.append(error)

    thread = threading.Thread(target=reader)
    thread.start()
    source.close()
    thread.join(15)
    assert not thread.is_alive()
    assert [error.fatal for error in errors] == [False]


def test_refusals_are_clear_and_hide_the_password(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(url, "OPEN_TIMEOUT_S", 1.0)
    for target, message in (
        (address(site, "/none", "me:secret@"), "404"),
        (address(site, "/page", "me:secret@"), "cannot be opened"),
        ("rtsp://me:secret@127.0.0.1:9/1", "refused"),
        (f"udp://me:secret@127.0.0.1:{free_udp_port()}", "no answer for 1 s"),
    ):
        with pytest.raises(SourceError, match=message) as caught:
            UrlSource(target, SourceWish())
        assert "secret" not in caught.value.message + caught.value.hint
        assert caught.value.hint
        assert not caught.value.fatal


def test_a_protocol_that_this_ffmpeg_lacks_and_an_unknown_one() -> None:
    with pytest.raises((SourceError, ConfigError)) as caught:
        UrlSource("srt://127.0.0.1:9", SourceWish())
    assert caught.value.hint
    with pytest.raises(ConfigError, match="no stream address"):
        UrlSource("not an address", SourceWish())


def test_a_recording_behind_an_address_and_a_stream_of_sound(tmp_path: Path) -> None:
    clip = make_clip(tmp_path / "clip.mp4", map(numbered, range(10)))
    song = make_song(tmp_path / "song.mp4")

    class Files(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (name given by the base class)
            del format, args

        def do_GET(self) -> None:
            data = (clip if self.path == "/clip.mp4" else song).read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    with ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        base = f"http://127.0.0.1:{server.server_port}"
        for name, message in (("clip.mp4", "is a recording"), ("song.mp4", "is a recording|no picture")):
            with pytest.raises(SourceError, match=message) as caught:
                UrlSource(f"{base}/{name}", SourceWish())
            assert caught.value.fatal
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("rtsp://me:pw@cam/1", "rtsp://***@cam/1"),
        ("rtsp://me:p@w@cam/1", "rtsp://***@cam/1"),
        ("http://cam/x?at=a@b", "http://cam/x?at=a@b"),
    ],
)
def test_passwords_are_hidden(address: str, shown: str) -> None:
    assert without_password(address) == shown
