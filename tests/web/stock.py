"""What aiortc does when nothing is changed: its own encoder per viewer, jitter buffer, queues and clock.

It stands where the program's own peers stand, so that one run measures both behind the same swap.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import av
import numpy as np
from aiortc import MediaStreamTrack, RTCPeerConnection, RTCSessionDescription, VideoStreamTrack
from aiortc.mediastreams import MediaStreamError

from realtime.types import Frame
from realtime.web.station import Inlet, Station

BLACK = Frame(0, 0.0, np.zeros((720, 1280, 3), np.uint8))


@dataclass(frozen=True)
class StockAnswer:
    """As that of the program's own peers.

    Attributes:
        sdp: the answer.
        peer_id: of the connection.
    """

    sdp: str
    peer_id: str


class OutletTrack(VideoStreamTrack):
    """The newest picture whenever aiortc's clock says so."""

    def __init__(self, station: Station) -> None:
        super().__init__()
        self._station = station

    async def recv(self) -> av.VideoFrame:
        """The next picture."""
        pts, time_base = await self.next_timestamp()
        frame = self._station.outlet.latest or BLACK
        picture = av.VideoFrame.from_ndarray(frame.pixels, format="bgr24")
        picture.pts, picture.time_base = pts, time_base
        return picture


class StockPeers:
    """Answers offers, as aiortc's own examples do."""

    def __init__(self, station: Station, *_: Any, on_event: Callable[..., None] | None = None) -> None:
        self._station = station
        self._peers: dict[str, RTCPeerConnection] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def answer(self, sdp: str, who: str, *, sends: Inlet | None = None, watches: bool = False) -> StockAnswer:
        """Answer an offer. See the program's own peers."""
        peer = RTCPeerConnection()
        name = str(len(self._peers))
        self._peers[name] = peer

        @peer.on("track")
        def on_track(track: MediaStreamTrack) -> None:
            if sends is not None and track.kind == "video":
                task = asyncio.ensure_future(self._read(track, sends, who))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

        await peer.setRemoteDescription(RTCSessionDescription(sdp, "offer"))
        if watches:
            peer.addTrack(OutletTrack(self._station))
        await peer.setLocalDescription(await peer.createAnswer())
        return StockAnswer(peer.localDescription.sdp, name)

    async def close_all(self) -> None:
        """Close all connections."""
        await asyncio.gather(*(peer.close() for peer in self._peers.values()))
        self._peers.clear()

    @staticmethod
    async def _read(track: MediaStreamTrack, inlet: Inlet, who: str) -> None:
        seat = inlet.occupy(who, lambda: None)
        try:
            while True:
                picture = await track.recv()
                assert isinstance(picture, av.VideoFrame)
                seat.offer(picture)
        except MediaStreamError:
            seat.leave()
