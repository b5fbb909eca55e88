"""The preview window on a real X server (Xvfb), with its picture read back from the screen."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]

CLICK_CROSS = """
import ctypes

class ClientMessage(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("serial", ctypes.c_ulong), ("send_event", ctypes.c_int),
        ("display", ctypes.c_void_p), ("window", ctypes.c_ulong), ("message_type", ctypes.c_ulong),
        ("format", ctypes.c_int), ("data", ctypes.c_long * 5), ("rest_of_the_union", ctypes.c_long * 12)]

def click_cross(window):
    x = ctypes.CDLL("libX11.so.6")
    x.XOpenDisplay.restype = ctypes.c_void_p
    x.XInternAtom.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
    x.XInternAtom.restype = ctypes.c_ulong
    x.XSendEvent.argtypes = [ctypes.c_void_p, ctypes.c_ulong, ctypes.c_int, ctypes.c_long, ctypes.c_void_p]
    x.XCloseDisplay.argtypes = [ctypes.c_void_p]
    display = x.XOpenDisplay(None)
    message = ClientMessage(type=33, window=window, format=32)
    message.message_type = x.XInternAtom(display, b"WM_PROTOCOLS", 0)
    message.data[0] = x.XInternAtom(display, b"WM_DELETE_WINDOW", 0)
    x.XSendEvent(display, window, 0, 0, ctypes.byref(message))
    x.XCloseDisplay(display)
"""
"""Sends a window what a window manager sends it when its cross is clicked (ICCCM, 4.1.2.7 and 4.2.8.1)."""

WINDOW = (
    CLICK_CROSS
    + """
import subprocess, sys, time
import mss, mss.tools
import numpy as np
from realtime.sinks import SinkClosed, SinkWish, open_sink, parse_output
from realtime.types import Frame, Size

screenshot, action, mirror = sys.argv[1], sys.argv[2], sys.argv[3] == "mirror"
size = Size(320, 240)
pixels = np.zeros((240, 320, 3), np.uint8)
pixels[:, :160] = (0, 0, 255)
pixels[:, 160:] = (255, 0, 0)
pixels.setflags(write=False)
sink = open_sink(parse_output("auto"), SinkWish(size, mirror=mirror))
assert sink.info.main_thread and sink.info.fps == 30 and sink.info.facts[0].startswith("there is no virtual camera")

def show(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sink.write(Frame(0, 0.0, pixels))
        time.sleep(0.01)

show(0.2)
window = subprocess.run(["xdotool", "search", "--name", "doppelcam"], capture_output=True, text=True).stdout.split()[-1]
deadline = time.monotonic() + 20
with mss.MSS() as screen:
    bright = 0
    while bright < 60_000 and time.monotonic() < deadline:
        # Qt can miss its first expose event on a server without a window manager, whose part is played here.
        subprocess.run(["xdotool", "windowunmap", window, "windowmap", window], check=True)
        show(0.3)
        shot = screen.grab(screen.monitors[0])
        bright = int((np.frombuffer(shot.rgb, np.uint8).reshape(-1, 3).max(axis=1) > 128).sum())
    mss.tools.to_png(shot.rgb, shot.size, output=screenshot)
if action == "close":
    sink.close()
    sink.close()
    print("closed by the program")
    sys.exit()
if action == "cross":
    click_cross(int(window))
else:
    subprocess.run(["xdotool", "key", "--window", window, action], check=True)
try:
    show(20)
except SinkClosed:
    print("closed by the person")
sink.close()
"""
)


@pytest.fixture
def display() -> Iterator[str]:
    """An X server of our own without any other client, on a number that it finds itself."""
    if not shutil.which("Xvfb") or not shutil.which("xdotool"):
        pytest.skip("Xvfb or xdotool is missing (Debian packages xvfb, xdotool)")
    command = ["Xvfb", "-displayfd", "1", "-screen", "0", "800x600x24", "-nolisten", "tcp"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        yield f":{server.stdout.readline().strip()}"
        server.terminate()


def show(display: str, screenshot: Path, action: str, mirror: str = "") -> str:
    environment = {key: value for key, value in os.environ.items() if key != "WAYLAND_DISPLAY"} | {"DISPLAY": display}
    done = subprocess.run(
        [sys.executable, "-c", WINDOW, str(screenshot), action, mirror],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("action", ["q", "Escape", "cross"])
def test_the_person_ends_the_run_by_key_or_by_closing(display: str, tmp_path: Path, action: str) -> None:
    assert show(display, tmp_path / "shot.png", action) == "closed by the person"


@pytest.mark.parametrize(("mirror", "left", "right"), [("", 2, 0), ("mirror", 0, 2)])
def test_the_picture_is_on_the_screen(display: str, tmp_path: Path, mirror: str, left: int, right: int) -> None:
    assert show(display, tmp_path / "shot.png", "close", mirror) == "closed by the program"
    shot = cv2.imread(str(tmp_path / "shot.png"))
    assert shot is not None
    rows, columns = np.nonzero(shot.max(axis=2) > 128)
    middle = int(rows.mean())
    colours = [int(shot[middle, column].argmax()) for column in (columns.min() + 20, columns.max() - 20)]
    assert colours == [left, right]
    assert 300 <= np.ptp(columns) <= 340


@pytest.mark.parametrize(
    ("setting", "words"),
    [({}, "DISPLAY is not set"), ({"WAYLAND_DISPLAY": "wayland-0"}, "only Wayland"), ({"DISPLAY": ":987"}, "987")],
)
def test_without_a_display_the_process_survives_and_says_what_to_do(setting: dict[str, str], words: str) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("a desktop is always there on this system")
    program = """
from realtime.sinks import SinkMissingError, SinkSpec, SinkWish, open_sink
from realtime.types import Size
try:
    open_sink(SinkSpec("preview"), SinkWish(Size(64, 48)))
except SinkMissingError as error:
    print(error.message)
    assert error.hint
"""
    environment = {key: value for key, value in os.environ.items() if key not in {"DISPLAY", "WAYLAND_DISPLAY"}}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=environment | setting,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert words in done.stdout
