"""A film of a real face, and what a device makes of it: by a network that copies, and by the mesh; on any device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from engines.contract import CropPlan, Device, Engine, Report, TensorSpec
from realtime import app, config
from realtime.align import picture_from_crop
from realtime.assets import demo_photo
from realtime.landmarks import points5
from realtime.meter import Meter
from realtime.types import F32, F64, U8, Frame
from tests.cuda.fake_engine import HostFunction
from tests.faces import Eyes
from tests.kernels.material import oval

SIDE = 128
TARGET = TensorSpec("target", (1, 3, SIDE, SIDE), "float32", "NCHW", "RGB", (0.0,) * 3, (1 / 255,) * 3)
MADE = TensorSpec("made", (1, 3, SIDE, SIDE), "float32", "NCHW", "RGB", (0.0,) * 3, (1 / 255,) * 3)
GAIN, OFFSET = np.array([1.1, 0.85, 1.0], np.float32), np.array([6, -4, 9], np.float32)
SIZE = (1280, 720)
PLACES = (
    (1.2, 0.0, 300, 60),
    (0.55, 0.4, 700, 200),
    (2.1, -0.2, -260, -200),
    (0.9, 0.1, 1000, 420),
    (0.3, -0.6, 90, 500),
)
"""Scale, turn in radians, and corner of the photo in each picture; the third and fourth are partly outside."""


@dataclass(frozen=True, slots=True)
class Film:
    """Pictures and where the face is in each.

    Attributes:
        pictures: (720, 1280, 3) uint8 BGR.
        places: (2, 3), from the crop of the network to the picture.
    """

    pictures: list[U8]
    places: list[F64]


def film(eyes: Eyes) -> Film:
    """The face of the demo, large and small, turned, and partly outside."""
    photo, mesh = eyes.portrait(demo_photo())
    photo_from_crop = np.vstack([picture_from_crop(points5(mesh), "arcface_128", SIDE), [0, 0, 1]])
    pictures, places = [], []
    for scale, turn_rad, x, y in PLACES:
        fit = scale * 500 / photo.shape[0]
        c, s = fit * np.cos(turn_rad), fit * np.sin(turn_rad)
        picture_from_photo = np.array([[c, -s, x], [s, c, y]])
        warped = cv2.warpAffine(photo, picture_from_photo, SIZE, borderMode=cv2.BORDER_REFLECT)
        pictures.append(np.ascontiguousarray(warped, np.uint8))
        places.append(picture_from_photo @ photo_from_crop)
    return Film(pictures, places)


def copying(target: F32) -> tuple[F32, ...]:
    """The network, as a function."""
    return (target,)


def on_host() -> HostFunction:
    """The network on the processor."""
    return HostFunction((TARGET,), (MADE,), copying)


class CopyingOnGpu(HostFunction):
    """The network in the memory of a real GPU, a :class:`engines.contract.SlottedEngine`: one copy by CuPy."""

    def __init__(self) -> None:
        super().__init__((TARGET,), (MADE,), copying)
        self._bound: dict[int, Mapping[str, int]] = {}

    def bind(self, slot: int, addresses: Mapping[str, int]) -> None:
        self._bound[slot] = dict(addresses)

    def hold(self, slot: int, name: str, tensor: NDArray[Any], stream: int) -> None:
        raise AssertionError(f"there is no input {name}")

    def enqueue(self, slot: int, stream: int) -> None:
        from cupy.cuda import runtime

        nbytes, at = 4 * 3 * SIDE * SIDE, self._bound[slot]
        runtime.memcpyAsync(at["made"], at["target"], nbytes, runtime.memcpyDeviceToDevice, stream)


def swap(device: Device, engine: Engine, made: Film, rounds: int = 3) -> tuple[list[U8], list[Report]]:
    """Paint the face of each picture twice, the second time from what is there by then; two frames in flight.

    Args:
        device: any.
        engine: the network.
        made: the film.
        rounds: how often it is shown: the first one is cold, then graphs are captured, then they are used.

    Returns:
        The pictures of the last round, and what was reported of each.
    """
    lane = device.lane(CropPlan("copying", TARGET, 0), engine)
    opacity, weight = oval(SIDE), np.ones((SIDE // 4,) * 2, np.float32)
    frames: list[U8] = []
    reports: list[Report] = []
    for _ in range(rounds):
        frames, reports = [picture.copy() for picture in made.pictures], []
        waiting: list[U8] = []
        for pixels, place in zip(frames, made.places, strict=True):
            device.begin(pixels)
            for who in range(2):
                lane.start(pixels, place, {})
                lane.tones(who, weight, np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32))
                lane.paint(who, pixels, place, opacity, GAIN, OFFSET)
            device.submit(pixels)
            waiting.append(pixels)
            if len(waiting) == 2:
                reports.append(device.finish(waiting.pop(0)))
        reports += [device.finish(pixels) for pixels in waiting]
    lane.close()
    return frames, reports


def mesh_swap(made: Film, device: str) -> list[U8]:
    """Swap the face by the mesh, by everything that a run does, on the device of this name."""
    settings = config.resolve([config.default_layer(), config.from_set_options([f"engine.device={device}"])])
    shown = []
    with app.open_networks(settings) as networks:
        pipeline = app.build_pipeline(settings, networks, app.load_faces(settings, networks), Meter())
        quality = app.build_budget(settings).best
        for number, picture in enumerate(made.pictures[:1] * 6):
            frame = Frame(number, number / 30, picture.copy())
            shown.append(pipeline.process(frame, quality, frame.t_capture_s).pixels)
    return shown


def apart(some: list[U8], others: list[U8]) -> float:
    """Most grey levels between two films."""
    return float(max(np.abs(one.astype(int) - other).max() for one, other in zip(some, others, strict=True)))
