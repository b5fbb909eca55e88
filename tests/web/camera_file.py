"""A camera for a browser: a talking head of 1280 x 720 at 30 pictures/s whose pictures carry their number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import av
import cv2
import numpy as np

from realtime.sources import SourceWish
from realtime.sources.demo import DemoSource
from realtime.types import U8
from tests.web import stamp

FPS = 30
CLIP = "book.mkv"
PICTURES = 108
"""3.6 s, the whole of the clip: longer than any delay that is told apart by number."""


def pictures(clips: Path | None, count: int = PICTURES) -> Iterator[U8]:
    """The pictures of the camera, without numbers: a real person where there are clips, else the built-in demo.

    Args:
        clips: folder of the real clips.
        count: at most so many.

    Yields:
        (720, 1280, 3) uint8 BGR, each an array of its own.
    """
    if clips is None or not (clips / CLIP).is_file():
        demo = DemoSource("", SourceWish(size=stamp.PICTURE, fps=FPS, paced=False))
        for _ in range(count):
            yield demo.read().pixels
        return
    with av.open(str(clips / CLIP)) as container:
        for _, frame in zip(range(count), container.decode(video=0), strict=False):
            pixels = frame.to_ndarray(format="bgr24")
            height, width = pixels.shape[:2]
            wide = pixels[: width * 9 // 16]
            assert height > wide.shape[0]
            yield np.ascontiguousarray(cv2.resize(wide, stamp.PICTURE, interpolation=cv2.INTER_CUBIC))


def write_camera(path: Path, clips: Path | None) -> Path:
    """Write what Chromium's ``--use-file-for-fake-video-capture`` reads: raw pictures, so that reading costs nothing.

    Args:
        path: ends in .y4m; 150 MB.
        clips: see ``pictures``.

    Returns:
        ``path``.
    """
    with path.open("wb") as file:
        file.write(f"YUV4MPEG2 W{stamp.PICTURE.w} H{stamp.PICTURE.h} F{FPS}:1 Ip A1:1 C420jpeg\n".encode())
        for number, pixels in enumerate(pictures(clips)):
            stamp.write(pixels, number)
            file.write(b"FRAME\n")
            file.write(cv2.cvtColor(pixels, cv2.COLOR_BGR2YUV_I420).tobytes())
    return path
