"""The web server of a run: where it listens, who may come, how it ends."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

pytest.importorskip("uvicorn")

import httpx
from aiortc import RTCPeerConnection, RTCSessionDescription

from realtime import config
from realtime.config.settings import WebSettings
from realtime.emitter import Emitter
from realtime.errors import ConfigError, SinkError, SourceError
from realtime.meter import Meter
from realtime.placard import placard
from realtime.sinks import SinkSpec, SinkWish, open_sink
from realtime.sources import SourceSpec, SourceWish, open_source
from realtime.types import Frame, Size
from realtime.web import server as server_module
from realtime.web import tls
from realtime.web.server import WebServer
from realtime.web.station import Station


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(server_module, "config_dir", lambda: tmp_path)


def made(**changes: Any) -> WebSettings:
    return config.load(None, []).web.model_copy(update={"port": 0, **changes})


def test_it_serves_page_health_and_figures_and_ends_at_once() -> None:
    meter, before = Meter(), threading.active_count()
    with closing(WebServer(made(), meter)) as server:
        server.start()
        page = httpx.get(server.link)
        assert "doppelcam" in page.text
        assert "default-src 'self'" in page.headers["content-security-policy"]
        assert httpx.get(f"{server.station.url}/healthz").status_code == 503
        for number in range(5):
            meter.processed(time.perf_counter(), 3.0 + number)
        meter.delivered("webrtc", 12.0)
        meter.drop("capture", 2)
        assert httpx.get(f"{server.station.url}/healthz").json()["ok"]
        text = httpx.get(f"{server.station.url}/metrics").text
        assert "doppelcam_frames_total 5.0" in text
        assert 'doppelcam_latency_seconds{output="webrtc",quantile="0.5"} 0.012' in text
        assert 'doppelcam_dropped_frames_total{cause="capture"} 2.0' in text
        assert httpx.get(f"{server.station.url}/nothing").status_code == 404
        begun_s = time.monotonic()
    assert time.monotonic() - begun_s < 20
    end_s = time.monotonic() + 20  # its encoders' threads end by themselves
    while threading.active_count() > before and time.monotonic() < end_s:
        time.sleep(0.05)
    assert threading.active_count() <= before
    with pytest.raises(httpx.ConnectError):
        httpx.get(server.link)


def test_a_port_that_is_taken_is_an_error_in_words() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        with pytest.raises(SinkError, match="another program listens on port") as caught:
            WebServer(made(port=other.getsockname()[1]), Meter())
        assert "web.port" in caught.value.hint


def test_an_address_that_this_machine_lacks_is_an_error_in_words() -> None:
    with pytest.raises(SinkError, match="cannot be listened on"):
        WebServer(made(host="203.0.113.9"), Meter())


def test_whip_and_whep_answer_as_the_standard_says() -> None:
    async def go(url: str) -> None:
        client = RTCPeerConnection()
        client.addTransceiver("video", "recvonly")
        await client.setLocalDescription(await client.createOffer())
        async with httpx.AsyncClient(base_url=url) as web:
            sdp = {"Content-Type": "application/sdp"}
            answer = await web.post("/whep", content=client.localDescription.sdp, headers=sdp)
            assert answer.status_code == 201
            assert answer.headers["content-type"].startswith("application/sdp")
            await client.setRemoteDescription(RTCSessionDescription(answer.text, "answer"))
            assert (await web.delete(answer.headers["location"])).status_code == 200
            assert (await web.delete(answer.headers["location"])).status_code == 404
            assert (await web.post("/whip", content="v=0", headers={"Content-Type": "text/plain"})).status_code == 415
            assert (await web.post("/whip", content="v=0", headers=sdp)).status_code in (400, 406)
            assert (await web.post("/whip", content=b"\xff\xfe", headers=sdp)).status_code == 400
            assert (await web.options("/whip")).headers["accept-post"] == "application/sdp"
            assert (await web.patch("/whip/x", content="x")).status_code == 405
            assert (await web.get("/whip")).status_code in (404, 405)
        await client.close()

    with closing(WebServer(made(), Meter())) as server:
        server.start()
        asyncio.run(go(server.station.url))


def test_elsewhere_it_speaks_tls_and_asks_for_the_token_of_the_link(tmp_path: Path) -> None:
    with closing(WebServer(made(host="0.0.0.0"), Meter())) as server:
        server.start()
        port = server.link.split(":")[2].split("/")[0]
        url, token = f"https://127.0.0.1:{port}", server.link.split("token=")[1]
        seen = tmp_path / "seen.pem"
        seen.write_text(ssl.get_server_certificate(("127.0.0.1", int(port))))
        fingerprint = tls._fingerprint(seen)
        assert any(fingerprint in text for _, text in server.facts)
        with httpx.Client(verify=False, base_url=url) as web:
            assert web.get("/").status_code == 200
            assert web.get("/metrics").status_code == 401
            assert web.get("/metrics", headers={"Authorization": f"Bearer {token}"}).status_code == 200
        assert token not in server.station.url


def test_who_wants_no_encryption_has_to_say_so_and_is_told_what_that_means() -> None:
    with closing(WebServer(made(host="0.0.0.0", tls="off"), Meter())) as server:
        server.start()
        assert server.link.startswith("http://")
        assert any("WITHOUT ENCRYPTION" in text for _, text in server.facts)
        assert httpx.get(f"http://127.0.0.1:{server.link.split(':')[2].split('/')[0]}/metrics").status_code == 401


def test_its_own_certificate_is_kept_and_made_anew_for_another_name(tmp_path: Path) -> None:
    first = tls.own_in(tmp_path, "192.0.2.1")
    assert tls.own_in(tmp_path, "192.0.2.1").fingerprint == first.fingerprint
    assert tls.own_in(tmp_path, "192.0.2.2").fingerprint != first.fingerprint
    assert first.key.stat().st_mode & 0o077 == 0
    assert tls.given(str(first.chain), str(first.key)).own is False


@pytest.mark.parametrize(("chain", "key"), [("a.pem", ""), ("", "a.pem"), ("no.pem", "no.pem")])
def test_a_certificate_that_cannot_be_used_is_an_error_in_words(chain: str, key: str) -> None:
    with pytest.raises(ConfigError):
        tls.given(chain, key)


def test_what_a_peer_sends_is_a_source() -> None:
    station = Station("http://here")
    with pytest.raises(SourceError, match="web server"):
        open_source(SourceSpec("browser"), SourceWish())
    source = open_source(SourceSpec("browser"), SourceWish(station=station))
    assert source.info.patient
    seat = station.browser.occupy("ann", lambda: None)
    bgr = np.zeros((240, 320, 3), np.uint8)
    bgr[:, :160], bgr[:, 160:] = (200, 60, 30), (40, 180, 220)
    for kind in ("yuv420p", "yuv444p"):
        seat.offer(av.VideoFrame.from_ndarray(bgr, format="bgr24").reformat(format=kind))
        frame = source.read()
        assert frame is not None
        assert frame.size == Size(320, 240)
        assert np.abs(frame.pixels[:, 8:150].astype(int) - bgr[:, 8:150]).max() <= 6
    seat.leave()
    with pytest.raises(SourceError, match="sends no more") as caught:
        source.read()
    assert not caught.value.fatal
    source.close()


def test_who_waits_for_a_sender_can_stop_waiting() -> None:
    source = open_source(SourceSpec("whip"), SourceWish(station=Station()))
    threading.Timer(0.2, source.close).start()
    with pytest.raises(SourceError):
        source.read()


def test_viewers_get_every_shape_unchanged() -> None:
    station = Station("http://here")
    with pytest.raises(SinkError, match="web server"):
        open_sink(SinkSpec("webrtc"), SinkWish(Size(64, 48)))
    sink = open_sink(SinkSpec("webrtc"), SinkWish(Size(64, 48), station=station))
    emitter = Emitter(
        sink, lambda: sink, Meter(), lockstep=False, make_card=placard, on_event=lambda _: None, clock=time.perf_counter
    )
    for number, (height, width) in enumerate([(48, 64), (96, 41)]):
        time.sleep(0.05)
        emitter.inbox.put(Frame(number, time.perf_counter(), np.zeros((height, width, 3), np.uint8)))
        emitter.step(1.0)
        assert station.outlet.latest is not None
        assert station.outlet.latest.size == Size(width & ~1, height)
    emitter.close()
