"""Peers by real WebRTC on this machine: who sends is seen, who watches sees, and nothing is left of who has gone."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from fractions import Fraction
from typing import Any

import av
import numpy as np
import psutil
import pytest

pytest.importorskip("aiortc")

from aiortc import MediaStreamTrack, RTCPeerConnection, RTCRtpSender, RTCSessionDescription
from aiortc.jitterbuffer import JitterFrame
from aiortc.mediastreams import MediaStreamError
from aiortc.sdp import SessionDescription

from realtime import config
from realtime.config.settings import WebSettings
from realtime.types import U8, Frame
from realtime.web import peers as peers_module
from realtime.web.audio import Sound
from realtime.web.peers import PeerError, Peers
from realtime.web.receive import MOST_WAITING, DecodeQueue
from realtime.web.sdp import with_bitrate
from realtime.web.send import MOST_WAITING as MOST_PACKETS
from realtime.web.send import EncodedTrack
from realtime.web.station import Inlet, Station

LONG_S = 20.0
"""A busy machine is given so long for what takes a fraction of a second."""


def made(**changes: Any) -> WebSettings:
    return config.load(None, []).web.model_copy(update=changes)


def grey(level: int, width: int = 320, height: int = 240) -> U8:
    return np.full((height, width, 3), level, np.uint8)


class Camera(MediaStreamTrack):
    """Grey pictures, each a little brighter."""

    kind = "video"

    def __init__(self, fps: float = 30.0) -> None:
        super().__init__()
        self.count, self.fps = 0, fps

    async def recv(self) -> av.VideoFrame:
        await asyncio.sleep(1 / self.fps)
        frame = av.VideoFrame.from_ndarray(grey(40 + self.count % 150), format="bgr24")
        frame.pts, frame.time_base = self.count * round(90_000 / self.fps), Fraction(1, 90_000)
        self.count += 1
        return frame


class House:
    """A station with its peers, and somebody who shows pictures."""

    def __init__(self, **changes: Any) -> None:
        self.station, self.events = Station("http://here"), list[str]()
        self.peers = Peers(self.station, made(**changes), on_event=self.events.append)
        self._showing: asyncio.Task[None] | None = None
        self._clients: list[RTCPeerConnection] = []

    async def __aenter__(self) -> House:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._showing:
            self._showing.cancel()
        await self.peers.close_all()
        for client in self._clients:
            await client.close()

    def show(self, level: int = 120) -> None:
        async def go() -> None:
            number = 0
            while True:
                self.station.outlet.show(Frame(number, time.perf_counter(), grey(level)))
                number += 1
                await asyncio.sleep(1 / 30)

        self._showing = asyncio.create_task(go())

    async def admit(self, client: RTCPeerConnection, sends: Inlet | None = None, *, watches: bool = False) -> str:
        self._clients.append(client)
        await client.setLocalDescription(await client.createOffer())
        answer = await self.peers.answer(client.localDescription.sdp, "somebody", sends=sends, watches=watches)
        await client.setRemoteDescription(RTCSessionDescription(answer.sdp, "answer"))
        return answer.peer_id


def run(body: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(body(), 3 * LONG_S))


async def until(met: Callable[[], object]) -> None:
    end_s = time.monotonic() + LONG_S
    while not met():
        assert time.monotonic() < end_s
        await asyncio.sleep(0.02)


async def see(client: RTCPeerConnection, count: int) -> list[av.VideoFrame]:
    track = client.getReceivers()[0].track
    frames: list[Any] = [await asyncio.wait_for(track.recv(), LONG_S) for _ in range(count)]
    return frames


@pytest.mark.parametrize("codec", ["h264", "vp8"])
def test_who_sends_is_seen_and_who_leaves_is_missed(codec: str) -> None:
    async def body() -> None:
        async with House(codec=codec) as house:
            client = RTCPeerConnection()
            client.addTrack(Camera())
            await house.admit(client, house.station.whip)
            levels: list[float] = []
            while len(levels) < 20:
                arrival = await asyncio.to_thread(house.station.whip.take, LONG_S)
                assert arrival is not None
                levels.append(arrival.picture.to_ndarray(format="gray").mean())
            assert levels == sorted(levels)
            assert house.station.whip.who == "somebody"
            assert house.peers.describe()[0].kind == "sends"
            await client.close()
            await until(lambda: not house.station.whip.who)
            await until(lambda: not house.peers.describe())
            await until(lambda: house.events[-1] == "somebody has left")

    run(body)


@pytest.mark.parametrize("codec", ["h264", "vp8"])
def test_who_watches_sees_the_picture_and_its_first_one_stands_for_itself(codec: str) -> None:
    async def body() -> None:
        async with House(codec=codec) as house:
            house.show(120)
            for _ in range(2):  # the second joins an encoding that goes on
                client = RTCPeerConnection()
                client.addTransceiver("video", "recvonly")
                await house.admit(client, watches=True)
                first, *_, last = await see(client, 8)
                assert (first.width, first.height) == (320, 240)
                assert abs(first.to_ndarray(format="bgr24").mean() - 120) < 8
                assert abs(last.to_ndarray(format="bgr24").mean() - 120) < 8
            assert house.station.outlet.viewers == ("somebody", "somebody")

    run(body)


def test_a_browser_is_camera_and_screen_at_once() -> None:
    async def body() -> None:
        async with House() as house:
            house.show(90)
            client = RTCPeerConnection()
            client.addTrack(Camera())
            await house.admit(client, house.station.browser, watches=True)
            assert await asyncio.to_thread(house.station.browser.take, LONG_S)
            (frame,) = await see(client, 1)
            assert abs(frame.to_ndarray(format="bgr24").mean() - 90) < 8
            assert house.peers.describe()[0].kind == "sends and watches"

    run(body)


def test_a_page_that_is_loaded_again_takes_the_place_of_itself() -> None:
    async def body() -> None:
        async with House() as house:
            clients = []
            for _ in range(2):
                client = RTCPeerConnection()
                client.addTrack(Camera())
                await house.admit(client, house.station.browser)
                clients.append(client)
            await until(lambda: len(house.peers.describe()) == 1)
            assert await asyncio.to_thread(house.station.browser.take, LONG_S)
            assert house.station.browser.who == "somebody"

    run(body)


def test_who_comes_and_goes_leaves_nothing_behind() -> None:
    async def body() -> None:
        async with House() as house:
            house.show()

            async def visit() -> None:
                client = RTCPeerConnection()
                client.addTransceiver("video", "recvonly")
                peer_id = await house.admit(client, watches=True)
                await see(client, 2)
                assert await house.peers.close(peer_id)
                await client.close()

            await visit()
            await asyncio.sleep(0.5)
            before = len(asyncio.all_tasks()), threading.active_count()
            for _ in range(4):
                await visit()
            assert not house.peers.describe()
            assert house.station.outlet._watchers == ()
            await until(lambda: (len(asyncio.all_tasks()), threading.active_count()) <= before)

    run(body)


def test_who_is_displaced_while_still_being_answered_leaves_no_socket() -> None:
    async def body() -> None:
        async with House() as house:
            client = RTCPeerConnection()
            client.addTrack(Camera())
            await client.setLocalDescription(await client.createOffer())
            offer, before = client.localDescription.sdp, psutil.Process().num_fds()
            answers = (house.peers.answer(offer, "one", sends=house.station.browser, watches=True) for _ in range(6))
            await asyncio.gather(*answers)
            await until(lambda: len(house.peers.describe()) == 1)
            await house.peers.close_all()
            await until(lambda: psutil.Process().num_fds() <= before)
            await client.close()

    run(body)


def test_it_is_full_when_it_is_full() -> None:
    async def body() -> None:
        async with House(peers=1) as house:
            for full in (False, True):
                client = RTCPeerConnection()
                client.addTransceiver("video", "recvonly")
                if not full:
                    await house.admit(client, watches=True)
                    continue
                with pytest.raises(PeerError, match="the most") as caught:
                    await house.admit(client, watches=True)
                assert caught.value.status == 503

    run(body)


@pytest.mark.parametrize(
    ("offer", "status"), [("", 406), ("nonsense", 400), ("v=0\r\n", 406), ("v=0\r\nm=video x", 400), ("\0" * 99, 400)]
)
def test_what_is_no_offer_is_refused_and_leaves_nothing(offer: str, status: int) -> None:
    async def body() -> None:
        async with House() as house:
            with pytest.raises(PeerError) as caught:
                await house.peers.answer(offer, "somebody", sends=house.station.whip, watches=False)
            assert caught.value.status in {status, 400, 406}
            assert not house.peers.describe()
            assert not house.station.whip.who

    run(body)


def test_a_format_that_is_not_spoken_is_refused() -> None:
    async def body() -> None:
        async with House(codec="vp8") as house:
            client = RTCPeerConnection()
            known = RTCRtpSender.getCapabilities("video").codecs
            client.addTransceiver("video", "recvonly").setCodecPreferences([c for c in known if c.name == "H264"])
            await client.setLocalDescription(await client.createOffer())
            with pytest.raises(PeerError, match="no format") as caught:
                await house.peers.answer(client.localDescription.sdp, "somebody", sends=None, watches=True)
            assert caught.value.status == 406
            assert not house.peers.describe()
            await client.close()

    run(body)


def test_who_never_connects_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers_module, "CONNECT_S", 0.2)

    async def body() -> None:
        async with House() as house:
            client = RTCPeerConnection()
            client.addTransceiver("video", "recvonly")
            await client.setLocalDescription(await client.createOffer())
            await house.peers.answer(client.localDescription.sdp, "somebody", sends=None, watches=True)
            await until(lambda: not house.peers.describe())
            assert "did not connect" in house.events[-1]
            await client.close()

    run(body)


class Packet:
    """Enough of an encoded picture."""

    def __init__(self, name: int, key: bool) -> None:
        self.name, self.is_keyframe = name, key


def test_a_viewer_that_does_not_keep_up_goes_on_at_a_key_picture() -> None:
    async def body() -> None:
        asked: list[int] = []
        track = EncodedTrack(lambda: asked.append(1), lambda: None)
        track.read = True
        for name in range(34):
            track.push(Packet(name, key=name in (2, 30)))  # type: ignore[arg-type]
        assert asked
        got: list[Any] = [await track.recv() for _ in range(len(track._packets))]
        assert len(got) <= MOST_PACKETS
        assert got[0].name == 30
        assert [packet.name for packet in got] == list(range(30, 30 + len(got)))
        waiting = asyncio.create_task(track.recv())
        await asyncio.sleep(0)
        track.stop()
        with pytest.raises(MediaStreamError):
            await waiting

    run(body)


def test_a_viewer_that_never_connects_asks_for_nothing() -> None:
    async def body() -> None:
        asked: list[str] = []
        track = EncodedTrack(lambda: asked.append("key"), lambda: asked.append("begin"))
        for name in range(34):
            track.push(Packet(name, key=name == 30))  # type: ignore[arg-type]
        assert not asked
        assert not track._packets
        waiting = asyncio.create_task(track.recv())
        await asyncio.sleep(0)
        assert asked == ["begin"]
        track.stop()
        with pytest.raises(MediaStreamError):
            await waiting

    run(body)


def test_a_decoder_that_does_not_keep_up_goes_on_at_a_key_picture() -> None:
    lost = threading.Event()
    waiting = DecodeQueue(lost)
    for name in range(100):
        data = bytes([0x10 if name in (0, 90) else 0x11, name])
        waiting.put(("vp8", JitterFrame(data, name)))
    waiting.put(None)
    assert lost.is_set()
    got = []
    while (item := waiting.get()) is not None:
        got.append(item[1].timestamp)
    assert len(got) <= MOST_WAITING
    assert got == list(range(90, 100))


def test_sound_is_held_back_as_long_as_its_picture_takes() -> None:
    async def body() -> None:
        sound = Sound(lambda: 0.2)
        track, loop = sound.join(), asyncio.get_running_loop()
        piece = av.AudioFrame(format="s16", layout="stereo", samples=960)
        begun_s = loop.time()
        track.push(piece)
        assert await track.recv() is piece
        assert loop.time() - begun_s >= 0.19
        for _ in range(500):
            track.push(piece)
        assert len(track._pieces) <= 100
        track.stop()

    run(body)


def test_a_sender_is_asked_for_full_pictures_and_a_viewer_is_not() -> None:
    async def body() -> None:
        client = RTCPeerConnection()
        client.addTransceiver("video", "recvonly")
        offer = (await client.createOffer()).sdp
        await client.close()
        told = with_bitrate(offer, 2500)
        assert "x-google-start-bitrate=2000;x-google-max-bitrate=2500" in told
        codecs = SessionDescription.parse(told).media[0].rtp.codecs
        assert len(codecs) == len(SessionDescription.parse(offer).media[0].rtp.codecs)
        for codec in codecs:
            assert ("x-google-max-bitrate" in codec.parameters) == (codec.name in ("H264", "VP8"))
        viewing = offer.replace("a=recvonly", "a=sendonly")
        assert with_bitrate(viewing, 2500) == viewing

    run(body)
