"""What a person may type for --input, and what they are told when it is nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from realtime.errors import ConfigError
from realtime.sources import SOURCES, SourceSpec, SourceWish, open_source, parse_input


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("auto", SourceSpec("auto")),
        ("demo", SourceSpec("demo")),
        ("0", SourceSpec("camera", "0")),
        ("007", SourceSpec("camera", "7")),
        ("camera", SourceSpec("camera")),
        ("camera:Logitech C920", SourceSpec("camera", "Logitech C920")),
        ("camera:/dev/v4l/by-id/usb-X-index0", SourceSpec("camera", "/dev/v4l/by-id/usb-X-index0")),
        ("/dev/v4l/by-id/usb-X-index0", SourceSpec("camera", "/dev/v4l/by-id/usb-X-index0")),
        ("/dev/video2", SourceSpec("camera", "/dev/video2")),
        ("rtsp://me:pw@cam/1", SourceSpec("url", "rtsp://me:pw@cam/1")),
        ("HTTP://cam/x.mjpg", SourceSpec("url", "HTTP://cam/x.mjpg")),
        ("udp://127.0.0.1:5000", SourceSpec("url", "udp://127.0.0.1:5000")),
        ("screen", SourceSpec("screen")),
        ("screen:1", SourceSpec("screen", "1")),
        (" screen:0,0,640,480 ", SourceSpec("screen", "0,0,640,480")),
    ],
)
def test_words(text: str, spec: SourceSpec) -> None:
    assert parse_input(text) == spec


def test_a_file_is_a_picture_by_its_name_and_else_a_video(tmp_path: Path) -> None:
    for name, kind in (
        ("me.PNG", "image"),
        ("me.jpeg", "image"),
        ("clip.mkv", "video"),
        ("a.gif", "video"),
        ("x", "video"),
    ):
        path = tmp_path / name
        path.write_bytes(b"x")
        assert parse_input(str(path)) == SourceSpec(kind, str(path))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("demmo", "did you mean demo"),
        ("scren:1", "did you mean screen"),
        ("rstp://cam/1", "did you mean"),
        ("file:///tmp/x.mkv", "plain path"),
        ("gopher://cam", "rtsp://"),
        ("", "camera:NAME"),
        ("no such thing.mkv", "camera:NAME"),
    ],
)
def test_a_slip_is_answered_with_what_is_near(text: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_input(text)
    assert hint in caught.value.hint


def test_a_mistyped_file_name_is_answered_with_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "holiday.mkv").write_bytes(b"x")
    with pytest.raises(ConfigError, match="no file") as caught:
        parse_input(str(tmp_path / "holliday.mkv"))
    assert "holiday.mkv" in caught.value.hint


def test_a_folder_is_no_input(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="folder"):
        parse_input(str(tmp_path))


@given(st.text(max_size=400))
@example("\0")
@example("x" * 5000)
@example("\ud800")
@example("camera:\0")
@example("~/\0")
@example("~nobody-of-that-name/x")
@example("9" * 5000)
@example("://")
def test_any_text_is_a_spec_of_a_known_kind_or_a_config_error(text: str) -> None:
    try:
        told = parse_input(text).kind
    except ConfigError as error:
        told = error.message and error.hint
    assert told


def test_every_word_names_a_kind_of_the_table() -> None:
    assert {parse_input(text).kind for text in ("auto", "demo", "0", "screen", "udp://x")} < set(SOURCES)


def test_an_unknown_kind_names_the_known_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        open_source(SourceSpec("telepathy"), SourceWish())
    assert "camera" in caught.value.hint
