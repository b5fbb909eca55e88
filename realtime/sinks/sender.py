"""The process that encodes and sends a stream: pictures on its standard input, what it has to say on its output.

The first line is a wish in JSON, the answer a line of JSON: ``why`` says what failed, and is empty where all is well.
Then pictures follow, each after the time of its capture (``STAMP``), until the input ends.
"""

from __future__ import annotations

import contextlib
import json
import signal
import struct
import sys
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import BinaryIO

import av
import av.error
import numpy as np
from av import VideoFrame
from av.video.reformatter import ColorRange, Colorspace, VideoReformatter

from realtime.types import U8, Size

KBPS = 2500
"""Enough for 1280x720 at 30 pictures/s, and what most connections can send."""
KEY_S = 2.0
"""Between two key pictures: who joins in the middle waits for one."""
STAMP = struct.Struct("<d")

_CLOCK = Fraction(1, 90_000)
_MUXERS: Mapping[str, str] = MappingProxyType({"rtmp": "flv", "rtmps": "flv"})
"""Of a scheme; MPEG-TS is what the others carry."""
_MUXER_OPTIONS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "flv": {"flvflags": "no_duration_filesize", "flush_packets": "1"},
        "mpegts": {"muxdelay": "0", "muxpreload": "0", "flush_packets": "1", "pcr_period": "20"},
    }
)
_HD_LINES = 720
_ENCODER = {"preset": "superfast", "tune": "zerolatency", "sc_threshold": "0"}
_BT709, _BT601 = 1, 6  # ITU-T H.273


class Connection:
    """Encoder and muxer of one stream; whatever fails is FFmpeg's own error.

    Args:
        target: the address.
        size: even, of every picture.
        fps: of the cadence.
    """

    def __init__(self, target: str, size: Size, fps: float) -> None:
        muxer = _MUXERS.get(target.partition("://")[0].lower(), "mpegts")
        self._hd, self._step = size.h >= _HD_LINES, round(0.5 / fps / _CLOCK)
        self._colour = VideoReformatter()
        self._first_s: float | None = None
        self._last_pts = -1
        self._container = av.open(target, "w", format=muxer, container_options=dict(_MUXER_OPTIONS[muxer]))
        self._stream = stream = self._container.add_stream("libx264", rate=Fraction(fps).limit_denominator(1001))
        stream.width, stream.height, stream.pix_fmt = size.w, size.h, "yuv420p"
        stream.options = {**_ENCODER, "maxrate": f"{KBPS}k", "bufsize": f"{KBPS // 2}k"}
        encoder = stream.codec_context
        encoder.bit_rate, encoder.gop_size = KBPS * 1000, max(1, round(KEY_S * fps))
        encoder.time_base, encoder.thread_count = _CLOCK, 1
        encoder.colorspace = encoder.color_primaries = encoder.color_trc = _BT709 if self._hd else _BT601
        encoder.color_range = ColorRange.MPEG
        self._container.start_encoding()

    def send(self, pixels: U8, t_s: float) -> None:
        """Encode one picture and send it.

        Args:
            pixels: (H, W, 3) uint8 BGR.
            t_s: when it was captured; one that is shown again has an old time, and a card has none.
        """
        picture = self._colour.reformat(
            VideoFrame.from_ndarray(pixels, format="bgr24"),
            format="yuv420p",
            dst_colorspace=Colorspace.ITU709 if self._hd else Colorspace.ITU601,
            dst_color_range=ColorRange.MPEG,
        )
        if self._first_s is None:
            self._first_s = t_s
        # Where there is no new time, it goes on by half an interval.
        own = round((t_s - self._first_s) / _CLOCK)
        self._last_pts = own if self._last_pts < 0 else max(own, self._last_pts + self._step)
        picture.pts, picture.time_base = max(self._last_pts, 0), _CLOCK
        self._container.mux(self._stream.encode(picture))

    def close(self) -> None:
        """Send the end."""
        with contextlib.suppress(av.error.FFmpegError):  # nobody is there to be told the end
            self._container.close()


def main(given: BinaryIO, said: BinaryIO) -> None:
    """Do as the wish says until the pictures end."""
    wish = json.loads(given.readline())
    size = Size(wish["width"], wish["height"])
    try:
        connection = Connection(wish["target"], size, wish["fps"])
        _say(said, "")
        try:
            while stamp := given.read(STAMP.size):
                pixels = np.frombuffer(given.read(size.w * size.h * 3), np.uint8).reshape(size.h, size.w, 3)
                connection.send(pixels, *STAMP.unpack(stamp))
        finally:
            connection.close()
    except av.error.ProtocolNotFoundError:
        _say(said, f"the FFmpeg inside PyAV cannot send {wish['target'].partition('://')[0]}://")
    except av.error.FFmpegError as error:
        _say(said, str(error.strerror or error).lower())
    except ValueError:  # the input ended in the middle of a picture
        pass


def _say(said: BinaryIO, why: str) -> None:
    with contextlib.suppress(OSError):
        said.write(json.dumps({"why": why}).encode() + b"\n")
        said.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the run, which ends this one
    main(sys.stdin.buffer, sys.stdout.buffer)
