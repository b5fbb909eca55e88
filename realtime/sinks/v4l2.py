"""What a Linux video output device says about itself; knows ioctls and error texts, never a picture.

pyvirtualcam opens and configures a device and writes to it, but it neither reads the driver's answer to a format nor
reports a write that failed. So the device is asked here, through descriptors that are opened for the question alone:
once an ``exclusive_caps`` device is written to, a second opener sees its capture side, hence the two queries in
``read_format``.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from realtime.errors import SinkError
from realtime.sinks import SinkMissingError

MODPROBE = 'sudo modprobe v4l2loopback exclusive_caps=1 card_label="doppelcam" video_nr=10'
"""Makes the device that every browser and meeting program accepts."""

INSTALL_HINT = f"install v4l2loopback, 0.15 or newer, then run: {MODPROBE}"

GOOD_VERSION = (0, 15)
"""Up to 0.12.7 a device with exclusive_caps=1 worked for its first writer only, until the module was loaded again."""

_VIRTUAL = Path("/sys/devices/virtual/video4linux")
"""Holds an entry for each device that is no hardware, also for those that this user may not open."""

_DRIVER = "v4l2 loopback"
_OUTPUT = 0x2  # V4L2_CAP_VIDEO_OUTPUT
_BUF_TYPES = (2, 1)  # V4L2_BUF_TYPE_VIDEO_OUTPUT, _CAPTURE

# linux/videodev2.h. struct v4l2_format is a 32-bit type and a union of 200 bytes that is aligned to a pointer.
_CAPABILITY = struct.Struct("16s32s32s3I12x")
_UNION_OFFSET = struct.calcsize("P")
_FORMAT_BYTES = _UNION_OFFSET + 200
_PIX_FORMAT = struct.Struct("2I4s3I")  # width, height, pixelformat, field, bytesperline, sizeimage
_QUERYCAP = 2 << 30 | _CAPABILITY.size << 16 | ord("V") << 8 | 0
_G_FMT = 3 << 30 | _FORMAT_BYTES << 16 | ord("V") << 8 | 4


@dataclass(frozen=True, slots=True)
class PixelFormat:
    """The format that a device has, as its driver reports it.

    Attributes:
        width: pixels.
        height: pixels.
        fourcc: four letters, "YU12" for planar 4:2:0.
        bytes_per_line: of the first plane; 0 when the driver does not say.
    """

    width: int
    height: int
    fourcc: str
    bytes_per_line: int

    def __str__(self) -> str:
        return f"{self.width}x{self.height} {self.fourcc}"


@dataclass(frozen=True, slots=True)
class Capability:
    """What a device says about itself.

    Attributes:
        driver: "v4l2 loopback" for a virtual camera.
        card: its label, as meeting programs show it.
        output: whether a program may write pictures to it now.
    """

    driver: str
    card: str
    output: bool

    @property
    def loopback(self) -> bool:
        """Whether it is a virtual camera (only ours to write to when ``output`` is true as well)."""
        return self.driver == _DRIVER


def find_output(target: str, nodes: Iterable[Path] | None = None) -> tuple[str, Capability]:
    """Find the virtual camera to write to.

    Args:
        target: path of the device, or empty for the first that is free.
        nodes: where to look when ``target`` is empty; all of /dev/video* by default.

    Returns:
        Path and what the device says about itself.

    Raises:
        SinkMissingError: no target was named and there is no virtual camera at all.
        SinkError: the device is missing, busy, closed to this user, or no virtual camera.
    """
    if target:
        return target, _require_output(target)
    busy: list[str] = []
    for node in sorted(Path("/dev").glob("video*"), key=_number) if nodes is None else nodes:
        try:
            found = query(str(node))
        except PermissionError as error:
            if (_VIRTUAL / node.name).exists():
                raise explain(str(node), error) from error
            continue
        except OSError:
            continue  # a camera that another program holds is none of our business
        if found.loopback and found.output:
            return str(node), found
        if found.loopback:
            busy.append(str(node))
    if busy:
        raise _busy(busy[0])
    raise SinkMissingError("there is no virtual camera (no v4l2loopback device)", INSTALL_HINT)


def _number(node: Path) -> int:
    return int(re.sub(r"\D", "", node.name) or 0)


def _require_output(path: str) -> Capability:
    try:
        found = query(path)
    except OSError as error:
        raise explain(path, error) from error
    if not found.loopback:
        raise SinkError(
            f"{path} ('{found.card}', driver {found.driver}) is no virtual camera",
            f"name a v4l2loopback device; to make one, {INSTALL_HINT}",
        )
    if not found.output:
        raise _busy(path)
    return found


def explain(path: str, error: OSError) -> SinkError:
    """Turn what the system said about a device into what a person can do."""
    match error.errno:
        case errno.ENOENT | errno.ENODEV | errno.ENXIO:
            return SinkError(f"there is no device {path}", INSTALL_HINT)
        case errno.EACCES | errno.EPERM:
            return SinkError(
                f"this user may not open {path}", "run: sudo usermod -aG video $USER, then log out and in again"
            )
        case errno.EBUSY:
            return _busy(path)
        case errno.ENOTTY | errno.EINVAL:
            return SinkError(f"{path} is not a video device", INSTALL_HINT)
    return SinkError(f"{path} cannot be opened: {error.strerror}", INSTALL_HINT)


def _busy(path: str) -> SinkError:
    return SinkError(
        f"{path} is not free: another program sends pictures to it",
        f"stop that program (to see which: fuser -v {path}); if there is none, the driver is stuck, as v4l2loopback "
        f"before 0.15 is after its first use: sudo modprobe -r v4l2loopback, then {MODPROBE}",
        fatal=False,
    )


@contextmanager
def _opened(path: str) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def query(path: str) -> Capability:
    """Ask a device what it is (VIDIOC_QUERYCAP).

    Raises:
        OSError: it cannot be opened or is no video device.
    """
    answer = bytearray(_CAPABILITY.size)
    with _opened(path) as descriptor:
        fcntl.ioctl(descriptor, _QUERYCAP, answer)
    driver, card, _, _, all_bits, own_bits = _CAPABILITY.unpack(answer)
    return Capability(_text(driver), _text(card), bool((own_bits or all_bits) & _OUTPUT))


def read_format(path: str) -> PixelFormat:
    """Ask a device for the format it has now (VIDIOC_G_FMT), on whichever side it shows to a second opener.

    Raises:
        OSError: the device is gone or shows neither side.
    """
    with _opened(path) as descriptor:
        for side in _BUF_TYPES:
            answer = bytearray(_FORMAT_BYTES)
            struct.pack_into("I", answer, 0, side)
            try:
                fcntl.ioctl(descriptor, _G_FMT, answer)
            except OSError as error:
                if error.errno != errno.EINVAL or side == _BUF_TYPES[-1]:
                    raise
                continue
            width, height, fourcc, _, stride, _ = _PIX_FORMAT.unpack_from(answer, _UNION_OFFSET)
            return PixelFormat(width, height, _text(fourcc), stride)
    raise AssertionError("unreachable: the last side returns or raises")


def _text(raw: bytes) -> str:
    return raw.partition(b"\0")[0].decode("utf-8", "replace")


def driver_facts(module: Path = Path("/sys/module/v4l2loopback")) -> tuple[str, ...]:
    """Lines for the banner: the driver's version, and what of it or of its settings will give trouble."""
    version = _read(module / "version")
    if not version:
        return ()
    facts = [f"v4l2loopback {version}"]
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < GOOD_VERSION:
        facts.append(f"v4l2loopback {version} can leave the camera stuck after one use: install 0.15 or newer")
    if "Y" not in (_read(module / "parameters" / "exclusive_caps") or "Y"):
        facts.append(f"exclusive_caps is off, so browsers will not list the camera: {MODPROBE}")
    return tuple(facts)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def bytes_written_by_this_thread() -> int | None:
    """Bytes that the calling thread has handed to the kernel so far, or ``None`` where the kernel does not count.

    The difference over a call says how much of a write was really taken, whatever the caller was told: an unreported
    failure adds only the length of the complaint on stderr. Costs about 10 microseconds.
    """
    try:
        descriptor = os.open("/proc/thread-self/io", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = re.search(rb"wchar: (\d+)", os.read(descriptor, 512))
    finally:
        os.close(descriptor)
    return int(found[1]) if found else None
