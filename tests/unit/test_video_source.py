"""Video files as people have them: real, uneven, turned, odd, looping, cut off, damaged, and none at all."""

from __future__ import annotations

import struct
import threading
import time
from fractions import Fraction
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest

from realtime.errors import SourceError
from realtime.sources import SourceWish
from realtime.sources.video import VideoSource
from realtime.types import Frame, Size
from tests.clips import make_clip, make_song, number_of, numbered

FAST = SourceWish(paced=False)


def read_all(source: VideoSource, limit: int = 10_000) -> list[Frame]:
    frames = list(islice(iter(source.read, None), limit))
    source.close()
    return [frame for frame in frames if frame is not None]


def read_into(seen: list[int], source: VideoSource) -> None:
    while (frame := source.read()) is not None:
        seen.append(number_of(frame.pixels))


def numbers(frames: list[Frame]) -> list[int]:
    return [number_of(frame.pixels) for frame in frames]


@pytest.mark.data
def test_real_clips_give_every_picture_as_fast_as_possible(data_dir: Path) -> None:
    for path in sorted((data_dir / "clips").glob("*.mkv"))[:3]:
        source = VideoSource(str(path), FAST)
        assert source.info.size == Size(640, 480)
        assert source.info.fps == pytest.approx(30)
        assert not source.info.live
        assert source.info.audio_path is None
        frames = read_all(source)
        assert [frame.seq for frame in frames] == list(range(len(frames)))
        assert len(frames) > 30
        np.testing.assert_allclose([frame.scene_s for frame in frames], np.arange(len(frames)) / 30, atol=2e-3)
        for frame in (frames[0], frames[-1]):
            assert frame.pixels.flags.c_contiguous
            assert frame.pixels.flags.writeable
            assert frame.pixels.std() > 10


def test_pictures_come_in_order_are_owned_by_the_caller_and_then_end(tmp_path: Path) -> None:
    source = VideoSource(str(make_clip(tmp_path / "a.mkv", map(numbered, range(40)))), FAST)
    frames = []
    while (frame := source.read()) is not None:
        frames.append((frame.seq, number_of(frame.pixels)))
        frame.pixels[:] = 0  # whatever the caller does to its picture, the next one is whole
    assert frames == [(n, n) for n in range(40)]
    assert source.read() is None
    source.close()


def test_paced_pictures_never_come_before_their_time(tmp_path: Path) -> None:
    stamps = [0, 20, 120, 140, 300]
    clip = make_clip(tmp_path / "a.mkv", map(numbered, range(5)), stamps_ms=stamps)
    source = VideoSource(str(clip), SourceWish())
    assert source.info.live
    start_s = time.perf_counter()
    frames = read_all(source)
    for frame in frames:
        assert frame.t_capture_s - start_s >= stamps[number_of(frame.pixels)] / 1000
        assert frame.scene_s == frame.t_capture_s
    assert all(a.t_capture_s < b.t_capture_s for a, b in pairwise(frames))


def test_a_paced_reader_that_was_away_finds_the_picture_of_now(tmp_path: Path) -> None:
    source = VideoSource(str(make_clip(tmp_path / "a.mkv", map(numbered, range(60)))), SourceWish())
    first = source.read()
    time.sleep(0.4)
    late = source.read()
    source.close()
    assert first is not None
    assert late is not None
    assert number_of(first.pixels) == 0
    assert number_of(late.pixels) == late.seq >= 11


def test_an_uneven_frame_rate_is_said_and_can_be_made_even(tmp_path: Path) -> None:
    stamps = [0, 33, 67, 100, 133, 167, 200, 400, 600, 800]
    clip = make_clip(tmp_path / "a.mkv", map(numbered, range(10)), stamps_ms=stamps, audio_s=1.0)
    uneven = VideoSource(str(clip), FAST)
    assert numbers(read_all(uneven)) == list(range(10))
    even = VideoSource(str(clip), SourceWish(paced=False, fps=10))
    assert any("resampled to 10" in fact for fact in even.info.facts)
    assert even.info.audio_rate == 10
    assert numbers(read_all(even))[:8] == [0, 3, 6, 6, 7, 7, 8, 8]


# (a, b, c, d) of the track header's matrix as iPhones write it, in 16.16 fixed point; x' = a x + c y, y' = b x + d y.
@pytest.mark.parametrize(
    ("matrix", "corner"),
    [
        ((1, 0, 0, 1), "top left"),
        ((0, 1, -1, 0), "top right"),
        ((-1, 0, 0, -1), "bottom right"),
        ((0, -1, 1, 0), "bottom left"),
    ],
)
def test_a_clip_filmed_sideways_is_shown_upright(tmp_path: Path, matrix: tuple[int, ...], corner: str) -> None:
    stored = np.zeros((48, 96, 3), np.uint8)
    stored[:24, :24] = 255
    path = make_clip(tmp_path / "a.mp4", [stored] * 3)
    data = bytearray(path.read_bytes())
    start = data.index(b"tkhd") + 4 + 40
    a, b, c, d = (part * 65536 for part in matrix)
    data[start : start + 20] = struct.pack(">5i", a, b, 0, c, d)
    path.write_bytes(bytes(data))
    source = VideoSource(str(path), FAST)
    assert source.info.size == (Size(96, 48) if matrix[0] else Size(48, 96))
    pixels = read_all(source)[0].pixels
    lit = {
        "top left": pixels[5, 5],
        "top right": pixels[5, -5],
        "bottom right": pixels[-5, -5],
        "bottom left": pixels[-5, 5],
    }
    assert {name for name, value in lit.items() if value.min() > 200} == {corner}


def test_odd_sizes(tmp_path: Path) -> None:
    source = VideoSource(str(make_clip(tmp_path / "a.mkv", [numbered(n, Size(193, 97)) for n in range(3)])), FAST)
    assert source.info.size == Size(193, 97)
    frames = read_all(source)
    assert frames[0].pixels.shape == (97, 193, 3)
    assert frames[0].pixels.flags.c_contiguous
    assert numbers(frames) == [0, 1, 2]


def test_a_wanted_size_is_filled_without_changing_the_shape(tmp_path: Path) -> None:
    clip = make_clip(tmp_path / "a.mkv", [np.full((96, 96, 3), 255, np.uint8)] * 2)
    source = VideoSource(str(clip), SourceWish(paced=False, size=Size(320, 180)))
    assert source.info.size == Size(320, 180)
    assert "shown as 320x180" in source.info.facts
    pixels = read_all(source)[0].pixels
    assert pixels[90, 160].min() > 240
    assert pixels[:, :68].max() == 0
    assert pixels[:, -68:].max() == 0


def test_colours_follow_the_matrix_that_players_assume(tmp_path: Path) -> None:
    # A saturated red through BT.601 into YUV: shown right at 480 lines, where an unnamed matrix means 601, and
    # visibly different at 720, where it means 709.
    red = (20, 20, 200)
    shown = []
    for size in (Size(640, 480), Size(1280, 720)):
        clip = make_clip(tmp_path / f"{size}.mkv", [np.full((size.h, size.w, 3), red, np.uint8)])
        shown.append(read_all(VideoSource(str(clip), FAST))[0].pixels[100, 100].astype(int))
    assert np.abs(shown[0] - red).max() <= 4
    assert np.abs(shown[1] - red).max() > 10


def test_sound_is_offered_to_a_recording(tmp_path: Path) -> None:
    clip = make_clip(tmp_path / "a.mkv", map(numbered, range(20)), fps=25, audio_s=0.8)
    source = VideoSource(str(clip), FAST)
    assert source.info.audio_path == str(clip)
    assert source.info.audio_rate == Fraction(25)
    assert numbers(read_all(source)) == list(range(20))


def test_a_loop_goes_on_without_end_and_time_goes_on_with_it(tmp_path: Path) -> None:
    clip = make_clip(tmp_path / "a.mkv", map(numbered, range(5)), fps=100)
    for wish in (SourceWish(loop=True, paced=False), SourceWish(loop=True)):
        frames = read_all(VideoSource(str(clip), wish), limit=23)
        assert [frame.seq % 5 for frame in frames] == numbers(frames)
        assert all(a.seq < b.seq and a.t_capture_s < b.t_capture_s for a, b in pairwise(frames))
        assert frames[-1].seq >= 22


def test_a_loop_of_one_picture_keeps_its_pace(tmp_path: Path) -> None:
    clip = make_clip(tmp_path / "a.mkv", [numbered(7)], fps=50)
    start_s = time.perf_counter()
    frames = read_all(VideoSource(str(clip), SourceWish(loop=True)), limit=5)
    assert numbers(frames) == [7] * 5
    assert all(frame.t_capture_s - start_s >= frame.seq / 50 for frame in frames)


def test_sound_that_outlasts_the_pictures_is_no_damage(tmp_path: Path) -> None:
    clip = make_clip(tmp_path / "a.mkv", map(numbered, range(20)), audio_s=3.0)
    assert numbers(read_all(VideoSource(str(clip), FAST))) == list(range(20))


def test_a_clip_that_was_cut_off_gives_what_is_there_and_then_one_error(tmp_path: Path) -> None:
    whole = make_clip(tmp_path / "a.mkv", map(numbered, range(90))).read_bytes()
    path = tmp_path / "cut.mkv"
    path.write_bytes(whole[: len(whole) // 2])
    source = VideoSource(str(path), FAST)
    seen: list[int] = []
    with pytest.raises(SourceError, match=r"ends after .* of 3\.0 seconds") as caught:
        read_into(seen, source)
    assert len(seen) > 20
    assert seen == list(range(len(seen)))
    assert caught.value.hint
    assert source.read() is None
    source.close()


def test_damage_in_the_middle_costs_only_the_pictures_there(tmp_path: Path) -> None:
    # Every PNG stands alone, so exactly the damaged ones are lost.
    path = make_clip(tmp_path / "a.avi", map(numbered, range(30)), codec="png")
    data = bytearray(path.read_bytes())
    starts = [n for n in range(len(data)) if data[n : n + 4] == b"\x89PNG"]
    assert len(starts) == 30
    for start in starts[10:13]:
        data[start : start + 60] = bytes(60)
    path.write_bytes(bytes(data))
    source = VideoSource(str(path), FAST)
    seen: list[int] = []
    with pytest.raises(SourceError, match="damaged"):
        read_into(seen, source)
    # Decoders that read ahead may lose the neighbour of a damaged picture too.
    assert set(seen) | {9, 13} == {*range(10), *range(13, 30)}
    assert seen == sorted(seen)
    source.close()


def test_a_damaged_clip_still_loops(tmp_path: Path) -> None:
    whole = make_clip(tmp_path / "a.mkv", map(numbered, range(90))).read_bytes()
    (tmp_path / "cut.mkv").write_bytes(whole[: len(whole) // 2])
    frames = read_all(VideoSource(str(tmp_path / "cut.mkv"), SourceWish(loop=True, paced=False)), limit=120)
    assert len(frames) == 120


def test_what_is_no_video_is_told_apart(tmp_path: Path) -> None:
    whole = make_clip(tmp_path / "holiday.mp4", map(numbered, range(30))).read_bytes()
    (tmp_path / "cut.mp4").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "empty.mkv").write_bytes(b"")
    (tmp_path / "noise.mkv").write_bytes(np.random.default_rng(0).bytes(4000))
    (tmp_path / "notes.txt").write_text("a text is no terminal screen\n" * 50)
    make_song(tmp_path / "song.mka")
    for name, message in (
        ("holliday.mp4", "no file"),
        ("empty.mkv", "empty"),
        ("noise.mkv", "cannot be read as a video"),
        ("cut.mp4", "cannot be read as a video"),
        ("notes.txt", "not a video|cannot be read as a video"),
        ("song.mka", "sound but no picture"),
        (".", "folder"),
    ):
        with pytest.raises(SourceError, match=message) as caught:
            VideoSource(str(tmp_path / name), FAST)
        assert caught.value.hint
        assert caught.value.fatal
    with pytest.raises(SourceError) as caught:
        VideoSource(str(tmp_path / "holliday.mp4"), FAST)
    assert "holiday.mp4" in caught.value.hint


def test_a_sleeping_reader_wakes_when_the_source_is_closed(tmp_path: Path) -> None:
    clip = make_clip(tmp_path / "a.mkv", map(numbered, range(2)), stamps_ms=[0, 9000])
    source = VideoSource(str(clip), SourceWish())
    source.read()
    errors: list[SourceError] = []

    def reader() -> None:
        try:
            source.read()
        except SourceError as error:
            errors.append(error)

    thread = threading.Thread(target=reader)
    thread.start()
    source.close()
    source.close()
    thread.join(5)
    assert not thread.is_alive()
    assert [error.fatal for error in errors] == [False]


def test_a_slow_decoder_slows_the_film_instead_of_showing_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clip = make_clip(tmp_path / "a.mkv", map(numbered, range(30)), fps=100)
    source = VideoSource(str(clip), SourceWish())
    quick = source._advance

    def slow() -> object:
        time.sleep(0.03)  # three times what a picture of this film may take
        return quick()

    monkeypatch.setattr(source, "_advance", slow)
    frames = read_all(source)
    assert len(frames) >= 10
