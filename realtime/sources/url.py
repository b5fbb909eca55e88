"""A network stream as a camera, through PyAV: always the newest picture; knows protocols, opens no files."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from types import MappingProxyType

import av
import av.container
import av.error
from av.codec.context import Flags
from av.video.stream import VideoStream

from realtime.errors import ConfigError, SourceError
from realtime.sources import URL_SCHEMES, SourceInfo, SourceWish
from realtime.sources.decoding import reason, to_bgr, video_stream
from realtime.sources.fit import letterbox
from realtime.sources.handle import Handle
from realtime.sources.newest import Newest
from realtime.types import Frame

OPEN_TIMEOUT_S = 8.0
"""Until a stream answers, and again until its first whole picture: cameras send one every 1 to 5 seconds."""

READ_TIMEOUT_S = 5.0
"""A stream that is silent for longer counts as dropped."""

SKIP_S = 0.25
"""Longest that one read goes on skipping: a machine that cannot decode in time still gets pictures."""

ASSUMED_FPS = 25.0
"""For streams that do not say how fast they are."""

_OPTIONS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        # FFmpeg would try UDP first and take seconds to notice that a firewall drops it.
        "rtsp": {"rtsp_flags": "prefer_tcp"},
        "rtsps": {"rtsp_flags": "prefer_tcp"},
        # A burst that does not fit is lost, which the decoder survives; the default is to end the stream.
        "udp": {"overrun_nonfatal": "1"},
    }
)
_COMMON_OPTIONS = {
    # No "nobuffer": it throws away what was read to find out the format, and with it the first whole picture.
    "analyzeduration": "1000000",  # microseconds; the default of 5 s delays the start by as much
}
_COUNTED_STAMPS = frozenset({"mpjpeg", "mjpeg", "h264", "hevc", "m4v"})
# Formats without times in them: FFmpeg counts 25 a second, whatever really comes.
_SEGMENTED = frozenset({"hls", "dash"})
_RECORDED_OVER = frozenset({"http", "https"})


class UrlSource:
    """The newest picture of a stream. Live: a slow reader skips and never falls behind.

    No thread empties the stream. What arrives between two reads waits in the buffers of the system (and of FFmpeg, for
    UDP); a read decodes through them, which takes a small part of the time in which they filled, and hands over the
    first picture that ``Newest`` takes for new. Skipped pictures are decoded, because later ones build on them, but
    not converted; they are counted in ``seq``.
    """

    def __init__(self, target: str, wish: SourceWish) -> None:
        """Connect and decode the first picture.

        Args:
            target: the address, scheme and all; a name and password in it never reach a message.
            wish: ``size`` is used.

        Raises:
            ConfigError: no address, or of an unknown scheme.
            SourceError: no answer, refused, no video in it; ``fatal=False`` where trying again may help.
        """
        scheme = target.partition("://")[0].lower()
        if "://" not in target or scheme not in URL_SCHEMES:
            known = ", ".join(f"{scheme}://" for scheme in URL_SCHEMES)
            raise ConfigError(f"{without_password(target)!r} is no stream address", f"known are {known}")
        self._name = without_password(target)
        container, self._stream = _connect(target, scheme, self._name)
        self._handle = Handle(self._name, container, lambda opened: opened.close())
        self._packets = container.demux(self._stream)
        self._size = wish.size
        fps = float(self._stream.average_rate or self._stream.guessed_rate or 0)
        self._timed = container.format.name not in _COUNTED_STAMPS
        self._newest = Newest(1 / (fps or ASSUMED_FPS))
        self._seq = -1
        try:
            first = self._first()
        except SourceError:
            self._handle.close()
            raise
        size = Frame(0, 0.0, letterbox(to_bgr(first), self._size)).size
        facts = [f"{self._stream.codec_context.name} {first.width}x{first.height} in {container.format.name}"]
        if container.format.name.split(",")[0] in _SEGMENTED:
            facts.append("this kind of stream comes in bursts of seconds; take RTSP where the camera offers it")
        self._info = SourceInfo(self._name, size, fps if self._timed else 0.0, live=True, facts=tuple(facts))

    @property
    def info(self) -> SourceInfo:
        """What the stream said and what its first picture showed."""
        return self._info

    def read(self) -> Frame:
        """Wait for the newest picture.

        Raises:
            SourceError: the stream ended, dropped or fell silent, or was closed (``fatal=False``).
        """
        with self._handle.use():
            give_up_s = time.perf_counter() + SKIP_S
            while True:
                frame, stamp_s, waited_s = self._fetch()
                stream_s = frame.time if self._timed else None
                if self._newest.is_newest(stamp_s, waited_s, stream_s) or stamp_s > give_up_s:
                    return Frame(self._seq, stamp_s, letterbox(to_bgr(frame), self._size))

    def close(self) -> None:
        """Disconnect; when a read is under way, the reader does it on its way out, after 5 s at the latest."""
        self._handle.close()

    def _first(self) -> av.VideoFrame:
        """Decode until a picture comes out. It is only looked at; reading starts with the newest one after it."""
        give_up_s = time.perf_counter() + OPEN_TIMEOUT_S
        while time.perf_counter() < give_up_s:
            if frames := self._decode(self._next_packet()):
                return frames[-1]
        message = f"{self._name} sent no whole picture for {OPEN_TIMEOUT_S:.0f} s"
        raise SourceError(message, "let the sender put in key frames more often (every 1 to 2 s)", fatal=False)

    def _fetch(self) -> tuple[av.VideoFrame, float, float]:
        """Get the next picture, when it arrived (perf_counter) and how long it was waited for, in seconds."""
        waited_s = 0.0
        while True:
            before_s = time.perf_counter()
            packet = self._next_packet()
            stamp_s = time.perf_counter()
            waited_s += stamp_s - before_s
            self._handle.check_open()
            if frames := self._decode(packet):
                return frames[-1], stamp_s, waited_s

    def _next_packet(self) -> av.Packet[VideoStream]:
        hint = "check that the sender is running; it is opened again by itself"
        try:
            packet = next(self._packets)
        except av.error.ExitError:  # how FFmpeg says that our time limit passed
            message = f"{self._name} has been silent for {READ_TIMEOUT_S:.0f} s"
            raise SourceError(message, hint, fatal=False) from None
        except (StopIteration, av.error.FFmpegError) as error:
            why = f": {reason(error)}" if isinstance(error, av.error.FFmpegError) else ""
            raise SourceError(f"{self._name} ended{why}", hint, fatal=False) from error
        if packet.dts is None and packet.size == 0:  # the decoder's flush at the end of the stream
            raise SourceError(f"{self._name} ended", hint, fatal=False)
        return packet

    def _decode(self, packet: av.Packet[VideoStream]) -> list[av.VideoFrame]:
        try:
            frames = packet.decode()
        except av.error.FFmpegError:  # lost packets: the picture is gone, the next key frame mends it
            return []
        self._seq += len(frames)
        return frames


def _connect(target: str, scheme: str, name: str) -> tuple[av.container.InputContainer, VideoStream]:
    options = {**_COMMON_OPTIONS, **_OPTIONS.get(scheme, {})}
    try:
        container = av.open(target, options=options, timeout=(OPEN_TIMEOUT_S, READ_TIMEOUT_S))
    except av.error.ProtocolNotFoundError as error:
        hint = "use RTSP, HTTP or UDP, or an FFmpeg build of PyAV that has it"
        raise SourceError(f"the FFmpeg inside PyAV cannot read {scheme}://", hint) from error
    except av.error.FFmpegError as error:
        timed_out = isinstance(error, av.error.ExitError)
        why = f"no answer for {OPEN_TIMEOUT_S:.0f} s" if timed_out else reason(error)
        hint = "check the address, the password and that the sender is running"
        raise SourceError(f"{name} cannot be opened: {why}", hint, fatal=False) from error
    stream = video_stream(container)
    recorded = scheme in _RECORDED_OVER and container.duration is not None
    if stream is not None and not recorded:
        stream.codec_context.thread_type = "SLICE"  # threads by picture would hold back as many pictures
        stream.codec_context.flags |= Flags.low_delay
        return container, stream
    container.close()
    if recorded:
        raise SourceError(f"{name} is a recording, not a live stream", "download the file and give its path")
    raise SourceError(f"{name} has no picture in it", "give the address of the video stream")


def without_password(address: str) -> str:
    """Hide the name and password of an address: "rtsp://me:pw@cam/1" -> "rtsp://***@cam/1"."""
    return re.sub(r"(?<=://)[^/?#]*@", "***@", address)
