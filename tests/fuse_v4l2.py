"""A video output device that needs no kernel module: a FUSE file that answers the V4L2 ioctls of a writer.

It knows the part of the V4L2 interface that an unmodified pyvirtualcam uses (open, QUERYCAP, S_FMT, G_FMT, write) and
refuses to know readers: there is no capture side. The kernel copies exactly the struct of a "restricted" ioctl into the
file system's process, which is all that these ioctls need. Faults are injected through a second file, ``control``.

Run as a program (``python fuse_v4l2.py FOLDER``) it mounts the folder and stays; ``FakeVideoDevice`` does that in a
process of its own, because a file system must not be served by the process that uses it.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import stat
import struct
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

QUERYCAP, G_FMT, S_FMT = 0, 4, 5
"""Numbers of the ioctls within the group 'V' (linux/videodev2.h)."""

VIDEO_CAPTURE, VIDEO_OUTPUT = 0x1, 0x2
"""Capability bits (linux/videodev2.h)."""

FORMAT_OFFSET = 8
"""The picture format begins after the 32-bit type, aligned to a pointer of a 64-bit machine."""

DEVICE, CONTROL, STATE, LAST = "/video0", "/control", "/state", "/last"


class Board:
    """The device's state: format, faults, frames that arrived. All methods run in the file system's one thread.

    Faults (JSON keys in ``control``): "open", "querycap", "s_fmt", "g_fmt", "write": an errno to fail with;
    "capabilities", "driver": what QUERYCAP says; "answer": [w, h] that S_FMT answers whatever was asked;
    "short": bytes that a write takes at most; "gone": the node is no longer there.
    """

    def __init__(self) -> None:
        self.faults: dict[str, Any] = {}
        self.width, self.height, self.fourcc = 640, 480, b"YU12"
        self.frames = 0
        self.opens = 0
        self.pending = bytearray()
        self.last = b""

    @property
    def frame_bytes(self) -> int:
        return self.width * self.height * 3 // 2

    def state(self) -> bytes:
        return json.dumps(
            {
                "frames": self.frames,
                "opens": self.opens,
                "size": [self.width, self.height],
                "fourcc": self.fourcc.decode(),
                "pending": len(self.pending),
            }
        ).encode()

    def fail(self, where: str) -> None:
        if code := self.faults.get(where):
            raise OSError(code, os.strerror(code))

    def capability(self) -> bytes:
        self.fail("querycap")
        bits = self.faults.get("capabilities", VIDEO_OUTPUT)
        driver = self.faults.get("driver", "v4l2 loopback").encode()
        return struct.pack("16s32s32s6I", driver, b"Fake camera", b"platform:fuse-000", 0x060000, bits, bits, 0, 0, 0)

    def set_format(self, wanted: bytes) -> None:
        self.fail("s_fmt")
        self.width, self.height = struct.unpack_from("2I", wanted, FORMAT_OFFSET)
        self.fourcc = wanted[FORMAT_OFFSET + 8 : FORMAT_OFFSET + 12]
        if answer := self.faults.get("answer"):
            self.width, self.height = answer
        self.pending.clear()

    def format(self) -> bytes:
        """struct v4l2_pix_format: width, height, pixelformat, field, bytesperline, sizeimage."""
        code = int.from_bytes(self.fourcc, "little")
        return struct.pack("6I", self.width, self.height, code, 1, self.width, self.frame_bytes)

    def write(self, data: bytes) -> int:
        self.fail("write")
        if (most := self.faults.get("short")) is not None:
            return min(int(most), len(data))
        self.pending += data  # the kernel cuts a frame into pieces of at most 1 MiB
        while len(self.pending) >= self.frame_bytes:
            self.last = bytes(self.pending[: self.frame_bytes])
            del self.pending[: self.frame_bytes]
            self.frames += 1
        return len(data)


def serve(folder: str) -> None:
    """Mount ``folder`` and answer until it is unmounted."""
    import mfusepy

    class VideoDevice(mfusepy.Operations):  # type: ignore[misc]  # mfusepy is untyped
        use_ns = True

        def __init__(self) -> None:
            self.board = Board()

        def getattr(self, path: str, fh: Any = None) -> dict[str, int]:
            if path == "/":
                return {"st_mode": stat.S_IFDIR | 0o755, "st_nlink": 2}
            if path not in (DEVICE, CONTROL, STATE, LAST) or (path == DEVICE and self.board.faults.get("gone")):
                raise mfusepy.FuseOSError(errno.ENOENT)
            return {"st_mode": stat.S_IFREG | 0o666, "st_nlink": 1, "st_size": 0}

        def readdir(self, path: str, fh: int) -> list[str]:
            return [".", "..", "video0", "control", "state", "last"]

        def open(self, path: str, info: Any) -> int:
            info.direct_io = 1  # every read and write comes here as it is
            if path == DEVICE:
                self.board.opens += 1
                self.board.fail("open")
            return 0

        def truncate(self, path: str, length: int, fh: Any = None) -> int:
            return 0

        def read(self, path: str, size: int, offset: int, info: Any) -> bytes:
            return (self.board.last if path == LAST else self.board.state())[offset : offset + size]

        def write(self, path: str, data: bytes, offset: int, info: Any) -> int:
            if path == CONTROL:
                self.board.faults = json.loads(data)
                return len(data)
            if self.board.faults.get("gone"):
                raise mfusepy.FuseOSError(errno.ENODEV)
            return self.board.write(data)

        def ioctl(self, path: str, cmd: int, arg: Any, info: Any, flags: int, data: int) -> int:
            if path != DEVICE or (cmd >> 8) & 0xFF != ord("V"):
                raise mfusepy.FuseOSError(errno.ENOTTY)
            if cmd & 0xFF == QUERYCAP:
                answer, start = self.board.capability(), 0
            elif cmd & 0xFF == S_FMT:
                self.board.set_format(ctypes.string_at(data, (cmd >> 16) & 0x3FFF))
                answer, start = self.board.format(), FORMAT_OFFSET
            elif cmd & 0xFF == G_FMT:
                self.board.fail("g_fmt")
                answer, start = self.board.format(), FORMAT_OFFSET
            else:
                raise mfusepy.FuseOSError(errno.ENOTTY)
            ctypes.memmove(data + start, answer, len(answer))
            return 0

    mfusepy.FUSE(VideoDevice(), folder, raw_fi=True, foreground=True, nothreads=True, attr_timeout=0, entry_timeout=0)


def why_not() -> str:
    """Why no such device can be made here, or an empty text."""
    if sys.platform != "linux":
        return "FUSE devices are a Linux matter"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse is missing or closed to this user"
    if not shutil.which("fusermount3"):
        return "fusermount3 is missing (Debian package fuse3)"
    return ""


class FakeVideoDevice:
    """The mounted device, as a context manager for a test.

    Attributes:
        path: give this to the writer as its device.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / "video0"
        self._process = subprocess.Popen([sys.executable, __file__, str(folder)])

    def __enter__(self) -> Self:
        deadline = time.monotonic() + 20
        while not (self._folder / "state").exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the FUSE device did not come up (exit code {self._process.poll()})")
            time.sleep(0.02)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        subprocess.run(["fusermount3", "-u", "-z", str(self._folder)], check=False)
        self._process.wait(timeout=20)

    def inject(self, **faults: Any) -> None:
        """Replace the faults by these; none heals the device."""
        (self._folder / "control").write_text(json.dumps(faults))

    @property
    def state(self) -> dict[str, Any]:
        """What arrived so far: frames, opens, size, fourcc, pending bytes."""
        found: dict[str, Any] = json.loads((self._folder / "state").read_bytes())
        return found

    def last_bgr(self) -> NDArray[np.uint8]:
        """The last frame that arrived, decoded as a reader would: I420, BT.601, limited range."""
        import cv2

        width, height = self.state["size"]
        planes = np.frombuffer((self._folder / "last").read_bytes(), np.uint8).reshape(height * 3 // 2, width)
        picture: NDArray[np.uint8] = cv2.cvtColor(planes, cv2.COLOR_YUV2BGR_I420)
        return picture


if __name__ == "__main__":
    serve(sys.argv[1])
