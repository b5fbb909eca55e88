"""The pictures of the bench: continuous, in bounded memory, at the height asked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.errors import SourceError
from realtime.rehearsal import STOCK_BYTES, Rehearsal, close_up, stock_from, there_and_back
from realtime.types import Size
from tests.fakes import FakeSource, Pictures, picture

SMALL = Size(64, 48)


@given(st.integers(0, 10_000), st.integers(1, 50))
def test_the_stock_is_played_without_a_jump(number: int, length: int) -> None:
    here, there = there_and_back(number, length), there_and_back(number + 1, length)
    assert 0 <= here < length
    assert abs(here - there) <= 1


def test_in_lockstep_every_picture_comes_and_is_the_readers_own() -> None:
    stock = (picture(1), picture(2))
    source = Rehearsal(stock, fps=0, frames=4)
    frames = []
    while (frame := source.read()) is not None:
        frames.append(frame)
        frame.pixels[:] = 99
    assert [frame.seq for frame in frames] == [0, 1, 2, 3]
    assert not source.info.live
    assert [int(own.max()) for own in stock] == [1, 2]


def test_paced_it_is_live_and_ends_after_the_same_time_however_slow_the_reader() -> None:
    source = Rehearsal((picture(1),), fps=1000, frames=5)
    assert source.info.live
    seqs = []
    while (frame := source.read()) is not None:
        seqs.append(frame.seq)
    assert seqs == sorted(set(seqs))
    assert max(seqs) <= 4


def test_the_stock_stays_in_its_memory_and_has_the_size_asked_for() -> None:
    size = Size(1920, 1080)
    stock = stock_from(FakeSource([Pictures(1000)], live=False), size, None, copies=1)
    assert all(pixels.shape == (1080, 1920, 3) for pixels in stock)
    assert sum(pixels.nbytes for pixels in stock) <= STOCK_BYTES


@pytest.mark.parametrize("copies", [1, 4, 9])
def test_copies_lie_side_by_side(copies: int) -> None:
    (pixels,) = stock_from(FakeSource([Pictures(1)], live=False), SMALL, None, copies)
    per_side = round(copies**0.5)
    assert pixels.shape == (48, 64, 3)
    tile = pixels[: 48 // per_side, : 64 // per_side]
    assert np.array_equal(pixels[: tile.shape[0], : tile.shape[1] * per_side], np.tile(tile, (1, per_side, 1)))


def test_a_close_up_shows_the_face_at_the_height_asked_for_in_the_middle() -> None:
    tile_from_source = close_up(np.array([100, 50, 140, 110], np.float32), 300, Size(1280, 720))
    (left, top), (right, bottom) = (tile_from_source @ (x, y, 1) for x, y in ((100, 50), (140, 110)))
    assert bottom - top == pytest.approx(300)
    assert ((left + right) / 2, (top + bottom) / 2) == pytest.approx((640, 360))


def test_a_source_without_a_picture_is_told() -> None:
    with pytest.raises(SourceError, match="no picture"):
        stock_from(FakeSource([], live=False), SMALL, None, 1)
