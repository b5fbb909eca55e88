"""A network of inswapper's topology and width, with random weights, through the best engine that a machine has."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import numpy_helper

from engines.building import BuildSettings, build
from engines.card import load_card
from engines.contract import CropPlan, Device, Engine, Lane, TensorSpec
from engines.cuda.device import CudaDevice
from engines.cuda.driver import Driver
from engines.errors import DeviceError, LiveError
from engines.fp16.convert import to_fp16
from engines.onnxrt import OnnxRuntimeEngine
from engines.registry import open_engine
from realtime.types import F32, U8
from tests.cards import UNIT, Net, net, picture, put
from tests.facenets import LATENT, emap_of
from tests.halfnets import InswapperGraph
from tests.hardware.measures import host_ms
from tests.hardware.real_faces import SIZE
from tests.kernels.material import oval

NAME = "test_full_width"
WIDTH = 128
"""Channels of the first layer; 1024 in the middle: 138 million weights, as published."""
SIDE = 128
BLOCKS = 6
BUILD_S = 240.0
"""That TensorRT may take; then the figures are ONNX Runtime's."""


def full_width(width: int = WIDTH, graph: type[InswapperGraph] = InswapperGraph) -> Net:
    """The network, layer by layer as published; two of its convolutions more than the narrow ones of other tests have.

    Args:
        width: see ``WIDTH``.
        graph: what it is written with.
    """
    g, w = graph(np.random.default_rng(0)), width
    x = g.leaky(g.conv("target", 3, w, 7))
    x = g.leaky(g.conv(x, w, 2 * w))
    x = g.leaky(g.conv(x, 2 * w, 4 * w, stride=2))
    x = g.leaky(g.conv(x, 4 * w, 8 * w, stride=2))
    for _ in range(BLOCKS):
        x = g.style_block(x, "source", 8 * w)
    x = g.leaky(g.conv(g.doubled(x), 8 * w, 4 * w))
    x = g.leaky(g.conv(g.doubled(x), 4 * w, 2 * w))
    x = g.leaky(g.conv(x, 2 * w, w))
    signed = g.scalar(g.add("Tanh", g.conv(x, w, 3, 7, gain=0.5)), "Add", 1.0)
    g.add("Mul", signed, g.constant(np.array([0.5], np.float32)), out="output")
    inputs = picture("target", SIDE, UNIT), TensorSpec("source", (1, LATENT))
    outputs = (picture("output", SIDE, UNIT),)
    decode = {
        "template": "arcface_128", "target": "target", "source": "source", "picture": "output", "mask": "",
        "boost": (1,), "latent": {"recogniser": "test_arcface", "kind": "emap", "norm": "latent", "converter": ""},
    }  # fmt: skip
    model = g.model(inputs, outputs, numpy_helper.from_array(emap_of(), "emap"))
    return net(NAME, "latent", model, inputs, outputs, decode)


@dataclass(frozen=True, slots=True)
class Opened:
    """The network on what runs it.

    Attributes:
        engine: opened.
        why: no better one; empty where it is the best.
    """

    engine: Engine
    why: str


def open_best(made: Net, folder: Path, device: CudaDevice, tell: Callable[[str], None] = print) -> Opened:
    """Open it in half precision: on TensorRT, else on ONNX Runtime and CUDA, else on the processor.

    Args:
        made: the network.
        folder: that ``DOPPELCAM_MODELS`` names; gets the model and its plan.
        device: the GPU.
        tell: told how long the plan took.
    """
    card = load_card(put(folder, made))
    try:
        began_s = time.monotonic()
        build(card, BuildSettings(time_limit_s=BUILD_S))
        tell(f"its plan was built in {time.monotonic() - began_s:.0f} s")
        return Opened(open_engine(card, "tensorrt", device=device), "")
    except LiveError as error:
        why = f"no TensorRT: {error.message}"
    half = folder / "half.onnx"
    half.write_bytes(to_fp16(made.model).model.SerializeToString())
    for provider in ("cuda", "cpu"):
        try:
            return Opened(OnnxRuntimeEngine(card, half, provider=provider), why)
        except LiveError as error:
            why = f"{why}; no ONNX Runtime on {provider}: {error.message}"
    raise AssertionError(why)


@dataclass(frozen=True, slots=True)
class Speed:
    """What a 1280x720 frame with one face costs.

    Attributes:
        one_ms: from its beginning to its end, one in flight.
        two_fps: frames per second, two in flight.
        network_ms: of that on the device: cut and network; 0 where it was not measured.
        remarks: of the device.
    """

    one_ms: float
    two_fps: float
    network_ms: float
    remarks: tuple[str, ...]


def speed(device: CudaDevice, engine: Engine, rounds: int = 60) -> Speed:
    """Swap one face with it again and again."""
    lane = device.lane(CropPlan(NAME, engine.inputs[0], 0, least_range=0.0), engine)
    width, height = SIZE
    frames: list[U8] = list(np.random.default_rng(0).integers(0, 256, (2, height, width, 3), np.uint8))
    said, laps = len(device.remarks), list[float]()

    def one() -> None:
        _begin(device, lane, frames[0])
        laps.append(device.finish(frames[0]).laps_ms.get("swap", 0.0))

    one_ms = host_ms(one, rounds)
    _begin(device, lane, frames[0])
    began_s = time.perf_counter()
    for number in range(rounds):
        _begin(device, lane, frames[(number + 1) % 2])
        device.finish(frames[number % 2])
    took_s = time.perf_counter() - began_s
    device.finish(frames[rounds % 2])
    lane.close()
    return Speed(one_ms, rounds / took_s, float(np.median(laps)), tuple(device.remarks[said:]))


def _begin(device: Device, lane: Lane, pixels: U8) -> None:
    where = np.array([[2.5, 0, 480], [0, 2.5, 200]])
    source: F32 = np.linspace(-1, 1, LATENT, dtype=np.float32).reshape(1, LATENT)
    device.begin(pixels)
    lane.start(pixels, where, {"source": source})
    lane.paint(1, pixels, where, oval(SIDE), np.ones(3, np.float32), np.zeros(3, np.float32))
    device.submit(pixels)


@contextmanager
def without_graphs(driver: Driver) -> Iterator[None]:
    """Let nothing be captured, so that everything is launched by itself."""

    def refuse(_: Any) -> Any:
        raise DeviceError("graphs are left out for comparison", "measure again")

    vars(driver)["capture"] = refuse
    try:
        yield
    finally:
        del vars(driver)["capture"]
