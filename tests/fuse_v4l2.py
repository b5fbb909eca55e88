"""A video output device that needs no kernel module: a FUSE file that answers the V4L2 ioctls of a writer.

It knows the part of V4L2 that an unmodified pyvirtualcam uses (open, QUERYCAP, S_FMT, G_FMT, write) and refuses to know
readers: there is no capture side. The file system runs in a process of its own (``fuse_v4l2_server.py``), because it
must not be served by the process that uses it. Faults go in and facts come out through files beside the device.
"""

from __future__ import annotations

import ctypes.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import cv2
import numpy as np
from numpy.typing import NDArray

SERVER = Path(__file__).with_name("fuse_v4l2_server.py")


def why_not() -> str:
    """Why no such device can be made here, or an empty text."""
    if sys.platform != "linux":
        return "FUSE devices are a Linux matter"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse is missing or closed to this user"
    if not shutil.which("fusermount3"):
        return "fusermount3 is missing (Debian package fuse3)"
    if not ctypes.util.find_library("fuse3"):
        return "libfuse3 is missing (Debian package libfuse3-3)"
    return ""


class FakeVideoDevice:
    """The mounted device, as a context manager for a test.

    Attributes:
        path: give this to the writer as its device.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / "video0"
        self._process = subprocess.Popen([sys.executable, str(SERVER), str(folder)])

    def __enter__(self) -> Self:
        deadline = time.monotonic() + 20
        while not (self._folder / "state").exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self._stop()
                raise RuntimeError(f"the FUSE file system did not come up (exit code {self._process.poll()})")
            time.sleep(0.02)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        self._process.terminate()  # libfuse unmounts on its way out
        self._process.wait(timeout=20)

    def inject(self, **faults: Any) -> None:
        """Replace the faults by these (see ``fuse_v4l2_server.Board``); none heals the device."""
        (self._folder / "control").write_text(json.dumps(faults))

    @property
    def state(self) -> dict[str, Any]:
        """What arrived so far: frames, opens, size, fourcc, pending bytes."""
        found: dict[str, Any] = json.loads((self._folder / "state").read_bytes())
        return found

    def last_bgr(self) -> NDArray[np.uint8]:
        """The last frame that arrived, decoded as a reader would: I420, BT.601, limited range."""
        width, height = self.state["size"]
        planes = np.frombuffer((self._folder / "last").read_bytes(), np.uint8).reshape(height * 3 // 2, width)
        picture: NDArray[np.uint8] = cv2.cvtColor(planes, cv2.COLOR_YUV2BGR_I420)
        return picture
