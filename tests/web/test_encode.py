"""The encoder of a live picture, seen through a real decoder."""

from __future__ import annotations

import av
import numpy as np
import pytest

from realtime.types import U8
from realtime.web.encode import CODECS, CodecName, Encoder

DECODERS = {"h264": "h264", "vp8": "libvpx"}


def scene(number: int, width: int = 320, height: int = 240) -> U8:
    """A soft picture with a bright block that walks; its colours are told apart easily."""
    x = np.linspace(0, 1, width, dtype=np.float32)
    picture = np.zeros((height, width, 3), np.float32)
    picture[..., 0], picture[..., 1], picture[..., 2] = 40 + 120 * x, 90, 200 - 120 * x
    left = 10 + number * 4 % (width - 60)
    picture[60:100, left : left + 40] = (200, 220, 240)
    return picture.astype(np.uint8)


@pytest.fixture(params=list(CODECS))
def codec(request: pytest.FixtureRequest) -> CodecName:
    name: CodecName = request.param
    return name


def decoded(codec: CodecName, packets: list[av.Packet]) -> list[U8]:  # type: ignore[type-arg]
    decoder = av.CodecContext.create(DECODERS[codec], "r")
    return [frame.to_ndarray(format="bgr24") for packet in packets for frame in decoder.decode(packet)]  # type: ignore[attr-defined]


def test_each_picture_comes_at_once_in_its_colours(codec: CodecName) -> None:
    encoder, decoder = Encoder(codec, 2000), av.CodecContext.create(DECODERS[codec], "r")
    for number in range(12):
        packets = encoder.encode(scene(number), number / 30, key=number == 0)
        (shown,) = [one for packet in packets for one in decoder.decode(packet)]  # type: ignore[attr-defined]
        error = np.abs(shown.to_ndarray(format="bgr24").astype(int) - scene(number)).mean()
        assert error < 6, number


def test_only_what_was_asked_for_stands_for_itself(codec: CodecName) -> None:
    encoder = Encoder(codec, 1000)
    keys = [
        packet.is_keyframe
        for number in range(20)
        for packet in encoder.encode(scene(number), number / 30, key=number in (0, 7))
    ]
    assert [number for number, key in enumerate(keys) if key] == [0, 7]


def test_whoever_joins_at_a_key_picture_sees_it_and_all_after_it(codec: CodecName) -> None:
    encoder = Encoder(codec, 2000)
    packets = [encoder.encode(scene(n), n / 30, key=n in (0, 10)) for n in range(16)]
    shown = decoded(codec, [packet for some in packets[10:] for packet in some])
    assert len(shown) == 6
    assert np.abs(shown[-1].astype(int) - scene(15)).mean() < 6


def test_times_always_go_on(codec: CodecName) -> None:
    encoder = Encoder(codec, 1000)
    times = [encoder.encode(scene(0), t_s, key=False)[0].pts for t_s in (1.0, 1.1, 1.1, 0.5, 1.2)]
    assert times == sorted(set(times))  # type: ignore[type-var]
    assert times[1] == 99_000


def test_another_size_begins_anew_and_an_odd_one_is_cut(codec: CodecName) -> None:
    encoder = Encoder(codec, 1000)
    encoder.encode(scene(0), 0.0, key=True)
    turned = encoder.encode(np.ascontiguousarray(scene(1, 241, 321)), 0.1, key=False)
    assert turned[0].is_keyframe
    (shown,) = decoded(codec, turned)
    assert shown.shape == (320, 240, 3)


def test_a_lower_rate_makes_less(codec: CodecName) -> None:
    dice = np.random.default_rng(3)
    noise = [np.clip(scene(n) + dice.integers(-12, 12, (240, 320, 3)), 0, 255).astype(np.uint8) for n in range(8)]
    encoder = Encoder(codec, 4000)

    def size(begin: int) -> int:
        pictures = range(begin, begin + 60)
        return sum(p.size for n in pictures for p in encoder.encode(noise[n % 8], n / 30, key=n == 0))

    size(0)
    high = size(60)
    encoder.kbps = 1000
    size(120)
    assert size(180) < 0.6 * high
