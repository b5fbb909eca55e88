"""A monitor or a part of one as a camera, through mss; knows nothing of windows."""

from __future__ import annotations

import re
import sys
import time
from typing import Any

import cv2
import mss
import numpy as np

from realtime.errors import ConfigError, SourceError
from realtime.sources import SourceInfo, SourceWish
from realtime.sources.fit import letterbox
from realtime.sources.handle import Handle
from realtime.sources.pace import Metronome
from realtime.types import U8, Frame

DEFAULT_FPS = 30.0

_NO_SCREEN_HINT = {
    "linux": "start it inside a desktop session with X11 (DISPLAY set); under Wayland choose an Xorg session",
    "darwin": "allow screen recording for the terminal: System Settings, Privacy & Security, Screen Recording",
}

Region = dict[str, Any]
"""left, top, width and height in desktop pixels, as mss takes them."""


class ScreenSource:
    """A screen region, grabbed ``wish.fps`` times a second. Live: a late reader skips."""

    def __init__(self, target: str, wish: SourceWish) -> None:
        """Connect to the desktop and grab once.

        Args:
            target: "" for the primary monitor, "N" for monitor N from 1, "X,Y,W,H" for a region in desktop pixels.
            wish: ``size`` and ``fps`` (30) are used.

        Raises:
            ConfigError: ``target`` is none of the three, or no such monitor.
            SourceError: there is no desktop, or it may not be grabbed.
        """
        wanted = _parse(target)
        self._size = wish.size
        try:
            desktop = mss.MSS()
        except mss.ScreenShotError as error:
            raise _no_screen(str(error)) from error
        self._handle = Handle("the screen", desktop, mss.MSS.close)
        try:
            self._region = _region(desktop, wanted)
            first = letterbox(_grab(desktop, self._region), self._size)
        except (ConfigError, SourceError):
            self._handle.close()
            raise
        self._metronome = Metronome(wish.fps or DEFAULT_FPS)
        size = Frame(0, 0.0, first).size
        where = "{width}x{height} at {left},{top}".format(**self._region)
        self._info = SourceInfo(f"screen {target}".strip(), size, self._metronome.fps, live=True, facts=(where,))

    @property
    def info(self) -> SourceInfo:
        """The size that is handed out and the rate that is asked of the desktop."""
        return self._info

    def read(self) -> Frame:
        """Wait for the next beat and grab the region as it is then.

        Raises:
            SourceError: the desktop refused (``fatal=False``), or closed.
        """
        with self._handle.use() as desktop:
            seq, due_s = self._metronome.next(time.perf_counter())
            stamp_s = self._handle.sleep_until(due_s)
            return Frame(seq, stamp_s, letterbox(_grab(desktop, self._region), self._size))

    def close(self) -> None:
        """Disconnect from the desktop."""
        self._handle.close()


def _parse(target: str) -> tuple[int, ...]:
    """() primary, (n,) a monitor, (x, y, w, h) a region."""
    match = re.fullmatch(r"(\d{1,3})?|(-?\d{1,5}),(-?\d{1,5}),(\d{1,5}),(\d{1,5})", target.replace(" ", ""), re.ASCII)
    numbers = tuple(int(part) for part in match.groups() if part) if match else ()
    if not match or (len(numbers) == 4 and 0 in numbers[2:]):
        raise ConfigError(f"screen:{target} is no monitor and no region", "give screen, screen:1 or screen:X,Y,W,H")
    return numbers


def _region(desktop: mss.MSS, wanted: tuple[int, ...]) -> Region:
    # mss lists the union of all monitors first, then each one.
    everything, *monitors = desktop.monitors
    if len(wanted) == 4:
        region = dict(zip(("left", "top", "width", "height"), wanted, strict=True))
        if not _inside(region, everything):
            shape = "{width}x{height} at {left},{top}".format(**everything)
            raise ConfigError(f"the region {wanted} reaches outside the desktop", f"the desktop is {shape}")
        return region
    if not wanted:
        return desktop.primary_monitor
    if not 1 <= wanted[0] <= len(monitors):
        raise ConfigError(f"there is no monitor {wanted[0]}", f"give screen:1 to screen:{len(monitors)}")
    return monitors[wanted[0] - 1]


def _inside(region: Region, outer: Region) -> bool:
    return all(
        outer[start] <= region[start] and region[start] + region[length] <= outer[start] + outer[length]
        for start, length in (("left", "width"), ("top", "height"))
    )


def _grab(desktop: mss.MSS, region: Region) -> U8:
    try:
        shot = desktop.grab(region)
    except mss.ScreenShotError as error:
        raise SourceError(f"the screen cannot be grabbed: {error}", _hint(), fatal=False) from error
    bgra = np.frombuffer(shot.raw, np.uint8).reshape(shot.height, shot.width, 4)
    return np.asarray(cv2.cvtColor(bgra, cv2.COLOR_BGRA2BGR))


def _no_screen(reason: str) -> SourceError:
    return SourceError(f"there is no screen to grab: {reason}", _hint())


def _hint() -> str:
    return _NO_SCREEN_HINT.get(sys.platform, "check that a desktop session is running and not locked")
