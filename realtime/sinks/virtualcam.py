"""The virtual camera that meeting programs see, through pyvirtualcam; knows its silences, refuses to know pace.

pyvirtualcam swallows a refused format, a failed write and a short one. Each would show other people a scrambled or
frozen picture while this program believes all is well, so on Linux the device itself is asked after opening and at a
slow beat, and the kernel's byte count is read around every write.
"""

from __future__ import annotations

import errno
import sys
from typing import Any

from realtime.errors import SinkError
from realtime.sinks import SinkInfo, SinkMissingError, SinkWish, even_size
from realtime.types import Frame, Size

LINUX = sys.platform.startswith("linux")
if LINUX:
    from realtime.sinks import v4l2

FPS_LIMIT = 30.0
"""Meeting programs ask for no more, and readers of v4l2loopback are told 30 whatever the writer says."""

_BEAT_FRAMES = 60
"""Pictures between two looks at the device's format: about two seconds."""

_NATIVE_FOURCC = "YU12"
"""What pyvirtualcam makes of BGR on Linux: planar 4:2:0, BT.601, limited range. Letting its libyuv do it was cheaper
than OpenCV's conversion into a buffer of ours plus sending that (0.49 against 0.69 ms at 1280x720)."""

_OBS_HINT = {
    "win32": "install OBS Studio 30 or newer (it brings the camera) and start its virtual camera once, then stop it",
    "darwin": "install OBS Studio 30 or newer, click 'Start Virtual Camera' in it once, allow the extension in "
    "System Settings, then stop it",
}


class VirtualCamera:
    """One writer of one virtual camera.

    The wished size is rounded down to even (see ``even_size``); the target is a device path on Linux and a camera's
    name elsewhere, empty for the first there is.
    """

    def __init__(self, target: str, wish: SinkWish) -> None:
        size = even_size(wish.size)
        fps = min(wish.fps or FPS_LIMIT, FPS_LIMIT)
        card = ""
        facts: tuple[str, ...] = ()
        if LINUX:
            target, found = v4l2.find_output(target)
            card = f"{found.card} "
            facts = v4l2.driver_facts()
            if v4l2.bytes_written_by_this_thread() is None:
                facts = (*facts, "this kernel does not count bytes, so a write that fails cannot be noticed")
        self._camera = _open(target, size, fps)
        self._device: str = self._camera.device
        self._size = size
        self._frames = 0
        if LINUX:
            try:
                self._check_format()
            except SinkError:
                self.close()
                raise
        self._info = SinkInfo(
            name=f"virtual camera {card}({self._device})", size=size, fps=fps, live=True, facts=(*wish.notes, *facts)
        )

    @property
    def info(self) -> SinkInfo:
        """Even size, and a steady cadence: a camera that stops sending freezes or ends the other side's picture."""
        return self._info

    def write(self, frame: Frame) -> None:
        """Send one picture.

        Raises:
            SinkError: the device took none or a part of it, is gone, or has another format now; opening again may help.
        """
        if self._camera is None:
            raise SinkError("the virtual camera is closed", "open it again", fatal=False)
        if not LINUX:
            self._send(frame)
            return
        self._frames += 1
        if self._frames % _BEAT_FRAMES == 0:
            self._check_format()
        before = v4l2.bytes_written_by_this_thread()
        self._send(frame)
        after = v4l2.bytes_written_by_this_thread()
        if before is not None and after is not None:
            self._check_taken(after - before)

    def close(self) -> None:
        """Give the device back; it can be opened again at once. Safe to call twice."""
        if self._camera is not None:
            self._camera.close()
            self._camera = None

    def _send(self, frame: Frame) -> None:
        if frame.size != self._size:
            raise SinkError(f"a {frame.size} picture came for a {self._size} camera", "report this: it is a bug")
        try:
            self._camera.send(frame.pixels)
        except RuntimeError as error:  # the Windows and macOS back ends do report failures
            raise SinkError(f"{self._device} took no picture: {error}", "start it again", fatal=False) from error

    def _check_taken(self, taken: int) -> None:
        """A write that was not taken whole is explained by the device, as far as it can."""
        expected = self._size.w * self._size.h * 3 // 2
        if taken == expected:
            return
        self._check_format()
        raise SinkError(
            f"{self._device} did not take the whole picture ({taken} of {expected} bytes)",
            f"close other programs that send to it; if it stays so: sudo modprobe -r v4l2loopback, then "
            f"{v4l2.MODPROBE}",
            fatal=False,
        )

    def _check_format(self) -> None:
        """Compare the device's own word with what was asked for."""
        try:
            found = v4l2.read_format(self._device)
        except OSError as error:
            trouble = v4l2.explain(self._device, error)
            raise SinkError(f"the virtual camera went away: {trouble.message}", trouble.hint, fatal=False) from error
        wanted = v4l2.PixelFormat(self._size.w, self._size.h, _NATIVE_FOURCC, self._size.w)
        if (found.width, found.height, found.fourcc) == (wanted.width, wanted.height, wanted.fourcc) and (
            found.bytes_per_line in (0, wanted.bytes_per_line)
        ):
            return
        raise SinkError(
            f"{self._device} has the format {found} instead of {wanted}, so the picture would be scrambled",
            f"close every program that reads or writes it, or run with --size {found.width}x{found.height}",
            fatal=False,
        )


def _open(target: str, size: Size, fps: float) -> Any:
    """Open pyvirtualcam's camera (it has no types) and say in our words what it found."""
    import pyvirtualcam  # noqa: PLC0415 - loads a native library

    try:
        return pyvirtualcam.Camera(size.w, size.h, fps, fmt=pyvirtualcam.PixelFormat.BGR, device=target or None)
    except RuntimeError as error:
        text = " ".join(str(error).split())
        if not LINUX:
            hint = _OBS_HINT.get(sys.platform, "this system has no virtual camera; use --output preview")
            busy = "in use" in text.lower() or "already" in text.lower()
            kind = SinkError if target or busy else SinkMissingError
            raise kind(f"no virtual camera can be opened: {text}", hint) from error
        if "Device or resource busy" in text or "is already in use" in text:
            raise v4l2.explain(target, OSError(errno.EBUSY, text)) from error
        raise SinkError(f"{target} cannot be used as a camera: {text}", v4l2.INSTALL_HINT) from error
