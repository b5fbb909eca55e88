"""One encoding of the picture for all viewers of a codec: who joins, who is slow and who lost one; knows no SDP."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial

from aiortc import RTCRtpSender
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from aiortc.rtp import RTCP_PSFB_APP, AnyRtcpPacket, RtcpPsfbPacket, unpack_remb_fci

from realtime.types import Frame
from realtime.web.encode import CodecName, Encoder, Packet
from realtime.web.station import Outlet

MOST_WAITING = 6
"""Pictures that wait for a viewer's connection at most, 0.2 s of them; then it goes on at the next key picture."""
KEY_PAUSE_S = 0.3
"""Between two key pictures: what several viewers ask for at a time is one, and each is 10 times as large as others."""
STEPS = (1.0, 0.7, 0.5, 0.35, 0.25)
"""Of the bit rate that is set: what it is lowered to when a viewer gets less."""
EASE_S = 4.0
"""After a change of the rate, until it goes up again by a step."""
TRUSTED = 0.75
"""Share of the rate that a viewer has to get: what it reports is at best what it was sent, and often a little less."""


class EncodedTrack(MediaStreamTrack):
    """What one viewer gets: packets of the shared encoding from a key picture on.

    Args:
        ask_key: asks the encoding for a key picture.
        begin: the same, at once; called with the first reading.

    Attributes:
        read: whether its connection takes packets: one that is not there yet, or never will be, costs nothing.
    """

    kind = "video"

    def __init__(self, ask_key: Callable[[], None], begin: Callable[[], None]) -> None:
        super().__init__()
        self.read = False
        self._ask_key, self._begin = ask_key, begin
        self._packets: deque[Packet] = deque()
        self._changed = asyncio.Event()
        self._wants_key = True
        self.bitrate = math.inf
        """Bits per second that the viewer says it gets."""

    def push(self, packet: Packet) -> None:
        """Give it a packet; one that builds on a picture that the viewer lacks is left out."""
        if not self.read:
            return
        if len(self._packets) >= MOST_WAITING:
            self._packets.clear()
            self._wants_key = True
        if self._wants_key and not packet.is_keyframe:
            self._ask_key()
            return
        self._wants_key = False
        self._packets.append(packet)
        self._changed.set()

    async def recv(self) -> Packet:
        """The next packet, for aiortc's sender, which does not encode it again.

        Raises:
            MediaStreamError: the track was stopped.
        """
        if not self.read:
            self.read = True
            self._begin()
        while not self._packets:
            if self.readyState != "live":
                raise MediaStreamError
            self._changed.clear()
            await self._changed.wait()
        return self._packets.popleft()

    def stop(self) -> None:
        """End it, and whoever waits in ``recv``."""
        super().stop()
        self._changed.set()

    def attach(self, sender: RTCRtpSender) -> None:
        """Hear what the viewer says: pictures it lost (PLI, FIR: RFC 4585, 5104), and the rate it gets (REMB)."""
        handle = sender._handle_rtcp_packet  # aiortc has no public way

        async def hear(packet: AnyRtcpPacket) -> None:
            if isinstance(packet, RtcpPsfbPacket) and packet.fmt == RTCP_PSFB_APP:
                try:
                    self.bitrate = unpack_remb_fci(packet.fci)[0]
                except ValueError:
                    return
            await handle(packet)

        vars(sender)["_handle_rtcp_packet"] = hear
        vars(sender)["_send_keyframe"] = self._ask_key


class Broadcast:
    """Encodes the outlet's newest picture while anybody watches. All of it on the loop's thread but the encoding.

    Args:
        outlet: what is shown.
        codec: of the encoding.
        kbps: thousand bits per second.
        executor: encodes, one picture at a time.
    """

    def __init__(self, outlet: Outlet, codec: CodecName, kbps: int, executor: Executor) -> None:
        self._outlet, self._kbps, self._executor = outlet, kbps, executor
        self._encoder = Encoder(codec, kbps)
        self._tracks: set[EncodedTrack] = set()
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._key = False
        self._key_s = -math.inf
        self._step, self._eased_s = 0, 0.0
        self._unwatch: Callable[[], None] | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def kbps(self) -> int:
        """What it is encoded at now."""
        return self._encoder.kbps

    def join(self) -> EncodedTrack:
        """Add a viewer; its first picture is a key picture of the picture that is shown now."""
        track = EncodedTrack(self._ask_key, self._begin)
        track.on("ended", partial(self._leave, track))
        self._tracks.add(track)
        if self._task is None:
            self._unwatch = self._outlet.watch(self._wake)
            self._task = self._loop.create_task(self._run(), name="broadcast")
        return track

    async def close(self) -> None:
        """End all tracks and the encoding."""
        for track in list(self._tracks):
            track.stop()
        task = self._task
        if task is not None:
            self._end()
            await asyncio.gather(task, return_exceptions=True)

    def _leave(self, track: EncodedTrack) -> None:
        self._tracks.discard(track)
        if not self._tracks:
            self._end()

    def _end(self) -> None:
        if self._unwatch is not None:
            self._unwatch()
        if self._task is not None:
            self._task.cancel()
        self._unwatch = self._task = None

    def _wake(self) -> None:
        """Called by the writer of the outlet, in its own thread."""
        self._loop.call_soon_threadsafe(self._news.set)

    def _ask_key(self) -> None:
        self._key = True

    def _begin(self) -> None:
        """Show a viewer that has just connected the picture of now, also where no other comes."""
        self._key = True
        self._news.set()

    async def _run(self) -> None:
        shown: Frame | None = None
        while True:
            await self._news.wait()
            self._news.clear()
            frame = self._outlet.latest
            idle = frame is shown and not self._key
            if frame is None or idle or not any(track.read for track in self._tracks):
                continue
            shown, now_s = frame, self._loop.time()
            key = self._key and now_s - self._key_s >= KEY_PAUSE_S
            if key:
                self._key, self._key_s = False, now_s
            self._adapt(now_s)
            encode = partial(self._encoder.encode, frame.pixels, now_s, key=key)
            for packet in await self._loop.run_in_executor(self._executor, encode):
                for track in tuple(self._tracks):
                    track.push(packet)

    def _adapt(self, now_s: float) -> None:
        """Follow the viewer that gets least, down at once and up a step at a time."""
        least = min((track.bitrate for track in self._tracks), default=math.inf)
        bits = TRUSTED * self._kbps * 1000
        wanted = next((n for n, share in enumerate(STEPS) if share * bits <= least), len(STEPS) - 1)
        if wanted > self._step or (wanted < self._step and now_s - self._eased_s > EASE_S):
            self._step = wanted if wanted > self._step else self._step - 1
            self._eased_s = now_s
            self._encoder.kbps = round(self._kbps * STEPS[self._step])
