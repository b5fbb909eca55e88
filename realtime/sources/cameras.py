"""Which cameras there are, which one a person means, and why one cannot be used; never reads a picture."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import cv2
from cv2_enumerate_cameras import enumerate_cameras, supported_backends

from realtime.errors import SourceError
from realtime.suggest import near_words

BACKENDS: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        "linux": (cv2.CAP_V4L2,),
        "win32": (cv2.CAP_DSHOW, cv2.CAP_MSMF),
        "darwin": (cv2.CAP_AVFOUNDATION,),
    }
)
"""The system's ways to a camera, best first. DirectShow and Media Foundation number cameras differently, so a number
is only good for the way that it was listed by; DirectShow opens in a moment where Media Foundation takes minutes with
some drivers."""

_BY_ID = Path("/dev/v4l/by-id")


@dataclass(frozen=True, slots=True)
class CameraInfo:
    """One camera as the system lists it.

    Attributes:
        index: number that OpenCV opens it by, only together with ``backend``.
        name: for people; two cameras of one model have the same.
        path: tells cameras of the same name apart; on Linux the device node. Empty where the system has none.
        backend: an OpenCV ``CAP_*`` constant.
    """

    index: int
    name: str
    path: str
    backend: int

    def __str__(self) -> str:
        return f"{self.name} ({self.path})" if sys.platform == "linux" and self.path else f"{self.name} ({self.index})"


def backends() -> tuple[int, ...]:
    """Ways to a camera on this system, best first; OpenCV's own choice on a system that we do not know."""
    return BACKENDS.get(sys.platform, (cv2.CAP_ANY,))


def list_cameras(backend: int | None = None) -> list[CameraInfo]:
    """List the cameras once each, lowest number first; none where the system cannot list.

    Asks each device for its description only, which no driver makes one wait for. Nodes that take pictures instead of
    giving them, and those for metadata, are left out.

    Args:
        backend: by which way; ``None`` is the best one.
    """
    backend = backends()[0] if backend is None else backend
    if backend not in supported_backends:
        return []
    found = {
        (entry.index, entry.path): CameraInfo(
            entry.index, entry.name or f"camera {entry.index}", entry.path or "", backend
        )
        for entry in enumerate_cameras(backend)
    }
    return sorted(found.values(), key=lambda camera: camera.index)


def find_camera(target: str, cameras: Sequence[CameraInfo]) -> CameraInfo:
    """Choose the camera that a person means.

    Args:
        target: a number, a device path (links are followed), a name or a part of one in any case; empty for the first.
        cameras: as listed, all by one backend.

    Raises:
        SourceError: none or several fit; the hint lists what there is. ``fatal=False`` when it may just be unplugged.
    """
    hits = list(cameras[:1]) if not target else _hits(target, cameras)
    if len(hits) == 1:
        return hits[0]
    if not hits:
        near = near_words(target, [camera.name for camera in cameras])
        what = f"camera {target!r} is not there" if target else "no camera was found"
        raise SourceError(what, f"{near}{_listing(cameras)}", fatal=False)
    hint = f"give the number or the whole path: {_listing(hits)}"
    raise SourceError(f"{len(hits)} cameras are called {target!r}", hint)


def _hits(target: str, cameras: Sequence[CameraInfo]) -> list[CameraInfo]:
    if target.isascii() and target.isdigit():
        return [camera for camera in cameras if str(camera.index) == target]
    # /dev/v4l/by-id/... is a link to the node that is listed.
    path = os.path.realpath(target) if target.startswith("/dev/") else target
    word = target.casefold()
    tests = (
        lambda camera: camera.path == path,
        lambda camera: camera.name.casefold() == word,
        lambda camera: word in camera.name.casefold(),
    )
    return next((hits for test in tests if (hits := [camera for camera in cameras if test(camera)])), [])


def _listing(cameras: Iterable[CameraInfo]) -> str:
    lines = ", ".join(
        f"{camera.index}: {camera.name}" + (f" [{camera.path}]" if camera.path else "") for camera in cameras
    )
    none = "plug one in, check that this session may see it, or use --input demo or a file"
    return f"there are {lines}" if lines else none


def lasting_target(camera: CameraInfo, cameras: Sequence[CameraInfo], by_id: Path = _BY_ID) -> str:
    """Say how to find this camera again after it was unplugged, when its number may belong to another.

    Args:
        camera: one of ``cameras``.
        cameras: all of the same backend.
        by_id: where Linux keeps links that carry the serial number.

    Returns:
        A target for ``find_camera``: the link with the serial number, else the name where it is the only one, else
        the path or number.
    """
    if sys.platform == "linux" and by_id.is_dir():
        for link in sorted(by_id.iterdir()):
            if os.path.realpath(link) == camera.path:
                return str(link)
    if sum(other.name == camera.name for other in cameras) == 1:
        return camera.name
    return camera.path or str(camera.index)


def access_trouble(node: Path) -> SourceError | None:
    """Say why a Linux device node cannot be opened by this user; ``None`` when it can."""
    try:
        status = node.stat()
    except OSError as error:
        return SourceError(f"{node} is not there: {error.strerror}", "plug the camera in", fatal=False)
    if not stat.S_ISCHR(status.st_mode):
        return SourceError(f"{node} is not a video device", "give a camera's number, name or path")
    if os.access(node, os.R_OK | os.W_OK):
        return None
    group = _group_name(status.st_gid)
    message = f"{node} may not be opened: only root and the group {group} may"
    return SourceError(message, f"run: sudo usermod -aG {group} $USER, then log out and in again")


def _group_name(gid: int) -> str:
    import grp  # noqa: PLC0415  (exists on Unix only)

    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def holders(node: Path, proc: Path = Path("/proc")) -> list[str]:
    """Name the programs that have a Linux device open, as far as this user may see them: ["zoom (4711)"]."""
    found = []
    for process in sorted(proc.glob("[0-9]*"), key=lambda folder: int(folder.name)):
        if int(process.name) == os.getpid():
            continue
        try:
            if any(link.readlink() == node for link in (process / "fd").iterdir()):
                name = re.sub(r"\s+", " ", (process / "comm").read_text(errors="replace")).strip()
                found.append(f"{name} ({process.name})")
        except OSError:  # ended meanwhile, or another user's
            continue
    return found
