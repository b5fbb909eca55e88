"""A real X server without a monitor (Xvfb), painted and grabbed; and what is said where there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

from realtime.errors import ConfigError, LiveError, SourceError
from realtime.sources import SourceWish
from realtime.sources.screen import ScreenSource
from realtime.types import Size


@pytest.fixture(scope="module")
def display() -> Iterator[str]:
    """An X display of 640x480 whose background is a grey weave; skips where Xvfb is not installed."""
    program = shutil.which("Xvfb")
    if program is None:
        pytest.skip("Xvfb is not installed (Debian: apt-get install xvfb)")
    read_end, write_end = os.pipe()
    command = [program, "-displayfd", str(write_end), "-screen", "0", "640x480x24", "-nolisten", "tcp"]
    server = subprocess.Popen(command, pass_fds=[write_end], stderr=subprocess.DEVNULL)
    os.close(write_end)
    with os.fdopen(read_end) as answer:
        number = answer.readline().strip()
    try:
        assert number, "Xvfb did not start"
        yield f":{number}"
    finally:
        server.terminate()
        server.wait(10)


@pytest.fixture
def desktop(display: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    return display


def test_the_whole_screen(desktop: str) -> None:
    source = ScreenSource("", SourceWish(fps=50))
    assert source.info.size == Size(640, 480)
    assert source.info.live
    assert source.info.facts == ("640x480 at 0,0",)
    frames = [source.read() for _ in range(3)]
    assert all(a.seq < b.seq and a.t_capture_s < b.t_capture_s for a, b in pairwise(frames))
    assert frames[0].pixels.shape == (480, 640, 3)
    assert frames[0].pixels.dtype == np.uint8
    assert frames[0].pixels.flags.c_contiguous
    source.close()
    source.close()
    with pytest.raises(SourceError, match="closed"):
        source.read()


def test_a_region_shows_what_is_painted_there(desktop: str) -> None:
    # Python's own window toolkit paints a window without a frame at a known place.
    code = (
        "import tkinter as t, sys; w = t.Tk(); w.overrideredirect(True); w.geometry('100x80+40+30');"
        "w.configure(bg='#c81428'); w.update(); print('up', flush=True); sys.stdin.readline()"
    )
    painter = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert painter.stdin
    assert painter.stdout
    try:
        if painter.stdout.readline().strip() != "up":
            pytest.skip("this Python has no tkinter to paint with")
        source = ScreenSource("40,30,100,80", SourceWish())
        pixels = source.read().pixels
        assert pixels.shape == (80, 100, 3)
        assert (pixels == (0x28, 0x14, 0xC8)).all()
        source.close()
    finally:
        painter.communicate("\n", timeout=10)


def test_a_wanted_size_and_a_monitor_by_number(desktop: str) -> None:
    source = ScreenSource("1", SourceWish(size=Size(320, 180)))
    assert source.info.size == Size(320, 180)
    assert source.read().pixels.shape == (180, 320, 3)
    source.close()


@pytest.mark.parametrize("target", ["7", "600,0,100,100", "0,0,641,10"])
def test_what_is_not_on_the_desktop(desktop: str, target: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ScreenSource(target, SourceWish())
    assert caught.value.hint


@pytest.mark.parametrize("target", ["left", "1,2,3", "0,0,0,10", "-1", "1.5", "1,2,3,4,5", "٣"])
def test_what_is_no_region(target: str) -> None:
    with pytest.raises(ConfigError, match="no monitor and no region"):
        ScreenSource(target, SourceWish())


@pytest.mark.skipif(sys.platform != "linux", reason="only X11 can be taken away by an environment variable")
@pytest.mark.parametrize("display", ["", ":9999"])
def test_without_a_screen(display: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", display)
    with pytest.raises(LiveError, match="no screen to grab") as caught:
        ScreenSource("", SourceWish())
    assert "X11" in caught.value.hint
