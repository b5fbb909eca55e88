"""The parts that sources share (lending, fitting) and the still picture that uses them."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from realtime.errors import SourceError
from realtime.sources import SourceWish
from realtime.sources.fit import inscribed, letterbox, shrink
from realtime.sources.handle import Handle
from realtime.sources.image import ImageSource
from realtime.types import Size

SIDES = st.integers(1, 300)


@given(SIDES, SIDES, SIDES, SIDES)
def test_a_fitted_picture_has_the_size_and_the_shape(w: int, h: int, to_w: int, to_h: int) -> None:
    size = Size(to_w, to_h)
    inner = inscribed(Size(w, h), size)
    assert 1 <= inner.w <= to_w
    assert 1 <= inner.h <= to_h
    assert inner.w == to_w or inner.h == to_h
    out = letterbox(np.full((h, w, 3), 200, np.uint8), size)
    assert out.shape == (to_h, to_w, 3)
    assert out.flags.c_contiguous
    assert np.count_nonzero(out[..., 0]) == inner.w * inner.h
    assert set(np.unique(out)) <= {0, 200}


def test_what_fits_is_not_touched() -> None:
    pixels = np.zeros((24, 32, 3), np.uint8)
    assert letterbox(pixels, None) is pixels
    assert letterbox(pixels, Size(32, 24)) is pixels
    assert shrink(pixels, Size(32, 24)) is pixels
    assert shrink(pixels, Size(16, 16)).shape == (12, 16, 3)


def test_a_handle_frees_once_whoever_closes() -> None:
    freed: list[str] = []
    handle = Handle("x", "thing", freed.append)
    with handle.use() as thing:
        assert thing == "thing"
    assert freed == []
    handle.close()
    handle.close()
    assert freed == ["thing"]
    with pytest.raises(SourceError, match="x was closed") as caught, handle.use():
        pass
    assert not caught.value.fatal


def test_a_handle_that_is_closed_in_use_is_freed_by_its_user() -> None:
    freed: list[str] = []
    handle = Handle("x", "thing", freed.append)
    with handle.use():
        handle.close()
        assert freed == []
    assert freed == ["thing"]


def test_a_use_that_fails_still_frees() -> None:
    freed: list[str] = []
    handle = Handle("x", "thing", freed.append)

    def fail() -> None:
        with handle.use():
            handle.close()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert freed == ["thing"]


def test_closing_wakes_a_sleeper() -> None:
    handle = Handle("x", None, lambda _: None)
    timer = threading.Timer(0.05, handle.close)
    timer.start()
    with pytest.raises(SourceError, match="closed"), handle.use():
        handle.sleep_until(time.perf_counter() + 60)
    timer.join()


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "me.png"
    Image.fromarray(np.tile(np.arange(64, dtype=np.uint8)[None, :, None], (48, 1, 3))).save(path)
    return path


def test_a_still_is_handed_out_again_and_again_never_early(photo: Path) -> None:
    source = ImageSource(str(photo), SourceWish(fps=50))
    assert source.info.size == Size(64, 48)
    assert source.info.fps == 50
    assert source.info.live
    before_s = time.perf_counter()
    frames = [source.read() for _ in range(5)]
    assert all(frame.t_capture_s - before_s >= frame.seq / 50 for frame in frames)
    assert all(a.seq < b.seq for a, b in pairwise(frames))
    frames[0].pixels[:] = 0
    assert frames[1].pixels.max() == 63
    source.close()
    with pytest.raises(SourceError):
        source.read()


def test_a_still_has_the_wanted_size_and_a_phone_photo_a_bearable_one(tmp_path: Path, photo: Path) -> None:
    assert ImageSource(str(photo), SourceWish(size=Size(320, 180))).info.size == Size(320, 180)
    Image.new("RGB", (3000, 4000)).save(tmp_path / "phone.jpg")
    source = ImageSource(str(tmp_path / "phone.jpg"), SourceWish())
    assert source.info.size == Size(810, 1080)
    assert source.info.facts == ("still picture 3000x4000, shown as 810x1080",)


def test_a_bad_still_is_a_source_error(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"no picture")
    for name, message in (("a.png", "not a picture"), ("b.png", "no file")):
        with pytest.raises(SourceError, match=message) as caught:
            ImageSource(str(tmp_path / name), SourceWish())
        assert caught.value.hint
        assert caught.value.fatal
