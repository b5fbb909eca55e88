"""Makes small video files whose pictures carry their number, so that a test can tell which one it got."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

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
    rotation: int = 0,
    audio_s: float = 0.0,
) -> Path:
    """Write a clip; ``stamps_ms`` gives each picture its time, ``audio_s`` adds so many seconds of silence."""
    with av.open(str(path), "w") as out:
        frames = [av.VideoFrame.from_ndarray(pixels, format="bgr24") for pixels in pictures]
        stream = out.add_stream(codec, rate=fps)
        assert isinstance(stream, av.VideoStream)
        if frames:
            stream.width, stream.height = frames[0].width, frames[0].height
        stream.pix_fmt = "yuv444p" if codec == "libx264" else "yuvj422p"  # odd sizes, and colours that stay put
        if codec == "libx264":
            stream.options = {"preset": "ultrafast", "tune": "zerolatency", "qp": "10"}
        if rotation:
            stream.set_display_rotation(rotation)
        sound = out.add_stream("aac", rate=8000) if audio_s else None
        for index, (frame, stamp_ms) in enumerate(zip(frames, stamps_ms or [None] * len(frames), strict=True)):
            if stamp_ms is not None:
                frame.time_base, frame.pts = Fraction(1, 1000), stamp_ms
            else:
                frame.time_base, frame.pts = Fraction(1, fps), index
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
        if sound is not None:
            assert isinstance(sound, av.AudioStream)
            silence = av.AudioFrame.from_ndarray(np.zeros((1, int(8000 * audio_s)), np.float32), "fltp", "mono")
            silence.sample_rate, silence.pts = 8000, 0
            out.mux(sound.encode(silence))
            out.mux(sound.encode(None))
    return path
