"""The file system behind ``fuse_v4l2``: one file that answers V4L2 ioctls; run as a program, it mounts a folder.

The kernel copies exactly the struct of a "restricted" ioctl into this process, which is all that these ioctls need.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import stat
import struct
import sys
from typing import Any

import mfusepy

QUERYCAP, G_FMT, S_FMT = 0, 4, 5
"""Numbers of the ioctls within the group 'V' (linux/videodev2.h)."""

VIDEO_OUTPUT = 0x2
"""Capability bit (linux/videodev2.h)."""

OUTPUT_SIDE = 2
"""Buffer type V4L2_BUF_TYPE_VIDEO_OUTPUT."""

FORMAT_OFFSET = 8
"""The picture format begins after the 32-bit type, aligned to a pointer of a 64-bit machine."""

DEVICE, CONTROL, STATE, LAST = "/video0", "/control", "/state", "/last"


class Board:
    """The device's state: format, faults, frames that arrived. All methods run in the file system's one thread.

    Faults (JSON keys in ``control``): "open", "querycap", "s_fmt", "g_fmt", "write": an errno to fail with;
    "capabilities", "driver": what QUERYCAP says; "answer": [w, h] that S_FMT answers whatever was asked;
    "short": bytes that a write takes at most; "gone": the node is no longer there; "shows": [w, h] that G_FMT answers;
    "hidden": G_FMT knows no output side.
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
        """A struct v4l2_pix_format: width, height, pixelformat, field, bytesperline, sizeimage."""
        width, height = self.faults.get("shows", (self.width, self.height))
        return struct.pack("2I4s3I", width, height, self.fourcc, 1, width, width * height * 3 // 2)

    def format_of_side(self, wanted: bytes) -> bytes:
        self.fail("g_fmt")
        if self.faults.get("hidden") and struct.unpack_from("I", wanted) == (OUTPUT_SIDE,):
            raise OSError(errno.EINVAL, "this opener sees the other side")
        return self.format()

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


class VideoDevice(mfusepy.Operations):  # type: ignore[misc]  # mfusepy is untyped
    """The four files of the mount."""

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
        return [".", "..", *(name.strip("/") for name in (DEVICE, CONTROL, STATE, LAST))]

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
        number, size = cmd & 0xFF, (cmd >> 16) & 0x3FFF
        if number == QUERYCAP:
            answer, start = self.board.capability(), 0
        elif number == S_FMT:
            self.board.set_format(ctypes.string_at(data, size))
            answer, start = self.board.format(), FORMAT_OFFSET
        elif number == G_FMT:
            answer, start = self.board.format_of_side(ctypes.string_at(data, size)), FORMAT_OFFSET
        else:
            raise mfusepy.FuseOSError(errno.ENOTTY)
        ctypes.memmove(data + start, answer, len(answer))
        return 0


if __name__ == "__main__":
    mfusepy.FUSE(
        VideoDevice(), sys.argv[1], raw_fi=True, foreground=True, nothreads=True, attr_timeout=0, entry_timeout=0
    )
