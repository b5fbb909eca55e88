"""A window on this screen; knows OpenCV's windows and their moods, refuses to know other screens."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cv2
import numpy as np

from realtime.errors import SinkError
from realtime.sinks import SinkClosed, SinkInfo, SinkMissingError, SinkWish
from realtime.types import Frame, Size

_REFRESH_HZ = 30.0
"""Steady cadence when the source names none: a window must be served, or the desktop calls it frozen."""

_CLOSE_KEYS = frozenset({ord("q"), ord("Q"), 27})
"""q and Escape."""


class Preview:
    """A resizable window. Closing it, q or Escape ends the run.

    To be opened, written and closed by the main thread: on macOS windows belong to it, and OpenCV's Qt wants one
    thread for all of them.
    """

    def __init__(self, target: str, wish: SinkWish) -> None:
        del target  # there is one desktop
        self._title = wish.title
        self._mirrored = np.empty((wish.size.h, wish.size.w, 3), np.uint8) if wish.mirror else None
        self._open = False
        with _display():
            _open_window(self._title, wish.size)
        self._open = True
        self._info = SinkInfo(
            name=f"preview window '{self._title}'" + (" (mirrored)" if wish.mirror else ""),
            size=wish.size,
            fps=wish.fps or _REFRESH_HZ,
            live=True,
            facts=(*wish.notes, "q, Escape or closing the window ends the run"),
            main_thread=True,
        )

    @property
    def info(self) -> SinkInfo:
        """The wished size; the window itself may be drawn larger or smaller."""
        return self._info

    def write(self, frame: Frame) -> None:
        """Show one picture and serve the window.

        Raises:
            SinkClosed: the person closed the window or pressed q or Escape.
            SinkError: the picture cannot be drawn.
        """
        if not self._open or not self._visible():
            raise SinkClosed
        pixels = frame.pixels
        if self._mirrored is not None:
            pixels = cv2.flip(pixels, 1, dst=self._mirrored)
        try:
            cv2.imshow(self._title, pixels)
            key = cv2.pollKey() & 0xFF
        except cv2.error as error:
            raise SinkError(f"the preview window cannot show the picture: {error}", "start again") from error
        if key in _CLOSE_KEYS or not self._visible():
            raise SinkClosed

    def close(self) -> None:
        """Remove the window. Safe to call twice, and after the person closed it."""
        if not self._open:
            return
        self._open = False
        if self._visible():
            cv2.destroyWindow(self._title)
            cv2.pollKey()  # the window goes away only when its events are served

    def _visible(self) -> bool:
        try:
            return bool(cv2.getWindowProperty(self._title, cv2.WND_PROP_VISIBLE) >= 1)
        except cv2.error:  # Qt's part of OpenCV is gone once the last window was closed
            return False


def _open_window(title: str, size: Size) -> None:
    try:
        cv2.namedWindow(title, cv2.WINDOW_NORMAL | cv2.WINDOW_KEEPRATIO | cv2.WINDOW_GUI_NORMAL)
        cv2.resizeWindow(title, size.w, size.h)
    except cv2.error as error:
        raise SinkMissingError(
            "this OpenCV cannot open windows",
            "run: pip uninstall opencv-python-headless, then pip install --force-reinstall opencv-python",
        ) from error


@contextmanager
def _display() -> Iterator[None]:
    """A display that surely takes a window, because Qt ends the process when it does not.

    On Linux OpenCV's Qt speaks X11 only (a Wayland desktop offers it through XWayland), so the X server is asked the
    way Qt will ask it, cookie included. The connection is held until Qt has its own: a bare X server starts afresh
    when its last client leaves, and turns away whoever comes meanwhile.

    Raises:
        SinkMissingError: there is no display, or it does not let this program in.
    """
    if not sys.platform.startswith("linux"):
        yield
        return
    name = os.environ.get("DISPLAY", "")
    if not name:
        where = "only Wayland, without XWayland" if os.environ.get("WAYLAND_DISPLAY") else "DISPLAY is not set"
        raise SinkMissingError(
            f"there is no display for a preview window ({where})",
            "run it from a desktop session, or take another output: --output out.mp4",
        )
    xcb = _window_libraries()
    connection = xcb.xcb_connect(None, None)
    try:
        if xcb.xcb_connection_has_error(connection):
            raise SinkMissingError(
                f"the display {name} does not let this program in",
                "run it as the user of that desktop (not with sudo), or correct DISPLAY",
            )
        yield
    finally:
        xcb.xcb_disconnect(connection)


def _window_libraries() -> ctypes.CDLL:
    """Load what Qt will load for its first window, because it ends the process too when a library is missing.

    Returns:
        The X client library.
    """
    try:
        for plugin in (Path(cv2.__file__).parent / "qt" / "plugins" / "platforms").glob("libqxcb.so"):
            ctypes.CDLL(str(plugin))
        xcb = ctypes.CDLL("libxcb.so.1")
    except OSError as error:
        raise SinkMissingError(
            f"windows need a library that this system lacks: {error}",
            "on Debian or Ubuntu: sudo apt-get install libxcb1 libsm6 libxext6",
        ) from error
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connect.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    xcb.xcb_connection_has_error.argtypes = [ctypes.c_void_p]
    xcb.xcb_disconnect.argtypes = [ctypes.c_void_p]
    return xcb
