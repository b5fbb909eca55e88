"""The number in the corner survives what WebRTC does to a picture, and is refused where it does not."""

from __future__ import annotations

from fractions import Fraction

import av
import cv2
import numpy as np
import pytest
from av.video.codeccontext import VideoCodecContext

from realtime.assets import demo_photo
from realtime.types import U8, Size
from tests.web import stamp

NUMBERS = [(0x5A_C3F0_9612 * (index + 1)) % (1 << stamp.BITS) for index in range(12)]


def scene(size: Size = stamp.PICTURE) -> U8:
    photo = cv2.imread(str(demo_photo()))
    assert photo is not None
    return np.ascontiguousarray(cv2.resize(photo, size))


@pytest.mark.parametrize("codec", ["libx264", "libvpx"])
@pytest.mark.parametrize("size", [Size(1280, 720), Size(640, 360)])
def test_every_number_survives_300_kbps(codec: str, size: Size) -> None:
    encoder = av.CodecContext.create(codec, "w")
    decoder = av.CodecContext.create("h264" if codec == "libx264" else "vp8", "r")
    assert isinstance(encoder, VideoCodecContext)
    assert isinstance(decoder, VideoCodecContext)
    encoder.width, encoder.height, encoder.pix_fmt = size.w, size.h, "yuv420p"
    encoder.bit_rate, encoder.time_base = 300_000, Fraction(1, 30)
    encoder.options = (
        {"preset": "superfast", "tune": "zerolatency"}
        if codec == "libx264"
        else {"deadline": "realtime", "cpu-used": "-8", "lag-in-frames": "0"}
    )
    seen = []
    for number in NUMBERS:
        pixels = scene(size)
        stamp.write(pixels, number)
        packets = encoder.encode(av.VideoFrame.from_ndarray(pixels, format="bgr24"))
        seen += [stamp.read(frame.to_ndarray(format="gray")) for packet in packets for frame in decoder.decode(packet)]
    seen += [stamp.read(frame.to_ndarray(format="gray")) for frame in decoder.decode(None)]
    assert seen == NUMBERS[: len(seen)]
    assert len(seen) >= len(NUMBERS) - 1


@pytest.mark.parametrize("width", [1280, 960, 640, 480])
def test_survives_scaling(width: int) -> None:
    pixels = scene()
    stamp.write(pixels, NUMBERS[3])
    scaled = cv2.resize(pixels, (width, width * 9 // 16), interpolation=cv2.INTER_AREA)
    assert stamp.read(scaled) == NUMBERS[3]


def test_a_picture_without_one_has_none() -> None:
    assert stamp.read(scene()) is None


def test_a_blurred_one_is_not_believed() -> None:
    pixels = scene()
    stamp.write(pixels, NUMBERS[3])
    assert stamp.read(cv2.GaussianBlur(pixels, (0, 0), 24)) is None
