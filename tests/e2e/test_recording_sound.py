"""The sound of a recording: copied or converted, in step with the picture, and never a reason to lose it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from av.audio.stream import AudioStream
from av.video.frame import VideoFrame

from realtime.sinks import SinkWish
from realtime.sinks.recording import Recording
from realtime.sinks.soundtrack import Soundtrack
from realtime.types import Frame, Size

SIZE = Size(64, 48)


def make_clip(path: Path, codec: str, *, rate: int = 48000, fps: int = 25, seconds: int = 3) -> Path:
    """A clip whose picture is black but for one white frame at 1 s, where a beep begins."""
    with av.open(str(path), "w") as clip:
        video = clip.add_stream("libx264", rate=fps, options={"bf": "0"})
        video.width, video.height, video.pix_fmt = SIZE.w, SIZE.h, "yuv420p"
        sound = clip.add_stream(codec, rate=rate, layout="mono")
        assert isinstance(sound, AudioStream)
        wave = np.zeros(rate * seconds, np.float32)
        wave[rate : rate * 2] = np.sin(np.arange(rate) * 2 * np.pi * 1000 / rate)
        for i in range(fps * seconds):
            picture = VideoFrame.from_ndarray(np.full((SIZE.h, SIZE.w, 3), 255 * (i == fps), np.uint8), format="bgr24")
            picture.pts, picture.time_base = i, Fraction(1, fps)
            clip.mux(video.encode(picture))
            piece = av.AudioFrame.from_ndarray(
                (wave[i * rate // fps : (i + 1) * rate // fps] * 20000).astype(np.int16)[None], "s16", "mono"
            )
            piece.rate, piece.pts, piece.time_base = rate, i * rate // fps, Fraction(1, rate)
            clip.mux(sound.encode(piece))
        clip.mux(video.encode(None))
        clip.mux(sound.encode(None))
    return path


def pictures(path: Path) -> Iterator[VideoFrame]:
    with av.open(str(path)) as found:
        yield from found.decode(video=0)


def beep_s(path: Path) -> float:
    """When the beep begins, in seconds of the file's clock."""
    with av.open(str(path)) as found:
        for piece in found.decode(audio=0):
            samples = np.abs(piece.to_ndarray().astype(np.float64)).reshape(-1)
            scale = 1.0 if piece.format.name.startswith("flt") else 32768.0
            loud = np.flatnonzero(samples > 0.1 * scale)
            if len(loud) and piece.time is not None:
                return float(piece.time + loud[0] / piece.sample_rate)
    raise AssertionError("no beep")


def flash_s(path: Path) -> float:
    """When the white picture comes, in seconds of the file's clock."""
    return next(
        float(picture.time or 0) for picture in pictures(path) if picture.to_ndarray(format="gray").mean() > 128
    )


def through(clip: Path, out: Path, count: int = 75) -> Recording:
    """Record what a lockstep source would read from a clip."""
    sink = Recording(str(out), SinkWish(SIZE, 25.0, live=False, audio_path=str(clip), audio_rate=Fraction(25)))
    for i, picture in enumerate(pictures(clip)):
        if i < count:
            sink.write(Frame(i, 0.0, picture.to_ndarray(format="bgr24").astype(np.uint8)))
    sink.close()
    return sink


COPIES = [
    ("clip.mp4", "aac", ".mp4"),
    ("clip.mp4", "aac", ".mkv"),
    ("clip.ts", "aac", ".mp4"),  # starts at 1.4 s, and packs AAC another way
    ("clip.mkv", "mp3", ".mov"),
    ("clip.mkv", "libopus", ".mkv"),
    ("clip.mkv", "pcm_s16le", ".mov"),
]


@pytest.mark.parametrize(("name", "codec", "suffix"), COPIES)
def test_sound_is_copied_in_step(tmp_path: Path, name: str, codec: str, suffix: str) -> None:
    clip, out = make_clip(tmp_path / name, codec), tmp_path / f"out{suffix}"
    sink = through(clip, out)
    assert f"sound: copied ({codec.removeprefix('lib')}" in " ".join(sink.info.facts)
    assert beep_s(out) - flash_s(out) == pytest.approx(beep_s(clip) - flash_s(clip), abs=0.004)


@pytest.mark.parametrize(("codec", "suffix"), [("libopus", ".mp4"), ("pcm_s16le", ".mp4"), ("flac", ".mov")])
def test_sound_that_the_container_does_not_take_becomes_aac_in_step(tmp_path: Path, codec: str, suffix: str) -> None:
    clip, out = make_clip(tmp_path / "clip.mkv", codec), tmp_path / f"out{suffix}"
    sink = through(clip, out)
    assert "to AAC" in " ".join(sink.info.facts)
    with av.open(str(out)) as found:
        assert found.streams.audio[0].codec_context.name == "aac"
    assert beep_s(out) - flash_s(out) == pytest.approx(beep_s(clip) - flash_s(clip), abs=0.01)


@pytest.mark.parametrize(("codec", "suffix"), [("aac", ".mp4"), ("pcm_s16le", ".mp4"), ("libopus", ".mkv")])
def test_sound_ends_with_the_picture(tmp_path: Path, codec: str, suffix: str) -> None:
    clip, out = make_clip(tmp_path / "clip.mkv", codec), tmp_path / f"out{suffix}"
    through(clip, out, count=40)
    with av.open(str(out)) as found:
        ends = [float(p.time or 0) + p.samples / p.sample_rate for p in found.decode(audio=0)]
    assert 40 / 25 - 0.1 < ends[-1] <= 40 / 25 + 0.05


def test_an_input_without_sound_is_a_fact(tmp_path: Path) -> None:
    plain = Recording(str(tmp_path / "plain.mp4"), SinkWish(SIZE, 25.0, live=False))
    plain.write(Frame(0, 0.0, np.zeros((SIZE.h, SIZE.w, 3), np.uint8)))
    plain.close()
    sink = through(tmp_path / "plain.mp4", tmp_path / "out.mp4")
    assert any("no sound" in fact for fact in sink.info.facts)


def test_sound_that_breaks_off_does_not_stop_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clip, out = make_clip(tmp_path / "clip.mp4", "aac"), tmp_path / "out.mp4"

    def broken(_self: Soundtrack, end_s: Fraction) -> Iterator[object]:
        if end_s > 1:
            raise av.InvalidDataError(1, "damaged")
        return iter(())

    monkeypatch.setattr(Soundtrack, "until", broken)
    with caplog.at_level(logging.WARNING):
        through(clip, out)
    assert len(list(pictures(out))) == 75
    assert len(caplog.records) == 1
