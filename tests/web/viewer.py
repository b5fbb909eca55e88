"""Viewers without a browser: aiortc on the other side, stock or with the program's own way of receiving.

``python -m tests.web.viewer --url http://.../whep --seconds 10`` prints what they saw as one line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field

import av
import httpx
import numpy as np
import psutil
from aiortc import MediaStreamTrack, RTCPeerConnection, RTCRtpReceiver, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError

from realtime.types import U8
from realtime.web.receive import feed
from realtime.web.station import Inlet
from tests.conftest import ROOT
from tests.web import stamp

SETTLE_S = 3.0
"""Not counted: encoders start, rates are found."""


@dataclass
class Looked:
    """What the first of the viewers saw after ``SETTLE_S``.

    Attributes:
        delays_ms: of each picture that it took: from the clock in the picture to now.
        t_s: when it took them, from the start.
        grown_mb: how much more memory the process of the viewers had at the end.
        first_ms: from the offer to the first picture.
    """

    delays_ms: list[float] = field(default_factory=list)
    t_s: list[float] = field(default_factory=list)
    grown_mb: float = 0.0
    first_ms: float = 0.0


def number_of(picture: av.VideoFrame) -> int | None:
    """The number in a decoded picture; reads its luma where it lies."""
    plane = picture.planes[0]
    luma: U8 = np.frombuffer(memoryview(plane), np.uint8).reshape(-1, plane.line_size)[
        : picture.height, : picture.width
    ]
    return stamp.read(luma)


class Viewer:
    """One connection that only watches.

    Args:
        ours: receive as the program does.
        every_s: between two pictures that it takes; 0: as they come.
    """

    def __init__(self, *, ours: bool, every_s: float = 0.0) -> None:
        self.looked = Looked()
        self._ours, self._every_s = ours, every_s
        self._begun_s = time.perf_counter()
        self._peer = RTCPeerConnection()
        self._task: asyncio.Task[None] | None = None

    async def connect(self, url: str) -> None:
        """Offer, and take pictures from now on."""
        transceiver = self._peer.addTransceiver("video", "recvonly")
        if self._ours:
            known = RTCRtpReceiver.getCapabilities("video")
            assert known is not None
            transceiver.setCodecPreferences([one for one in known.codecs if one.mimeType == "video/H264"])

        @self._peer.on("track")
        def on_track(track: MediaStreamTrack) -> None:
            inlet = Inlet("viewer")
            if self._ours:
                feed(transceiver.receiver, inlet.occupy("server", lambda: None))
            take = self._from_inlet(inlet) if self._ours else self._from_track(track)
            self._task = asyncio.ensure_future(self._look(take))

        await self._peer.setLocalDescription(await self._peer.createOffer())
        async with httpx.AsyncClient() as client:
            answer = await client.post(
                url, content=self._peer.localDescription.sdp, headers={"Content-Type": "application/sdp"}
            )
            answer.raise_for_status()
        await self._peer.setRemoteDescription(RTCSessionDescription(answer.text, "answer"))

    async def close(self) -> None:
        """Leave."""
        if self._task:
            self._task.cancel()
        await self._peer.close()

    @staticmethod
    def _from_track(track: MediaStreamTrack) -> Callable[[], Awaitable[av.VideoFrame | None]]:
        async def take() -> av.VideoFrame | None:
            picture = await track.recv()
            assert isinstance(picture, av.VideoFrame)
            return picture

        return take

    @staticmethod
    def _from_inlet(inlet: Inlet) -> Callable[[], Awaitable[av.VideoFrame | None]]:
        def wait() -> av.VideoFrame | None:
            arrival = inlet.take(0.2)
            return arrival.picture if arrival else None

        return lambda: asyncio.to_thread(wait)

    async def _look(self, take: Callable[[], Awaitable[av.VideoFrame | None]]) -> None:
        looked = self.looked
        try:
            while True:
                picture = await take()
                if picture is None:
                    continue
                now_s, t_s = time.time(), time.perf_counter() - self._begun_s
                looked.first_ms = looked.first_ms or t_s * 1e3
                number = number_of(picture)
                if number is not None and t_s > SETTLE_S:
                    looked.delays_ms.append((now_s * 1e6 % 2**stamp.BITS - number) / 1e3)
                    looked.t_s.append(t_s)
                del picture
                if self._every_s:
                    await asyncio.sleep(self._every_s)
        except MediaStreamError:
            return


async def look(url: str, seconds: float, *, count: int, ours: bool, every_s: float) -> Looked:
    """Watch with ``count`` viewers for so long after ``SETTLE_S``; what the first one saw."""
    viewers = [Viewer(ours=ours, every_s=every_s) for _ in range(count)]
    for viewer in viewers:
        await viewer.connect(url)
    await asyncio.sleep(SETTLE_S)
    print("settled", flush=True)
    program = psutil.Process()
    before = program.memory_info().rss
    await asyncio.sleep(seconds)
    looked = viewers[0].looked
    looked.grown_mb = (program.memory_info().rss - before) / 2**20
    for viewer in viewers:
        await viewer.close()
    return looked


class Viewing:
    """That in a process of its own; the constructor returns when ``SETTLE_S`` is over."""

    def __init__(self, url: str, seconds: float, *, count: int = 1, ours: bool = True, every_s: float = 0.0) -> None:
        command = [sys.executable, "-m", "tests.web.viewer", "--url", url, "--seconds", str(seconds)]
        command += ["--count", str(count), "--every", str(every_s), *(["--ours"] if ours else [])]
        self._child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self._child.stdout is not None
        assert self._child.stdout.readline() == "settled\n"

    def finish(self) -> Looked:
        """Wait for its end."""
        out, _ = self._child.communicate(timeout=180)
        return Looked(**json.loads(out.splitlines()[-1]))


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--every", type=float, default=0.0)
    parser.add_argument("--ours", action="store_true")
    given = parser.parse_args()
    looked = asyncio.run(look(given.url, given.seconds, count=given.count, ours=given.ours, every_s=given.every))
    print(json.dumps(asdict(looked)), flush=True)


if __name__ == "__main__":
    main()
