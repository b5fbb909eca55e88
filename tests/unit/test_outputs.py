"""Outputs as people name them: words in, kinds out; even sizes; what ``auto`` takes and says."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.errors import ConfigError, SinkError
from realtime.sinks import (
    RECORDING_SUFFIXES,
    SINKS,
    SinkInfo,
    SinkMissingError,
    SinkSpec,
    SinkWish,
    even_size,
    open_sink,
    parse_output,
)
from realtime.types import Frame, Size

WISH = SinkWish(Size(640, 480), fps=30)


@pytest.mark.parametrize(
    ("text", "kind", "target"),
    [
        ("auto", "auto", ""),
        (" Preview ", "preview", ""),
        ("null", "null", ""),
        ("virtualcam", "virtualcam", ""),
        ("virtualcam:/dev/video10", "virtualcam", "/dev/video10"),
        ("virtualcam:OBS Virtual Camera", "virtualcam", "OBS Virtual Camera"),
        ("/dev/video10", "virtualcam", "/dev/video10"),
        ("out.mp4", "recording", "out.mp4"),
        ("clips/My Talk.MKV", "recording", "clips/My Talk.MKV"),
        (r"C:\clips\out.mov", "recording", r"C:\clips\out.mov"),
        ("recording:preview.mp4", "recording", "preview.mp4"),
    ],
)
def test_a_text_names_a_kind_and_its_target(text: str, kind: str, target: str) -> None:
    assert parse_output(text) == SinkSpec(kind, target)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("virtcam", "virtualcam"),
        ("previw", "preview"),
        ("nul", "null"),
        ("out.avi", ".mp4"),
        ("out.gif", ".mkv"),
        ("", "auto"),
        ("somewhere", "FILE.mp4"),
        ("preview:left", "'preview'"),
        ("auto:1", "'auto'"),
        ("recording:", "recording.mp4"),
    ],
)
def test_a_wrong_text_is_refused_with_what_was_perhaps_meant(text: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_output(text)
    assert hint in caught.value.hint
    assert text in caught.value.message


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused_for_people(text: str) -> None:
    try:
        kind = parse_output(text).kind
    except ConfigError as refusal:
        kind = "auto" if refusal.message and refusal.hint else "a refusal without words"
    assert kind in {"auto", *SINKS}


@given(
    st.text(string.ascii_letters + string.digits + " _-", min_size=1, max_size=20), st.sampled_from(RECORDING_SUFFIXES)
)
def test_every_recording_name_is_kept_as_it_is(stem: str, suffix: str) -> None:
    name = f"x{stem}{suffix}"
    assert parse_output(name) == SinkSpec("recording", name)


@given(st.integers(1, 8000), st.integers(1, 8000))
def test_even_size_is_even_inside_and_loses_at_most_one_line(w: int, h: int) -> None:
    even = even_size(Size(w, h))
    for found, wished in zip(even, (w, h), strict=True):
        assert found % 2 == 0
        assert found >= 2
        assert found <= max(2, wished)
        assert wished - found <= 1
    assert even_size(even) == even


class FakeSink:
    """Takes anything; says in its facts what it was told."""

    def __init__(self, target: str, wish: SinkWish) -> None:
        self.info = SinkInfo("fake", wish.size, 0.0, live=True, facts=wish.notes)

    def write(self, frame: Frame) -> None: ...

    def close(self) -> None: ...


def absent(target: str, wish: SinkWish) -> FakeSink:
    raise SinkMissingError("no virtual camera here", "install one")


def broken(target: str, wish: SinkWish) -> FakeSink:
    raise SinkError("/dev/video10 is not free", "stop the other program")


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A table whose lines a test fills with the names of this module."""

    class Table:
        FakeSink = FakeSink
        absent = staticmethod(absent)
        broken = staticmethod(broken)

    monkeypatch.setattr("importlib.import_module", lambda _name: Table)
    return monkeypatch


def choose(kinds: pytest.MonkeyPatch, virtualcam: str, preview: str) -> None:
    kinds.setitem(SINKS, "virtualcam", f"table:{virtualcam}")
    kinds.setitem(SINKS, "preview", f"table:{preview}")


def test_auto_takes_the_virtual_camera_where_there_is_one(kinds: pytest.MonkeyPatch) -> None:
    choose(kinds, "FakeSink", "broken")
    assert open_sink(SinkSpec("auto"), WISH).info.facts == ()


def test_auto_takes_the_preview_and_says_why(kinds: pytest.MonkeyPatch) -> None:
    choose(kinds, "absent", "FakeSink")
    assert open_sink(SinkSpec("auto"), WISH).info.facts == ("no virtual camera here",)


def test_auto_reports_a_camera_that_exists_and_fails(kinds: pytest.MonkeyPatch) -> None:
    choose(kinds, "broken", "FakeSink")
    with pytest.raises(SinkError, match="not free"):
        open_sink(SinkSpec("auto"), WISH)


def test_auto_without_anything_says_what_to_do(kinds: pytest.MonkeyPatch) -> None:
    choose(kinds, "absent", "absent")
    with pytest.raises(SinkError) as caught:
        open_sink(SinkSpec("auto"), WISH)
    assert not isinstance(caught.value, SinkMissingError)
    assert "install one" in caught.value.hint
    assert "--output out.mp4" in caught.value.hint
