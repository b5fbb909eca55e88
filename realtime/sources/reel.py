"""A video file unrolled into decoded pictures with their places in time; knows damage and loops, no clock."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import av.container
import av.error
from av.video.stream import VideoStream

from realtime.errors import SourceError
from realtime.sources.decoding import reason, video_stream
from realtime.sources.timeline import Timeline
from realtime.suggest import file_trouble

DEFAULT_RATE = Fraction(25)
"""Assumed where a file does not say how fast it is."""

_REPAIR = "the pictures that could be read were used; copy the file again, or repair it with ffmpeg -i FILE NEW.mkv"

_TEXT_FORMAT = "tty"  # FFmpeg would play a text file as a terminal screen


class Reel:
    """One file, decoded from front to end, and again when it loops. Used by one thread.

    Damaged parts are skipped and noted in ``damage``; the pictures around them are kept, with ``read_ahead`` all but
    the nearest.
    """

    def __init__(self, path: Path, *, loop: bool, read_ahead: bool) -> None:
        """Open the file.

        Args:
            path: of the file.
            loop: start again at the end, without an end.
            read_ahead: decode several pictures at once on several cores. Faster, but a picture comes out a few
                pictures later than it could, so it is for files that are read as fast as possible.

        Raises:
            SourceError: missing, empty, no video, or too damaged to be opened.
        """
        if trouble := file_trouble(path):
            raise SourceError(*trouble)
        self.path = path
        self.damage: str | None = None
        self._loop = loop
        self._threads = "AUTO" if read_ahead else "SLICE"
        self._container, self._stream = self._open()
        self.rate = self._stream.average_rate or self._stream.guessed_rate or Fraction(0)

    @property
    def interval_s(self) -> float:
        """Usual distance of two pictures."""
        return float(1 / (self.rate or DEFAULT_RATE))

    @property
    def codec(self) -> str:
        """Name of the compression, e.g. "h264"."""
        return self._stream.codec_context.name

    @property
    def varies(self) -> bool:
        """Whether the pictures come unevenly, as phones record in the dark."""
        nominal = self._stream.base_rate
        return bool(nominal and self.rate and abs(self.rate / nominal - 1) > 0.02)

    @property
    def has_audio(self) -> bool:
        """Whether sound belongs to the pictures."""
        return bool(self._container.streams.audio)

    @property
    def promised_s(self) -> float | None:
        """Length that the file claims for its pictures; ``None`` when it claims none (or only one that counts sound).

        A Matroska file that was cut off ends like a whole one; this claim is the only trace of what is missing.
        """
        stream, container = self._stream, self._container
        if stream.duration is not None and stream.time_base is not None:
            return float(stream.duration * stream.time_base)
        if container.duration is not None and not self.has_audio:
            return container.duration / av.time_base
        return None

    def pictures(self) -> Iterator[tuple[float, av.VideoFrame]]:
        """Decode.

        Yields:
            (place in seconds from 0, never falling; picture as stored, not yet turned).
        """
        timeline = Timeline(self.interval_s)
        while True:
            end_s = start_s = None
            for frame in self._decode():
                end_s = timeline.place(frame.time)
                start_s = end_s if start_s is None else start_s
                yield end_s, frame
            if start_s is None or end_s is None:  # not one picture: looping would spin
                return
            self._note_missing(end_s - start_s + self.interval_s)
            if not self._loop:
                return
            timeline.rewind()
            self.close()
            self._container, self._stream = self._open()

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        self._container.close()

    def _open(self) -> tuple[av.container.InputContainer, VideoStream]:
        name = self.path
        try:
            # "file:" keeps FFmpeg from taking a name such as "concat:x" for a protocol.
            container = av.open(f"file:{name}", metadata_errors="replace")
        except av.error.FFmpegError as error:
            hint = "if it is a video, it is damaged or was cut off while it was recorded: copy or export it again"
            raise SourceError(f"{name} cannot be read as a video: {reason(error)}", hint) from error
        stream = video_stream(container)
        if stream is None or container.format.name == _TEXT_FORMAT:
            what = "has sound but no picture" if container.streams.audio else "is not a video"
            container.close()
            raise SourceError(f"{name} {what}", "give a video file (mp4, mkv, mov, webm, avi) or a picture")
        stream.codec_context.thread_type = self._threads
        return container, stream

    def _decode(self) -> Iterator[av.VideoFrame]:
        packets = self._container.demux(self._stream)
        while True:
            try:
                packet = next(packets)
            except StopIteration:
                return
            except av.error.FFmpegError as error:
                self._note(reason(error))
                return
            try:
                yield from packet.decode()
            except av.error.EOFError:
                return
            except av.error.FFmpegError as error:
                self._note(reason(error))

    def _note_missing(self, found_s: float) -> None:
        promised_s = self.promised_s
        if promised_s is not None and found_s < min(promised_s - 0.5, 0.9 * promised_s):
            self._note(f"it ends after {found_s:.1f} of {promised_s:.1f} seconds")

    def _note(self, what: str) -> None:
        self.damage = self.damage or what

    def damage_error(self) -> SourceError | None:
        """The one error that tells of all damage met so far; ``None`` for a file that was whole."""
        return SourceError(f"{self.path} is damaged: {self.damage}", _REPAIR) if self.damage else None
