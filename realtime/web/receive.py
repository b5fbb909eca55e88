"""Takes a peer's pictures from aiortc as soon as they are whole, the newest only; knows aiortc's receiver by heart.

aiortc's receiver keeps pictures in two queues without a bound: with a reader half as fast as the sender the delay grew
by half a second each second, and memory by 33 MB. Both queues and the jitter buffer are replaced in the one receiver at
hand, before it starts; ``test_receive.py`` fails where a later aiortc is built differently.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Coroutine
from typing import Any

import av
from aiortc import RTCRtpReceiver
from aiortc.jitterbuffer import JitterFrame

from realtime.web.jitter import Burst, MarkerJitterBuffer, starts_key
from realtime.web.station import Seat

MOST_WAITING = 10
"""Encoded pictures before a decoder that does not keep up: a third of a second. Then it goes on at a key picture."""


def feed(receiver: RTCRtpReceiver, seat: Seat) -> None:
    """Let what a video receiver gets go to a seat; before its connection starts.

    Args:
        receiver: of a video, with its track.
        seat: is given each picture, in the decoder's thread.
    """
    parts = vars(receiver)
    for name in ("jitter_buffer", "decoder_queue", "decoder_error"):
        if f"_RTCRtpReceiver__{name}" not in parts:
            raise TypeError(f"this aiortc's receiver has no {name}")
    parts["_RTCRtpReceiver__jitter_buffer"] = MarkerJitterBuffer(starts_key)
    parts["_RTCRtpReceiver__decoder_queue"] = DecodeQueue(parts["_RTCRtpReceiver__decoder_error"])
    vars(receiver.track)["_queue"] = _Straight(seat)


class DecodeQueue:
    """Encoded pictures on the way to a decoder: the part of ``queue.Queue`` that aiortc uses, with a bound.

    Args:
        lost: set where pictures were left out, so that the receiver asks for a key picture.
    """

    def __init__(self, lost: threading.Event) -> None:
        self._lost = lost
        self._items: deque[tuple[Any, JitterFrame] | None] = deque()
        self._changed = threading.Condition()
        self._wants_key = False

    def put(self, item: tuple[Any, JitterFrame] | None) -> None:
        """Append a picture, or all of a burst; ``None`` ends the decoder. Never waits."""
        with self._changed:
            if item is None:
                self._items.append(None)
            else:
                codec, frame = item
                for one in (frame, *(frame.rest if isinstance(frame, Burst) else ())):
                    self._append(codec, one)
            self._changed.notify()

    def get(self) -> tuple[Any, JitterFrame] | None:
        """Take the oldest; waits for one."""
        with self._changed:
            self._changed.wait_for(lambda: self._items)
            return self._items.popleft()

    def _append(self, codec: Any, frame: JitterFrame) -> None:
        if len(self._items) >= MOST_WAITING:
            self._items.clear()
            self._wants_key = True
            self._lost.set()
        if self._wants_key and not is_key(frame.data):
            return
        self._wants_key = False
        self._items.append((codec, frame))


def is_key(data: bytes) -> bool:
    """Whether an encoded picture, H.264 with start codes or VP8, stands for itself."""
    if not data.startswith((b"\0\0\0\1", b"\0\0\1")):
        return bool(data) and data[0] & 1 == 0
    place = data.find(b"\0\0\1")
    while place >= 0 and place + 3 < len(data):
        if data[place + 3] & 0x1F in (5, 7):
            return True
        place = data.find(b"\0\0\1", place + 3)
    return False


class _Straight:
    """Stands where a track's queue was: a decoded picture goes straight to the seat."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat

    def put(self, picture: av.VideoFrame | None) -> Coroutine[Any, Any, None]:
        if picture is None:
            self._seat.leave()
        else:
            self._seat.offer(picture)
        return _nothing()

    async def get(self) -> None:
        raise queue.Empty  # nobody reads the track


async def _nothing() -> None:
    """What aiortc waits for after a put."""
