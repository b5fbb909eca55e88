"""The sound of a file input on its way into a recording; knows packets and their times, never pictures."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import av
from av.audio.codeccontext import AudioCodecContext
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler
from av.audio.stream import AudioStream
from av.container import InputContainer, OutputContainer
from av.packet import Packet

COPIED: dict[str, frozenset[str]] = {
    ".mp4": frozenset({"aac", "mp3", "ac3", "eac3", "alac"}),
    ".mov": frozenset({"aac", "mp3", "ac3", "eac3", "alac", "pcm_s16le", "pcm_s16be", "pcm_s24le"}),
    ".mkv": frozenset({"aac", "mp3", "ac3", "eac3", "alac", "opus", "vorbis", "flac", "pcm_s16le", "pcm_s24le"}),
}
"""Codecs that players expect in each container. FFmpeg can put more into an MP4 (Opus, PCM) than most players take."""

_AAC_RATES = (96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000)
"""Samples per second that AAC knows (ISO/IEC 14496-3, table 1.18)."""


class Soundtrack:
    """Reads the first audio stream of a file and hands its packets over in step with the pictures.

    What the container takes is copied bit for bit, the rest becomes AAC. Time zero is the file's first picture.

    Attributes:
        fact: a line for the start banner.
    """

    def __init__(self, path: str, suffix: str) -> None:
        """Open the file.

        Args:
            path: of the input that the pictures come from.
            suffix: of the recording, a key of ``COPIED``.

        Raises:
            av.FFmpegError: it cannot be read.
            LookupError: there is no audio in it.
        """
        self._source: InputContainer = av.open(path)
        if not self._source.streams.audio:
            self._source.close()
            raise LookupError("it has no audio")
        self._stream: AudioStream = self._source.streams.audio[0]
        self._origin_s = Fraction(0)
        if video := self._source.streams.video:
            self._origin_s = (video[0].start_time or 0) * Fraction(video[0].time_base or 0)
        self._packets: Iterator[tuple[Fraction, Packet[AudioStream]]] | None = None
        self._held: tuple[Fraction, Packet[AudioStream]] | None = None
        codec = self._stream.codec_context.codec.canonical_name
        self._copies = codec in COPIED[suffix]
        self.fact = f"sound: copied ({codec})" if self._copies else f"sound: converted from {codec} to AAC"

    def attach(self, muxer: OutputContainer) -> None:
        """Add the output stream to a recording; to be called before the muxer writes its header."""
        if self._copies:
            self._packets = self._copied(muxer.add_stream_from_template(self._stream))
        else:
            layout = "mono" if self._stream.channels == 1 else "stereo"
            rate = self._stream.rate if self._stream.rate in _AAC_RATES else 48000
            self._packets = self._converted(muxer.add_stream("aac", rate=rate, layout=layout))

    def until(self, end_s: Fraction) -> Iterator[Packet[AudioStream]]:
        """Packets that begin before ``end_s`` (seconds after the first picture) and were not handed over yet.

        Raises:
            av.FFmpegError: the file is damaged from here on.
        """
        if self._packets is None:
            return
        while True:
            self._held = self._held or next(self._packets, None)
            if self._held is None or self._held[0] >= end_s:
                return
            packet = self._held[1]
            self._held = None
            yield packet

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        self._packets = None
        self._source.close()

    def _copied(self, output: AudioStream) -> Iterator[tuple[Fraction, Packet[AudioStream]]]:
        """Packets as they are, on the new clock. A codec's run-in before time zero is left out."""
        for packet in self._source.demux(self._stream):
            if packet.pts is None or packet.time_base is None:
                continue
            shift = round(self._origin_s / packet.time_base)
            packet.pts -= shift
            packet.dts = packet.pts
            start_s = packet.pts * packet.time_base
            if start_s >= 0:
                packet.stream = output
                yield start_s, packet

    def _converted(self, output: AudioStream) -> Iterator[tuple[Fraction, Packet[AudioStream]]]:
        """Decoded and encoded again."""
        encoder = output.codec_context
        for frame in self._resampled(encoder):
            for packet in encoder.encode(frame):
                if packet.pts is not None and packet.time_base is not None:
                    packet.stream = output
                    yield packet.pts * packet.time_base, packet

    def _resampled(self, encoder: AudioCodecContext) -> Iterator[AudioFrame | None]:
        """Decoded sound on the new clock in the encoder's format, then ``None`` to empty it."""
        resampler = AudioResampler(encoder.format, encoder.layout, encoder.rate, frame_size=1024)
        for frame in self._source.decode(self._stream):
            if frame.pts is None or frame.time_base is None:
                continue
            frame.pts -= round(self._origin_s / frame.time_base)
            if frame.pts >= 0:
                yield from resampler.resample(frame)
        yield from resampler.resample(None)
        yield None
