"""Recordings as players will read them: every picture, its time and its colour; and a disk that fills up."""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

import av
import numpy as np
import pytest
from av.video.frame import VideoFrame

from realtime.errors import SinkError
from realtime.sinks import SinkWish
from realtime.sinks import recording as recording_module
from realtime.sinks.recording import Recording
from realtime.sinks.tape import Tape
from realtime.types import Frame, Size
from tests.clips import SMALL, number_of, numbered

SUFFIXES = [".mp4", ".mov", ".mkv"]


def frame(seq: int, t_s: float = 0.0, size: Size = SMALL) -> Frame:
    return Frame(seq, t_s, numbered(seq, size))


def record(path: Path, frames: Iterable[Frame], **wish: object) -> Recording:
    sink = Recording(str(path), SinkWish(**{"size": SMALL, **wish}))  # type: ignore[arg-type]  # any of its fields
    for frame in frames:
        sink.write(frame)
    sink.close()
    sink.close()
    return sink


def numbers(path: Path) -> list[int]:
    return [number_of(picture.to_ndarray(format="bgr24").astype(np.uint8)) for picture in pictures(path)]


def pictures(path: Path) -> Iterator[VideoFrame]:
    with av.open(str(path)) as found:
        yield from found.decode(video=0)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_input_comes_out_picture_by_picture_at_its_own_rate(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    record(path, map(frame, range(75)), fps=30000 / 1001, live=False)
    assert numbers(path) == list(range(75))
    times = [picture.time for picture in pictures(path)]
    assert times == pytest.approx(np.arange(75) * 1001 / 30000, abs=0.0006)  # Matroska counts milliseconds
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert abs(float(stream.average_rate or 0) - 30000 / 1001) < 0.01
        assert container.duration is not None
        assert abs(container.duration / 1e6 - 75 * 1001 / 30000) < 0.05


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_live_input_keeps_the_times_of_its_pictures(tmp_path: Path, suffix: str) -> None:
    steps = np.random.default_rng(3).uniform(0.010, 0.120, 60)
    times = 5000.0 + np.cumsum(steps)
    path = tmp_path / f"out{suffix}"
    record(path, [frame(3 * i, t) for i, t in enumerate(times)], fps=30)
    found = [picture.time for picture in pictures(path)]
    assert found == pytest.approx(times - times[0], abs=0.0011)


def test_pictures_with_one_time_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"
    record(path, [frame(i, 10.0) for i in range(5)])
    assert len(list(pictures(path))) == 5


def test_an_odd_size_becomes_even(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"
    sink = Recording(str(path), SinkWish(Size(193, 97)))
    assert sink.info.size == SMALL
    sink.write(frame(0, size=sink.info.size))
    with pytest.raises(SinkError, match="193x97"):
        sink.write(frame(1, size=Size(193, 97)))
    sink.close()
    assert next(pictures(path)).width == 192


RED_709, RED_601 = (63, 102, 240), (81, 90, 240)
"""Y, Cb, Cr of pure red in limited range (ITU-R BT.709 and BT.601)."""


@pytest.mark.parametrize(("size", "tag", "red"), [(Size(1280, 720), 1, RED_709), (Size(640, 480), 6, RED_601)])
def test_colour_is_converted_as_it_is_tagged(tmp_path: Path, size: Size, tag: int, red: tuple[int, int, int]) -> None:
    path = tmp_path / "out.mp4"
    pixels = np.zeros((size.h, size.w, 3), np.uint8)
    pixels[..., 2] = 255
    record(path, [Frame(0, 0.0, pixels)], size=size)
    with av.open(str(path)) as found:
        tags = found.streams.video[0].codec_context
        picture = next(found.decode(video=0))
        assert (tags.colorspace, tags.color_primaries, tags.color_trc, tags.color_range) == (tag, tag, tag, 1)
    planes = [np.frombuffer(bytes(plane), np.uint8).mean() for plane in picture.planes]
    assert planes == pytest.approx(red, abs=3)


# Places and disks


@pytest.mark.parametrize("name", ["out.avi", "out", "missing/out.mp4"])
def test_a_wrong_place_is_told_before_the_run(tmp_path: Path, name: str) -> None:
    with pytest.raises(SinkError) as caught:
        Recording(str(tmp_path / name), SinkWish(SMALL))
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_pictures_leaves_nothing_and_harms_nothing(tmp_path: Path) -> None:
    record(tmp_path / "new.mp4", [])
    (tmp_path / "old.mp4").write_bytes(b"old")
    record(tmp_path / "old.mp4", [], overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["old.mp4"]
    assert (tmp_path / "old.mp4").read_bytes() == b"old"


def test_an_existing_file_is_replaced_only_when_allowed(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"
    path.write_bytes(b"old")
    with pytest.raises(SinkError, match="it exists"):
        Recording(str(path), SinkWish(SMALL))
    assert path.read_bytes() == b"old"
    record(path, map(frame, range(3)), overwrite=True)
    assert len(list(pictures(path))) == 3
    assert [found.name for found in tmp_path.iterdir()] == ["out.mp4"]


class SmallDisk(Tape):
    """A tape on a disk with so much room."""

    room = 0

    def write(self, data: bytes) -> int:
        if not self._frozen and self.tell() + len(data) > self.room:
            super().write(data[: max(0, self.room - self.tell())])
            self.error = OSError(errno.ENOSPC, "No space left on device")
            self.freeze()
        return super().write(data)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_whenever_the_disk_fills_up_what_was_recorded_plays(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = [frame(i) for i in range(60)]
    whole = tmp_path / f"whole{suffix}"
    record(whole, frames, fps=30, live=False)
    monkeypatch.setattr(recording_module, "Tape", SmallDisk)
    played = []
    most = whole.stat().st_size - 100  # the same pictures may take a few bytes less another time
    for room in np.linspace(1, most, 24, dtype=int):
        SmallDisk.room = int(room)
        path = tmp_path / f"{room}{suffix}"
        with pytest.raises(SinkError, match="No space left on device") as caught:
            record(path, frames, fps=30, live=False)
        assert "free some space" in caught.value.hint
        assert path.exists() == ("can be played" in caught.value.hint)
        found = numbers(path) if path.exists() else []
        assert found == list(range(len(found)))
        played.append(len(found))
    assert played == sorted(played)  # more room, more pictures
    assert played[-1] >= 45


def test_a_full_disk_gives_the_older_file_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.mp4"
    path.write_bytes(b"old")
    monkeypatch.setattr(recording_module, "Tape", SmallDisk)
    monkeypatch.setattr(SmallDisk, "room", 100)
    with pytest.raises(SinkError, match="No space left") as caught:
        record(path, map(frame, range(60)), overwrite=True)
    assert "no picture had been recorded" in caught.value.hint
    assert path.read_bytes() == b"old"


def test_after_a_failure_every_call_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_module, "Tape", SmallDisk)
    monkeypatch.setattr(SmallDisk, "room", 0)
    sink = Recording(str(tmp_path / "out.mp4"), SinkWish(SMALL))
    with pytest.raises(SinkError, match="No space left"):
        deque(map(sink.write, map(frame, range(200))), maxlen=0)
    with pytest.raises(SinkError, match="closed"):
        sink.write(frame(201))
    sink.close()
