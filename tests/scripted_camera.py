"""A camera as a driver plays it, behind ``cv2.VideoCapture``; misbehaves by script."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import cv2
import pytest

from realtime.sources import camera, cameras
from realtime.types import U8, Size
from tests.fakes import picture

BRIGHT = 90


@dataclass
class Device:
    """A camera as a driver plays it.

    ``show(fourcc, n)`` gives picture n of a format: a grey value, an array, or ``None`` for a failed grab.
    """

    index: int = 0
    name: str = "Acme Cam"
    backend: int = cv2.CAP_V4L2
    opens: bool = True
    formats: tuple[str, ...] = ("YUYV", "MJPG")
    sizes: tuple[Size, ...] = (Size(640, 480), Size(1280, 720))
    rates: tuple[float, ...] = (30.0,)
    show: Callable[[str, int], int | U8 | None] = lambda _fourcc, _number: BRIGHT

    @property
    def path(self) -> str:
        return f"/dev/video{self.index}"


@dataclass
class FakeCapture:
    """``cv2.VideoCapture`` with its habits: ``set`` says yes to everything, an unplugged camera stays opened."""

    device: Device
    asked: list[int] = field(default_factory=list)
    released: int = 0
    grabbed: int = 0

    def __post_init__(self) -> None:
        self.fourcc = self.device.formats[0]
        self.size = self.device.sizes[0]
        self.fps = self.device.rates[0]
        self.last: int | U8 | None = None

    def isOpened(self) -> bool:
        return self.device.opens

    def set(self, prop: int, value: float) -> bool:
        self.asked.append(prop)
        code = int(value).to_bytes(4, "little").decode("latin1")
        if prop == cv2.CAP_PROP_FOURCC and code in self.device.formats:
            self.fourcc = code
        if prop == cv2.CAP_PROP_FRAME_WIDTH:
            self.size = next((size for size in self.device.sizes if size.w == value), self.size)
        if prop == cv2.CAP_PROP_FPS and value in self.device.rates:
            self.fps = value
        return True

    def get(self, prop: int) -> float:
        return {
            cv2.CAP_PROP_FOURCC: float(int.from_bytes(self.fourcc.encode(), "little")),
            cv2.CAP_PROP_FPS: self.fps,
        }[prop]

    def getBackendName(self) -> str:
        return "V4L2"

    def grab(self) -> bool:
        assert not self.released, "a released camera must not be touched"
        self.last = self.device.show(self.fourcc, self.grabbed)
        self.grabbed += 1
        return self.last is not None

    def retrieve(self) -> tuple[bool, U8 | None]:
        if isinstance(self.last, int):
            return self.last >= 0, picture(self.last, self.size) if self.last >= 0 else None
        return True, self.last

    def release(self) -> None:
        self.released += 1


def plug_in(monkeypatch: pytest.MonkeyPatch, *devices: Device) -> list[FakeCapture]:
    """Plug scripted devices in; gives the list that every opened capture is added to."""
    opened: list[FakeCapture] = []

    def enumerate_cameras(backend: int) -> list[SimpleNamespace]:
        return [SimpleNamespace(index=d.index, name=d.name, path=d.path) for d in devices if d.backend == backend]

    def capture(index: int, backend: int, params: list[int] | None = None) -> FakeCapture:
        found = FakeCapture(next(d for d in devices if (d.index, d.backend) == (index, backend)))
        for prop, value in zip(*[iter(params or [])] * 2, strict=True):
            found.set(prop, value)
        opened.append(found)
        return found

    ways = tuple(dict.fromkeys(device.backend for device in devices)) or (cv2.CAP_V4L2,)
    for module in (camera, cameras):
        monkeypatch.setattr(module, "backends", lambda: ways)
    monkeypatch.setattr(cameras, "supported_backends", ways)
    monkeypatch.setattr(cameras, "enumerate_cameras", enumerate_cameras)
    monkeypatch.setattr(camera, "access_trouble", lambda _node: None)
    monkeypatch.setattr(cv2, "VideoCapture", capture)
    return opened
