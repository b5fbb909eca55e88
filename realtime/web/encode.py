"""Encoders for a live picture: little delay, steady size, a key picture on demand; knows no peer and no clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Literal, TypeAlias

import av
import cv2
from av.video.codeccontext import VideoCodecContext
from av.video.frame import PictureType
from av.video.stream import VideoStream

from realtime.sinks import even_size
from realtime.types import U8, Size

CLOCK_HZ = 90_000
"""Of every video in RTP (RFC 3551 section 5)."""
CLOCK = Fraction(1, CLOCK_HZ)
FPS = 30
"""What the rate control expects; times come from the stamps."""
KEY_EVERY = 3000
"""Pictures between key pictures that nobody asked for: a viewer that joins or has lost one asks."""

CodecName = Literal["h264", "vp8"]
Packet: TypeAlias = "av.Packet[VideoStream]"


@dataclass(frozen=True, slots=True)
class Codec:
    """What differs between codecs.

    Attributes:
        encoder: FFmpeg's name.
        mime: as in SDP.
        retunes: whether the bit rate can be changed while it runs.
        profile: of the stream, empty for the codec's own.
        options: of the encoder, the same at every rate.
    """

    encoder: str
    mime: str
    retunes: bool
    profile: str
    options: Mapping[str, str]


CODECS: Mapping[CodecName, Codec] = MappingProxyType(
    {
        # superfast took 5.5 ms for a 1280x720 picture on one core, aiortc's choice (medium) 27 ms. Baseline, because
        # that is what is agreed on (profile-level-id 42e01f); no scene cuts: a key picture is 10 times as large.
        "h264": Codec(
            "libx264",
            "video/H264",
            retunes=True,
            profile="Baseline",
            options={"preset": "ultrafast", "tune": "zerolatency", "sc_threshold": "0", "forced-idr": "1"},
        ),
        "vp8": Codec(
            "libvpx",
            "video/VP8",
            retunes=False,
            profile="",
            options={
                "deadline": "realtime",
                "cpu-used": "-12",
                "lag-in-frames": "0",
                "error-resilient": "default",
                "static-thresh": "1",
                "undershoot-pct": "100",
                "overshoot-pct": "15",
                "max-intra-rate": "400",
            },
        ),
    }
)


class Encoder:
    """One stream of pictures of one codec. Used by one thread at a time.

    A picture of another size than the one before it starts the stream anew, with a key picture.

    Args:
        codec: a key of ``CODECS``.
        kbps: thousand bits per second; may be changed at any time and holds from the next picture on.
    """

    def __init__(self, codec: CodecName, kbps: int) -> None:
        self.kbps = kbps
        self._codec = CODECS[codec]
        self._context: VideoCodecContext | None = None
        self._kbps = 0
        self._last_pts = -1

    def encode(self, pixels: U8, t_s: float, *, key: bool) -> list[Packet]:
        """Encode one picture.

        Args:
            pixels: (H, W, 3) uint8 BGR, C-contiguous; only read. An odd last row or column is left out.
            t_s: when it was made, in seconds of any clock that is the same for all; never decreases.
            key: whether it has to stand for itself.

        Returns:
            Its packets, with times in ``CLOCK``; each later than the one before, whatever ``t_s`` was.
        """
        size = even_size(Size(pixels.shape[1], pixels.shape[0]))
        context = self._context_for(size)
        # BT.601 in limited range is what OpenCV makes and what WebRTC peers assume where nothing is said; FFmpeg's own
        # way to it takes 3.8 ms at 1280x720, this one 0.9.
        picture = av.VideoFrame.from_ndarray(
            cv2.cvtColor(pixels[: size.h, : size.w], cv2.COLOR_BGR2YUV_I420), format="yuv420p"
        )
        self._last_pts = max(self._last_pts + 1, round(t_s * CLOCK_HZ))
        picture.pts, picture.time_base = self._last_pts, CLOCK
        picture.pict_type = PictureType.I if key else PictureType.NONE
        return list(context.encode(picture))

    def _context_for(self, size: Size) -> VideoCodecContext:
        context = self._context
        if context is not None and (context.width, context.height) == size:
            if self._kbps == self.kbps:
                return context
            if self._codec.retunes:
                context.bit_rate, self._kbps = self.kbps * 1000, self.kbps
                return context
        self._context = context = self._opened(size)
        self._kbps = self.kbps
        return context

    def _opened(self, size: Size) -> VideoCodecContext:
        context = av.CodecContext.create(self._codec.encoder, "w")
        assert isinstance(context, VideoCodecContext)
        context.width, context.height = size
        context.pix_fmt = "yuv420p"
        context.framerate, context.time_base = Fraction(FPS), CLOCK
        context.bit_rate = self.kbps * 1000
        context.gop_size = KEY_EVERY
        context.thread_count = 1
        if self._codec.profile:
            context.profile = self._codec.profile
        # A picture may take the bits of three pictures of its own share, a key picture most of the buffer.
        rate, buffer = str(self.kbps * 1000), str(self.kbps * 1000 // 5)
        limits = {"maxrate": rate, "bufsize": buffer}
        context.options = {**self._codec.options, **limits}
        if not self._codec.retunes:
            context.options = {**context.options, "minrate": rate}
            context.qmin, context.qmax = 4, 56
        return context
