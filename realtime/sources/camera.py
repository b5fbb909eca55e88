"""A camera through OpenCV: asks for a format, believes only what comes back; leaves names to ``cameras``."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from realtime.errors import SourceError
from realtime.sources import SourceInfo, SourceSpec, SourceWish
from realtime.sources.cameras import (
    CameraInfo,
    access_trouble,
    backends,
    find_camera,
    holders,
    lasting_target,
    list_cameras,
)
from realtime.sources.handle import Handle
from realtime.types import U8, Frame, Size

PROBE_FRAMES = 45
"""Pictures that a camera gets to show something: exposure starts dark and takes up to about a second."""

PROBE_S = 3.0
"""Longest look at one format."""

OPEN_S = 10.0
"""After this long no further format is tried. (One silent read of V4L2 alone blocks for 10 s.)"""

BLACK_LEVEL = 24
"""A picture without a brighter value than this shows nothing: a cover, a switch, or a format that went wrong. A dark
room with a sensor's noise lies above it."""

BAD_IN_ROW = 5
"""Pictures that may arrive damaged, one after the other, before the camera counts as broken."""

RAW_LIMIT = 640 * 480 * 30
"""Pixels per second that every camera can send uncompressed through USB 2; above it MJPG is asked for first."""

_DRIVER_CHOICE = ""


@dataclass(frozen=True, slots=True)
class _Opened:
    """A capture that has given at least one good picture."""

    camera: CameraInfo
    capture: cv2.VideoCapture
    size: Size
    asked_fourcc: str


class CameraSource:
    """One camera. Live: the driver drops what is not fetched in time.

    ``read`` blocks as long as the driver does (up to 10 s with V4L2 when a camera falls silent). ``close`` never
    waits: while a read is under way the device is given back when the driver returns.
    """

    def __init__(self, target: str, wish: SourceWish) -> None:
        """Open the camera and wait for a picture that shows something.

        When a format or backend gives nothing or only black, the next one is tried.

        Args:
            target: number, name or a part of it, or stable path; empty for the first camera.
            wish: ``size``, ``fps`` and ``fourcc`` are asked for.

        Raises:
            SourceError: no such camera, several of that name, no permission, in use, no pictures or only black ones;
                ``fatal=False`` where trying again may help.
        """
        opened = _open(target, wish)
        name = str(opened.camera)
        self._handle = Handle(name, opened.capture, lambda capture: capture.release())
        self._seq = -1
        fps = opened.capture.get(cv2.CAP_PROP_FPS)
        self._info = SourceInfo(
            name=name,
            size=opened.size,
            fps=fps if math.isfinite(fps) and fps > 0 else 0.0,
            live=True,
            facts=_facts(opened, wish),
            reopen=SourceSpec("camera", lasting_target(opened.camera, list_cameras(opened.camera.backend))),
        )

    @property
    def info(self) -> SourceInfo:
        """What the camera gives; its frame rate is only a claim, many cameras halve it in the dark."""
        return self._info

    def read(self) -> Frame:
        """Wait for the next picture; stamped when the driver hands it over, before it is decoded.

        Raises:
            SourceError: the camera gave none: unplugged, taken away or broken, or closed (``fatal=False``).
        """
        with self._handle.use() as capture:
            for _ in range(BAD_IN_ROW):
                grabbed = capture.grab()
                stamp_s = time.perf_counter()
                self._handle.check_open()
                if not grabbed:
                    break
                self._seq += 1
                pixels = _retrieve(capture)
                if pixels is not None:
                    return Frame(self._seq, stamp_s, pixels)
        hint = "plug it in again and close other programs that use it; it is opened again by itself"
        raise SourceError(f"{self._info.name} stopped giving pictures", hint, fatal=False)

    def close(self) -> None:
        """Give the camera back."""
        self._handle.close()


def _open(target: str, wish: SourceWish) -> _Opened:
    give_up_s = time.perf_counter() + OPEN_S
    troubles: list[SourceError] = []
    for camera in _ways(target):
        for fourcc in _formats(wish):
            if troubles and time.perf_counter() > give_up_s:
                break
            capture = _ask(camera, fourcc, wish)
            size = _first_size(camera, capture, troubles)
            if size is not None:
                return _Opened(camera, capture, size, fourcc)
            capture.release()
    raise troubles[-1]


def _ways(target: str) -> Iterator[CameraInfo]:
    """The wanted camera by the best backend, then the same camera by the others, which number it differently."""
    first, *others = backends()
    cameras = list_cameras(first)
    if not cameras and target.isdigit() and sys.platform != "linux":
        yield CameraInfo(int(target), f"camera {target}", "", first)  # this system cannot list, but may open
        return
    camera = find_camera(target, cameras)
    if sys.platform == "linux" and (trouble := access_trouble(Path(camera.path))):
        raise trouble
    yield camera
    for backend in others:
        same = [other for other in list_cameras(backend) if other.name == camera.name]
        if len(same) == 1:
            yield same[0]


def _formats(wish: SourceWish) -> tuple[str, ...]:
    """FOURCC codes in the order to try; the last resort asks for nothing at all, not even a size."""
    if wish.fourcc == "mjpg":
        return "MJPG", _DRIVER_CHOICE
    heavy = wish.size is not None and wish.size.w * wish.size.h * (wish.fps or 30) > RAW_LIMIT
    if wish.fourcc == "auto" and heavy:
        return "MJPG", "YUYV", _DRIVER_CHOICE
    return ("YUYV", _DRIVER_CHOICE) if wish.fourcc == "raw" else ("YUYV", "MJPG", _DRIVER_CHOICE)


def _ask(camera: CameraInfo, fourcc: str, wish: SourceWish) -> cv2.VideoCapture:
    """Open and ask. Format before size before rate: each choice limits the next. What came of it is read back later."""
    wanted: list[tuple[int, float]] = []
    if fourcc != _DRIVER_CHOICE:
        wanted.append((cv2.CAP_PROP_FOURCC, cv2.VideoWriter.fourcc(*fourcc)))
        if wish.size is not None:
            wanted += [(cv2.CAP_PROP_FRAME_WIDTH, wish.size.w), (cv2.CAP_PROP_FRAME_HEIGHT, wish.size.h)]
        if wish.fps:
            wanted.append((cv2.CAP_PROP_FPS, wish.fps))
    if camera.backend == cv2.CAP_DSHOW:
        # Set one by one, each setting would restart the DirectShow graph and lose the ones before.
        return cv2.VideoCapture(camera.index, camera.backend, [int(part) for pair in wanted for part in pair])
    capture = cv2.VideoCapture(camera.index, camera.backend)
    for prop, value in wanted if capture.isOpened() else ():
        capture.set(prop, value)
    return capture


def _first_size(camera: CameraInfo, capture: cv2.VideoCapture, troubles: list[SourceError]) -> Size | None:
    """Wait for a picture that shows something and give its size, or add why there is none to ``troubles``."""
    if not capture.isOpened():
        troubles.append(_no_picture(camera, "cannot be opened"))
        return None
    give_up_s = time.perf_counter() + PROBE_S
    seen = 0
    for _ in range(PROBE_FRAMES):
        if time.perf_counter() > give_up_s or not capture.grab():
            break
        pixels = _retrieve(capture)
        seen += pixels is not None
        if pixels is not None and pixels.max() > BLACK_LEVEL:
            return Size(pixels.shape[1], pixels.shape[0])
    if seen:
        hint = "open the lens cover or privacy switch, and close other programs that use the camera"
        troubles.append(SourceError(f"{camera} gives only black pictures", hint, fatal=False))
    else:
        troubles.append(_no_picture(camera, "opens but gives no picture"))
    return None


def _no_picture(camera: CameraInfo, what: str) -> SourceError:
    programs = holders(Path(camera.path)) if sys.platform == "linux" and camera.path else []
    if programs:
        message = f"{camera} is in use by {', '.join(programs)}"
        return SourceError(message, "close that program, or feed both from a virtual camera", fatal=False)
    hint = "close every program that may use it (browser tabs too), plug it in again, or try --set input.fourcc=raw"
    return SourceError(f"{camera} {what}", hint, fatal=False)


def _retrieve(capture: cv2.VideoCapture) -> U8 | None:
    """Decode what was grabbed: (H, W, 3) uint8 BGR, or ``None`` when it is damaged or of no known form."""
    try:
        ok, pixels = capture.retrieve()
    except cv2.error:  # a torn JPEG
        return None
    if not ok or pixels is None or pixels.dtype != np.uint8 or pixels.size == 0:
        return None
    if pixels.ndim == 2 or pixels.shape[2] == 1:  # an infrared camera
        return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_GRAY2BGR))
    return np.ascontiguousarray(pixels) if pixels.shape[2] == 3 else None


def _facts(opened: _Opened, wish: SourceWish) -> tuple[str, ...]:
    """What was negotiated, then each wish that was refused: OpenCV's ``set`` says yes to everything."""
    capture, size = opened.capture, opened.size
    fps, given = capture.get(cv2.CAP_PROP_FPS), _fourcc_text(capture.get(cv2.CAP_PROP_FOURCC))
    facts = [f"{given} {size} at {fps:.4g} frames/s claimed, through {capture.getBackendName()}"]
    if wish.size is not None and wish.size != size:
        facts.append(f"asked for {wish.size}, the camera gives {size}")
    if wish.fps and abs(wish.fps - fps) > 0.5:
        facts.append(f"asked for {wish.fps:.4g} frames/s, the camera claims {fps:.4g}")
    wanted = {"mjpg": "MJPG", "raw": "YUYV"}.get(wish.fourcc, opened.asked_fourcc)
    if wanted not in {_DRIVER_CHOICE, given}:
        facts.append(f"asked for {wanted}, the camera gives {given}")
    return tuple(facts)


def _fourcc_text(code: float) -> str:
    """The four letters of a FOURCC property; "unknown" where a backend tells none."""
    value = int(code) if math.isfinite(code) else 0
    text = "".join(chr(value >> shift & 0xFF) for shift in (0, 8, 16, 24))
    return text if text.isascii() and text.isprintable() and value > 0 else "unknown"
