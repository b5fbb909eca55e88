"""The NVIDIA path on a real GPU: `pytest tests/hardware -m cuda --require cuda`, a few minutes, one table."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engines.contract import CropPlan
from engines.cpu import CpuDevice
from engines.cuda.device import CudaDevice
from tests.conftest import ROOT
from tests.cuda.fake_engine import HostFunction
from tests.cuda.test_ordering import MADE, PICTURE, SOURCE, Run, draw_on, film, swapped
from tests.hardware.measures import host_ms, overlap

pytestmark = pytest.mark.cuda
Table = list[tuple[str, str]]


@pytest.fixture
def device(gpu: str) -> Iterator[CudaDevice]:
    opened = CudaDevice()
    yield opened
    opened.close()


def test_the_gpu_is_named(gpu: str, device: CudaDevice, table: Table) -> None:
    table.append(("GPU", device.name))
    assert device.driver.gpu.memory_bytes > 1 << 30


@pytest.mark.parametrize("in_flight", [1, 2])
def test_pictures_are_the_processors(device: CudaDevice, table: Table, in_flight: int) -> None:
    pictures = film(8)
    made = Run(device, HostFunction).play(pictures, in_flight)
    right = Run(CpuDevice(), HostFunction).play(pictures, 1)
    apart = max(int(np.abs(a.astype(int) - b).max()) for a, b in zip(made, right, strict=True))
    table.append((f"four pastes against the processor, {in_flight} in flight", f"at most {apart} grey levels"))
    assert apart <= 3


def test_a_mesh_is_the_processors(device: CudaDevice, table: Table) -> None:
    pairs = zip(draw_on(device), draw_on(CpuDevice()), strict=True)
    apart = max(int(np.abs(a.astype(int) - b).max()) for a, b in pairs)
    table.append(("a mesh against the processor", f"at most {apart} grey levels"))
    assert apart <= 2


def test_copies_overlap(device: CudaDevice, table: Table) -> None:
    apart_ms, together_ms = overlap(device.driver)
    table.append(("64 MB in and out, apart and together", f"{apart_ms:.2f} and {together_ms:.2f} ms"))
    assert together_ms <= 0.75 * apart_ms


def test_a_frame_around_the_network(device: CudaDevice, table: Table) -> None:
    lane = device.lane(CropPlan("stub", PICTURE, 0), HostFunction((PICTURE, SOURCE), (MADE,), swapped))
    pixels = film(1, (1280, 720))[0]
    where = np.array([[4.0, 0, 500], [0, 4.0, 300]])
    opacity = np.zeros((32, 32), np.uint8)
    opacity[1:-1, 1:-1] = 255

    def frame() -> None:
        device.begin(pixels)
        lane.start(pixels, where, {"source": np.zeros((1, 4), np.float32)})
        lane.paint(1, pixels, where, opacity, np.ones(3, np.float32), np.zeros(3, np.float32))
        device.finish(pixels)

    table.append(("1280x720 up, cut, pasted and back", f"{host_ms(frame):.2f} ms"))


def test_a_network_of_inswappers_size(gpu: str, device: CudaDevice, table: Table, tmp_path: Path) -> None:
    """Through TensorRT, whose plan is built here, else through ONNX Runtime on CUDA."""
    from tests.hardware.full_width import measure

    for name, figure in measure(device, tmp_path):
        table.append((name, figure))


def test_glass_to_glass(gpu: str, table: Table, tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    for kind in ("cpu", "cuda"):
        command = [sys.executable, "run_live.py", "bench", "--input", "demo", "--size", "1280x720", "--json", str(out),
                   "--set", f"engine.device={kind}"]  # fmt: skip
        subprocess.run(command, check=True, cwd=ROOT, timeout=180, capture_output=True)
        figures: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        out.unlink()
        table.append((f"bench on {kind}, compute p50", f"{figures['compute_ms']['p50']:.2f} ms"))
