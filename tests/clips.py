"""Makes small video files whose pictures carry their number, so that a test can tell which one it got."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from av.container import OutputContainer

from realtime.types import U8, Size

BITS = 12
SMALL = Size(192, 96)


def numbered(number: int, size: Size = SMALL) -> U8:
    """A picture of ``BITS`` vertical bars, white for 1 and black for 0, lowest bit on the left."""
    bits = (number >> np.arange(BITS)) & 1
    columns = np.arange(size.w) * BITS // size.w
    return np.ascontiguousarray(
        np.broadcast_to((bits[columns] * 255).astype(np.uint8)[None, :, None], (size.h, size.w, 3))
    )


def number_of(pixels: U8) -> int:
    """The number of a picture made by ``numbered``, also after compression or scaling."""
    width = pixels.shape[1]
    centres = ((np.arange(BITS) + 0.5) * width / BITS).astype(int)
    middle = pixels[pixels.shape[0] // 2, centres].mean(axis=-1)
    return int(((middle > 127) << np.arange(BITS)).sum())


def make_clip(
    path: Path,
    pictures: Iterable[U8],
    *,
    fps: int = 30,
    stamps_ms: Iterable[int] | None = None,
    codec: str = "libx264",
    audio_s: float = 0.0,
) -> Path:
    """Write a clip; ``stamps_ms`` gives each picture its time, ``audio_s`` adds so many seconds of silence."""
    with av.open(str(path), "w") as out:
        frames = [av.VideoFrame.from_ndarray(pixels, format="bgr24") for pixels in pictures]
        stream = out.add_stream(codec, rate=fps)
        assert isinstance(stream, av.VideoStream)
        if frames:
            stream.width, stream.height = frames[0].width, frames[0].height
        stream.pix_fmt = "yuv444p" if codec == "libx264" else "rgb24"  # odd sizes, and colours that stay put
        if codec == "libx264":
            stream.options = {"preset": "ultrafast", "tune": "zerolatency", "qp": "10"}
        sound = _sound(out) if audio_s else None
        tick = Fraction(1, fps) if stamps_ms is None else Fraction(1, 1000)
        stream.codec_context.time_base = tick
        for frame, stamp in zip(frames, range(len(frames)) if stamps_ms is None else stamps_ms, strict=True):
            frame.time_base, frame.pts = tick, stamp
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
        if sound is not None:
            _silence(out, sound, audio_s)
    return path


def make_song(path: Path, seconds: float = 0.5) -> Path:
    """Write a file with sound and no picture."""
    with av.open(str(path), "w") as out:
        _silence(out, _sound(out), seconds)
    return path


def _sound(out: OutputContainer) -> av.AudioStream:
    stream = out.add_stream("aac", rate=8000)
    assert isinstance(stream, av.AudioStream)
    return stream


def _silence(out: OutputContainer, stream: av.AudioStream, seconds: float) -> None:
    silence = av.AudioFrame.from_ndarray(np.zeros((1, int(8000 * seconds)), np.float32), "fltp", "mono")
    silence.sample_rate, silence.pts = 8000, 0
    out.mux(stream.encode(silence))
    out.mux(stream.encode(None))
