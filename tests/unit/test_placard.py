"""The card: right shape, shared safely, readable text inside the picture at every size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.placard import placard
from realtime.types import Size


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 900), st.integers(2, 700), st.text(max_size=60), st.lists(st.text(max_size=80), max_size=4))
def test_any_text_at_any_size_gives_a_picture(w: int, h: int, title: str, lines: list[str]) -> None:
    card = placard(Size(w, h), title, tuple(lines))
    assert card.shape == (h, w, 3)
    assert card.dtype == np.uint8
    assert card.flags.c_contiguous


def test_the_same_card_is_drawn_once_and_nobody_can_paint_on_it() -> None:
    first = placard(Size(320, 240), "Starting")
    assert placard(Size(320, 240), "Starting") is first
    assert not first.flags.writeable


@pytest.mark.parametrize("size", [Size(1280, 720), Size(640, 480), Size(480, 854)])
def test_text_is_bright_on_dark_centred_and_inside_the_margins(size: Size) -> None:
    card = placard(size, "No face in view of this camera, which looks at the door", ("Move into the picture.",))
    bright = card.max(axis=2) > 200
    columns = np.flatnonzero(bright.any(axis=0))
    assert columns[0] >= 0.05 * size.w
    assert columns[-1] <= 0.95 * size.w
    assert abs((columns[0] + columns[-1]) / 2 - size.w / 2) < 0.02 * size.w
    assert np.median(card) < 60
