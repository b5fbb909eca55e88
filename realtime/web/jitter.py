"""Puts the packets of a video back into pictures, and lets go of each at its last packet; knows no decoder and no peer.

aiortc's own buffer waits for the first packet of the next picture before it hands one over, which costs a whole
interval (33 ms at 30 pictures/s). A sender marks the last packet of a picture (the marker bit, RFC 3550 section 5.1, as
RFC 6184 and RFC 7741 define it for H.264 and VP8), so it need not be waited for.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from aiortc.jitterbuffer import JitterBuffer, JitterFrame
from aiortc.rtp import RtpPacket
from aiortc.utils import uint16_add

CAPACITY = 512
"""Packets that are kept at most, a power of two: two seconds of 2.5 Mbit/s."""
PATIENCE_S = 0.12
"""How long a missing packet is waited for: it was asked for again at once (NACK), and most answers come in time."""
ASK_AGAIN_S = 0.3
"""Between two requests for a whole picture while one is missing."""

StartsKey = Callable[[RtpPacket], bool]
"""Whether a packet, depayloaded (``_data``), begins a picture that stands for itself."""


class Burst(JitterFrame):
    """Pictures that became whole with one packet: the late packet that the others have waited for.

    Attributes:
        rest: those after the first, in order.
    """

    rest: tuple[JitterFrame, ...] = ()


class MarkerJitterBuffer(JitterBuffer):
    """Releases a picture with its last packet, and all that have waited for it; gives a lasting gap up.

    A picture whose packets are missing for longer than ``PATIENCE_S`` is left out with everything that builds on it:
    the next one that stands for itself goes on, and until one comes it is asked for.

    Args:
        starts_key: see ``StartsKey``.
        clock: seconds.
    """

    def __init__(self, starts_key: StartsKey, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(CAPACITY, is_video=True)
        self._starts_key, self._clock = starts_key, clock
        self._gap_s: float | None = None  # since when the picture at the front lacks a packet
        self._asked_s = 0.0

    def add(self, packet: RtpPacket) -> tuple[bool, JitterFrame | None]:
        """Take a packet, in whatever order.

        Returns:
            Whether the sender must be asked for a picture that stands for itself, and the picture that became whole, a
            :class:`Burst` where others did with it.
        """
        lost, frame = super().add(packet)
        if frame is not None or not self._has_gap(packet):
            self._gap_s = None
            return lost, frame
        now_s = self._clock()
        if self._gap_s is None:
            self._gap_s = self._asked_s = now_s
        if lost or now_s - self._gap_s < PATIENCE_S:
            return lost, None
        if self._skip_to_key():
            frame = self._remove_frame(packet.sequence_number)
            self._gap_s = None if frame is not None else self._gap_s
            return False, frame
        ask = now_s - self._asked_s >= ASK_AGAIN_S or self._asked_s == self._gap_s
        if ask:
            self._asked_s = now_s
        return ask, None

    def _remove_frame(self, sequence_number: int) -> JitterFrame | None:
        """Take out every picture at the front that is whole."""
        del sequence_number
        whole: list[Burst] = []
        data: list[bytes] = []
        taken = 0
        stamp = None
        for count in range(self._capacity):
            packet = self._at(count)
            if packet is None:
                break
            if stamp is not None and packet.timestamp != stamp:  # a sender that marks nothing
                whole.append(Burst(b"".join(data), stamp))
                data, taken = [], count
            stamp = packet.timestamp
            data.append(packet._data)  # type: ignore[attr-defined]  # aiortc's receiver leaves it there
            if packet.marker:
                whole.append(Burst(b"".join(data), stamp))
                data, stamp, taken = [], None, count + 1
        if not whole:
            return None
        self.remove(taken)
        first = whole[0]
        first.rest = tuple(whole[1:])
        return first

    def _at(self, offset: int) -> RtpPacket | None:
        origin = self._origin
        assert origin is not None
        return self._packets[(origin + offset) % self._capacity]

    def _has_gap(self, newest: RtpPacket) -> bool:
        """Whether a packet before the newest one is missing."""
        assert self._origin is not None
        ahead = uint16_add(newest.sequence_number, -self._origin)
        return ahead < self._capacity and any(self._at(offset) is None for offset in range(ahead))

    def _skip_to_key(self) -> bool:
        """Leave out what comes before the first picture behind the gap that stands for itself, if there is one."""
        gap = next(offset for offset in range(self._capacity) if self._at(offset) is None)
        for offset in range(gap, self._capacity):
            packet = self._at(offset)
            if packet is not None and self._starts_key(packet):
                self.remove(offset)
                return True
        return False


def starts_key(packet: RtpPacket) -> bool:
    """Whether a packet of H.264 or VP8 begins a key picture.

    H.264 (RFC 6184): a parameter set (NAL unit 7) or the first slice of a key picture (5), alone, first in an
    aggregate (24) or at the start of a fragmented unit (28). VP8 (RFC 7741 section 4.2): start of the first partition,
    whose first bit is 0 for a key picture. The two do not look alike: depayloaded H.264 begins with a start code.
    """
    data: bytes = packet._data  # type: ignore[attr-defined]  # aiortc's receiver leaves it there
    if data.startswith(b"\0\0\0\1"):
        return len(data) > 4 and data[4] & 0x1F in (5, 7)
    payload = packet.payload
    is_first = bool(payload) and payload[0] & 0x10 != 0 and payload[0] & 0x07 == 0
    return is_first and bool(data) and data[0] & 1 == 0
