"""An OBS-like client sends to the real program by WHIP; a WHEP viewer sees and hears it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

import httpx
import numpy as np
import pytest

pytest.importorskip("aiortc", reason="aiortc is not installed: pip install -e '.[webrtc]'")

from aiortc import MediaStreamTrack, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame, VideoFrame

from tests.web.served import Program
from tests.web.viewer import number_of
from tests.web.whip_client import Film

pytestmark = pytest.mark.whip

TONE_HZ = 440


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, obs: Film) -> Iterator[Program]:
    del obs  # where it is missing nothing needs to start
    with Program(tmp_path_factory.mktemp("home"), "--input", "whip") as running:
        yield running


def until(true: Callable[[], object], what: str, patience_s: float = 15.0) -> None:
    end_s = time.monotonic() + patience_s
    while not true():
        assert time.monotonic() < end_s, what
        time.sleep(0.1)


async def watch(url: str, seconds: float) -> tuple[list[int | None], float]:
    """Watch by WHEP: the numbers of the pictures, and the loudest tone in Hz (0 without sound)."""
    numbers: list[int | None] = []
    sound: list[AudioFrame] = []
    tasks: list[asyncio.Task[None]] = []
    peer = RTCPeerConnection()
    peer.addTransceiver("video", "recvonly")
    peer.addTransceiver("audio", "recvonly")

    async def take(track: MediaStreamTrack) -> None:
        try:
            while True:
                frame = await track.recv()
                if isinstance(frame, VideoFrame):
                    numbers.append(number_of(frame))
                elif isinstance(frame, AudioFrame):
                    sound.append(frame)
        except MediaStreamError:
            return

    peer.on("track", lambda track: tasks.append(asyncio.ensure_future(take(track))))
    await peer.setLocalDescription(await peer.createOffer())
    async with httpx.AsyncClient() as client:
        headers = {"Content-Type": "application/sdp"}
        answer = await client.post(f"{url}/whep", content=peer.localDescription.sdp, headers=headers)
        assert answer.status_code == 201
        await peer.setRemoteDescription(RTCSessionDescription(answer.text, "answer"))
        await asyncio.sleep(seconds)
        await client.delete(f"{url}{answer.headers['Location']}")
    await peer.close()
    await asyncio.gather(*tasks)
    return numbers, loudest_hz(sound)


def loudest_hz(sound: list[AudioFrame]) -> float:
    if not sound:
        return 0.0
    samples = np.concatenate([frame.to_ndarray().reshape(-1, 2)[:, 0] for frame in sound[-50:]]).astype(np.float64)
    spectrum = np.abs(np.fft.rfft(samples - samples.mean()))
    if spectrum.max() < len(samples):
        return 0.0  # silence
    return float(spectrum.argmax() * sound[-1].sample_rate / len(samples))


def test_what_obs_sends_is_seen_and_heard(program: Program, obs: Film) -> None:
    client = obs.send(f"{program.url}/whip", 9)
    numbers, tone_hz = asyncio.run(watch(program.url, 6))
    run = client.finish(30)
    assert run.code == 0, run.events[-1]
    assert [event["status"] for event in run.of("deleted")] == [200]
    readable = [number for number in numbers if number is not None]
    assert len(set(readable)) > 20
    assert len(readable) > 0.9 * len(numbers) - 40  # before the first picture a card is shown
    assert abs(tone_hz - TONE_HZ) < 20


def test_a_client_that_died_leaves_room_for_the_next_one(program: Program, obs: Film) -> None:
    first = obs.send(f"{program.url}/whip", 60)
    until(lambda: frames(program) > 0, "pictures come")
    first.kill()
    before = frames(program)
    run = obs.send(f"{program.url}/whip", 4).finish(30)
    assert run.code == 0, run.events[-1]
    assert frames(program) > before + 30
    assert program.code is None


def test_what_is_not_welcome_is_told_so(program: Program) -> None:
    post = httpx.post(f"{program.url}/whip", content="v=0", headers={"Content-Type": "application/sdp"})
    assert post.status_code in {400, 406}
    assert post.json()["error"]
    assert httpx.post(f"{program.url}/whip", content="x", headers={"Content-Type": "text/plain"}).status_code == 415
    assert httpx.delete(f"{program.url}/whip/nobody").status_code == 404


def frames(program: Program) -> float:
    return program.metrics()["doppelcam_frames_total"]
