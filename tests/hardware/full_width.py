"""A network of inswapper's topology and full width, with random weights, through the best engine of a machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engines import registry
from engines.card import load_card
from engines.contract import CropPlan, Engine, Lane
from engines.cuda.device import CudaDevice
from engines.errors import LiveError
from realtime.types import F32, U8
from tests import cards, facenets, halfnets
from tests.hardware.measures import host_ms

FULL = 256
"""Width of the first layer for 1024 channels in the middle: 138 million weights, as inswapper has."""
BUILD_S = 300.0


def measure(device: CudaDevice, folder: Path, width: int = FULL) -> Iterator[tuple[str, str]]:
    """Build it, open it, and time a frame with it.

    Args:
        device: the GPU.
        folder: for the model and its plan.
        width: smaller for a rehearsal.

    Yields:
        Lines of the table.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(facenets, "WIDTH", width)
        patch.setenv("DOPPELCAM_MODELS", str(folder))
        card = load_card(cards.put(folder, halfnets.inswapper_like.__wrapped__()))
        engine = _planned(device, card.name) or registry.open_engine(card, "onnxrt", provider="auto")
        yield "a network of inswapper's size runs on", engine.runtime
        lane = device.lane(CropPlan(card.name, replace(card.inputs[0], shape=(1, 3, 128, 128)), 0), engine)
        yield "a 1280x720 frame with it", f"{_frame_ms(device, lane):.2f} ms"
        remarks = "; ".join(device.remarks) or "from a CUDA graph"
        yield "which is launched", remarks
        lane.close()
        engine.close()


def _planned(device: CudaDevice, name: str) -> Engine | None:
    from engines.building import BuildSettings, build

    try:
        outcome = build(load_card(name), BuildSettings(time_limit_s=BUILD_S))
        print(f"plan of {name}: {outcome.plan.path}")
        return registry.open_engine(load_card(name), "tensorrt", device=device)
    except LiveError as error:
        print(f"no TensorRT: {error.message}")
        return None


def _frame_ms(device: CudaDevice, lane: Lane) -> float:
    pixels: U8 = np.random.default_rng(0).integers(0, 256, (720, 1280, 3), np.uint8)
    where = np.array([[2.5, 0, 480], [0, 2.5, 200]])
    opacity = np.zeros((128, 128), np.uint8)
    opacity[1:-1, 1:-1] = 255
    source: F32 = np.random.default_rng(1).standard_normal((1, 512)).astype(np.float32)
    gain, offset = np.ones(3, np.float32), np.zeros(3, np.float32)

    def frame() -> None:
        device.begin(pixels)
        lane.start(pixels, where, {"source": source})
        lane.paint(1, pixels, where, opacity, gain, offset)
        device.finish(pixels)

    return host_ms(frame)
