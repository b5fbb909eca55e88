"""A recording as MP4, MKV or MOV; knows encoding and the times of pictures, refuses to know where they came from.

MP4 and MOV are written in fragments of a quarter of a second, each flushed to the kernel, so a file plays whatever
moment the process dies at; a proper end turns it into an ordinary file (FFmpeg's hybrid fragmented mode), which
editors prefer. Matroska is made of such pieces anyway.
"""

from __future__ import annotations

import contextlib
import logging
from fractions import Fraction
from pathlib import Path

import av
from av.container import OutputContainer
from av.video.frame import VideoFrame
from av.video.reformatter import ColorRange, Colorspace, VideoReformatter
from av.video.stream import VideoStream

from realtime.errors import SinkError
from realtime.sinks import RECORDING_SUFFIXES, SinkInfo, SinkWish, even_size
from realtime.sinks.soundtrack import Soundtrack
from realtime.sinks.tape import Tape, check_place
from realtime.types import Frame, Size

_LOG = logging.getLogger(__name__)

_FORMATS = {".mp4": "mp4", ".mov": "mov", ".mkv": "matroska"}

_FRAGMENTED = {
    "movflags": "hybrid_fragmented+frag_keyframe+default_base_moof",
    "frag_duration": "250000",  # microseconds
    "flush_packets": "1",
}
_MUXER_OPTIONS = {
    "mp4": _FRAGMENTED,
    "mov": _FRAGMENTED,
    "matroska": {"cluster_time_limit": "250", "flush_packets": "1"},  # milliseconds
}

_BUFFER_BYTES = 1 << 20
"""Room for a fragment of 30 Mbit/s, so that it reaches the kernel in one write and a kill cannot tear it."""

_ENCODER_OPTIONS = {"preset": "veryfast", "crf": "14", "bf": "0"}
"""Constant quality. 14, because a new face may be 60 pixels high and the codec smooths it: over twenty clips an
independent recogniser put the recorded face at a distance of 0.467 from the source, and of 0.483 at quality 20; the
demo takes 4.5 instead of 1.7 Mbit/s. Speed, on two cores at 1280x720, a noisy webcam clip, quality 20: veryfast 9.9 ms
a picture and 1.5 Mbit/s, superfast 10 to 12 ms and 11 Mbit/s, both above 42 dB. Without B-frames a picture needs none
that come later, so the cost is even (p95 14 instead of 38 ms) and every fragment stands for itself."""

_CLOCK = Fraction(1, 90_000)
"""Time base for live pictures: that of MPEG streams, fine enough for any camera."""

_GROUP_S = 2
"""Seconds between key frames, which is how exactly a player can seek."""


class Recording:
    """One file that is being recorded.

    The wished size is rounded down to even (see ``even_size``). The file appears with the first picture; until then
    an older file of that name (``wish.overwrite``) is untouched.

    When a picture is shown: for live input at ``t_capture_s`` after the first picture's, whatever the pace; for a file
    input at ``seq`` over the file's rate, so that sound and picture stay together and lockstep input comes out with
    the same number of pictures at the same rate.
    """

    def __init__(self, target: str, wish: SinkWish) -> None:
        self._path = Path(target).expanduser()
        self._suffix = self._path.suffix.lower()
        if self._suffix not in RECORDING_SUFFIXES:
            raise SinkError(
                f"cannot record to {target}: '{self._suffix}' is no kind of recording",
                f"name a file that ends in {', '.join(RECORDING_SUFFIXES)}",
            )
        free = check_place(self._path, overwrite=wish.overwrite)
        self._overwrite = wish.overwrite
        self._size = even_size(wish.size)
        self._fps = wish.fps or 30.0
        self._rate = _counted_rate(wish)
        self._sound, fact = _open_sound(wish.audio_path, self._suffix)
        self._tape: Tape | None = None
        self._muxer: OutputContainer | None = None
        self._stream: VideoStream
        self._header_bytes = 0  # on disk once the first packet was muxed; 0 before
        self._colour = VideoReformatter()
        self._first_s = 0.0
        self._last_pts = -1
        self._closed = False
        self._info = SinkInfo(
            name=f"recording {self._path}",
            size=self._size,
            fps=0.0,
            live=False,
            facts=(*wish.notes, *fact, f"{free / 1e9:.1f} GB free for the recording"),
        )

    @property
    def info(self) -> SinkInfo:
        """Even size; every picture once, none repeated."""
        return self._info

    def write(self, frame: Frame) -> None:
        """Encode one picture and the sound up to its end.

        Raises:
            SinkError: the disk is full or gone. What was recorded so far stays playable.
        """
        if self._closed:
            raise SinkError(f"the recording {self._path} is closed", "start a new one")
        if frame.size != self._size:
            raise SinkError(f"a {frame.size} picture came for a {self._size} recording", "report this: it is a bug")
        try:
            if self._muxer is None:
                self._start(frame)
            picture = self._encodable(frame)
            self._mux(picture)
        except av.FFmpegError as error:
            raise self._stopped(error.strerror or str(error)) from error
        self._check()

    def close(self) -> None:
        """Finish the file: the pictures still in the encoder, then the index.

        Raises:
            SinkError: they could not be written; what was written before stays playable.
        """
        if self._closed:
            return
        try:
            if self._muxer is not None:
                self._mux(None)
                self._muxer.close()
                self._check()
        except av.FFmpegError as error:
            raise self._stopped(error.strerror or str(error)) from error
        finally:
            self._release()

    def _start(self, frame: Frame) -> None:
        """Create the file and the encoder."""
        try:
            self._tape = Tape(self._path, overwrite=self._overwrite)
        except OSError as error:
            raise SinkError(f"cannot record to {self._path}: {error.strerror}", "choose another place") from error
        kind = _FORMATS[self._suffix]
        self._muxer = av.open(
            self._tape, "w", format=kind, container_options=_MUXER_OPTIONS[kind], buffer_size=_BUFFER_BYTES
        )
        self._stream = _add_video(self._muxer, self._size, self._fps, self._rate)
        if self._sound:
            self._sound.attach(self._muxer)
        self._first_s = frame.t_capture_s

    def _encodable(self, frame: Frame) -> VideoFrame:
        """The picture as the encoder wants it, with its time."""
        picture = self._colour.reformat(
            VideoFrame.from_ndarray(frame.pixels, format="bgr24"),
            format="yuv420p",
            dst_colorspace=Colorspace.ITU709 if _is_hd(self._size) else Colorspace.ITU601,
            dst_color_range=ColorRange.MPEG,
        )
        pts = frame.seq if self._rate else round((frame.t_capture_s - self._first_s) / _CLOCK)
        self._last_pts = max(pts, self._last_pts + 1)  # a muxer refuses two pictures at one time
        picture.pts = self._last_pts
        picture.time_base = 1 / self._rate if self._rate else _CLOCK
        return picture

    def _mux(self, picture: VideoFrame | None) -> None:
        """Encode (``None``: empty the encoder) and write, with the sound that belongs to it.

        Nothing reaches the muxer before the first encoded picture: FFmpeg's crashes when it ends without one.
        """
        assert self._muxer is not None
        assert self._tape is not None
        packets = self._stream.encode(picture)
        self._muxer.mux(packets)
        if packets and not self._header_bytes:
            self._header_bytes = self._tape.mark()
        if self._header_bytes and self._sound:
            self._mux_sound(self._sound, (self._last_pts + 1) / (self._rate or 1 / _CLOCK))

    def _mux_sound(self, sound: Soundtrack, end_s: Fraction) -> None:
        """Write the sound up to the end of the newest picture. Damaged sound is no reason to lose pictures."""
        assert self._muxer is not None
        try:
            for packet in sound.until(end_s):
                self._muxer.mux(packet)
        except av.FFmpegError as error:
            _LOG.warning("the sound of the input is damaged (%s): recording goes on without it", error)
            sound.close()
            self._sound = None

    def _check(self) -> None:
        """Look at the disk's answer, and give up an older file once pictures are safe."""
        assert self._tape is not None
        if self._tape.error:
            raise self._stopped(self._tape.error.strerror or "write failed") from self._tape.error
        if self._tape.mark() > self._header_bytes > 0:
            self._tape.keep()

    def _stopped(self, why: str) -> SinkError:
        """Let go of everything and say what is left."""
        kept = self._tape is not None and self._tape.kept
        self._release()
        left = "what was recorded so far can be played" if kept else "no picture had been recorded yet"
        return SinkError(
            f"recording to {self._path} stopped: {why}",
            f"{left}; free some space or choose another disk for a new file",
        )

    def _release(self) -> None:
        """Close everything, adding nothing to the file any more."""
        self._closed = True
        if self._sound:
            self._sound.close()
        if self._tape:
            self._tape.freeze()
        if self._muxer:
            with contextlib.suppress(av.FFmpegError):  # the failure that led here has been told already
                self._muxer.close()
        if self._tape:
            self._tape.close()


def _is_hd(size: Size) -> bool:
    """From 720 lines on, players that read no tags take a file for BT.709, below for BT.601."""
    return size.h >= 720 or size.w >= 1280


def _counted_rate(wish: SinkWish) -> Fraction:
    """Pictures per second when ``seq`` tells the time, or 0 when the clock does."""
    if wish.audio_rate:
        return wish.audio_rate
    if wish.live or not wish.fps:
        return Fraction(0)
    return Fraction(wish.fps).limit_denominator(1001)  # 29.97 is 30000/1001


def _open_sound(path: str | None, suffix: str) -> tuple[Soundtrack | None, tuple[str, ...]]:
    """The sound, if there is any to copy, and a line for the banner."""
    if path is None:
        return None, ()
    try:
        sound = Soundtrack(path, suffix)
    except (av.FFmpegError, LookupError) as error:
        return None, (f"no sound: {path}: {error}",)
    return sound, (sound.fact,)


def _add_video(muxer: OutputContainer, size: Size, fps: float, rate: Fraction) -> VideoStream:
    """An H.264 stream with true colour tags."""
    stream = muxer.add_stream("libx264", rate=rate or Fraction(fps).limit_denominator(1001))
    stream.width, stream.height, stream.pix_fmt = size.w, size.h, "yuv420p"
    stream.options = {**_ENCODER_OPTIONS, "g": str(max(1, round(_GROUP_S * fps)))}
    encoder = stream.codec_context
    encoder.time_base = 1 / rate if rate else _CLOCK
    encoder.thread_count = 2
    tag = 1 if _is_hd(size) else 6  # ITU-T H.273: 1 is BT.709, 6 is SMPTE 170M, the NTSC kind of BT.601
    encoder.colorspace = encoder.color_primaries = encoder.color_trc = tag
    encoder.color_range = ColorRange.MPEG
    return stream
