"""The NVIDIA path on a real GPU: `pytest tests/hardware --require cuda`, at most eight minutes, one table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the tests build networks with onnx, which is in the extra dev")

from engines import isolated
from engines.cpu import CpuDevice
from engines.cuda import opening
from engines.cuda.device import CudaDevice
from tests.cards import put
from tests.faces import Eyes
from tests.hardware import full_width, measures, real_faces
from tests.hardware.benched import bench
from tests.hardware.real_faces import CopyingOnGpu, on_host
from tests.hardware.table import Table
from tests.helpernets import arcface

pytestmark = pytest.mark.cuda


def test_the_gpu_is_named(device: CudaDevice, table: Table) -> None:
    gpu = device.driver.gpu
    table.tell("GPU", f"{device.name}, {gpu.memory_bytes / 2**30:.0f} GiB, driver for CUDA {gpu.driver}")


@pytest.mark.parametrize("back_end", opening.BACK_ENDS)
def test_a_back_end_obeys_its_contract(gpu: str, table: Table, back_end: str) -> None:
    target, needs = opening.BACK_ENDS[back_end]
    if not all(map(opening.is_there, needs)):
        table.tell(f"contract of {back_end}", "not installed")
        pytest.skip(f"{back_end} is not installed")
    laws = isolated.ask(back_end, isolated.module("tests.cuda.obeys", target), "see what it says", most_s=60)
    broken = [law for law, how in laws.items() if how]
    table.tell(f"contract of {back_end}", f"{len(laws) - len(broken)} laws of {len(laws)} obeyed")
    assert not broken, "\n".join(laws[law] for law in broken)


@pytest.mark.parametrize("where", ["GPU", "host"])
def test_real_crops_are_painted_as_by_the_processor(device: CudaDevice, eyes: Eyes, table: Table, where: str) -> None:
    film = real_faces.film(eyes)
    right, _ = real_faces.swap(CpuDevice(), on_host(), film)
    made, reports = real_faces.swap(device, CopyingOnGpu() if where == "GPU" else on_host(), film)
    assert not any(report.failures for report in reports)
    assert not device.remarks
    table.demand(f"real crops, network on the {where}: from the processor", real_faces.apart(made, right), 2, "levels")
    costs = {step: np.median([report.laps_ms.get(step, 0) for report in reports]) for step in reports[0].laps_ms}
    table.tell("  on the device, 1280x720", ", ".join(f"{step} {ms:.2f}" for step, ms in costs.items()) + " ms")


def test_a_mesh_is_drawn_as_by_the_processor(gpu: str, eyes: Eyes, table: Table) -> None:
    film = real_faces.film(eyes)
    made, right = (real_faces.mesh_swap(film, kind) for kind in ("cuda", "cpu"))
    assert real_faces.apart(right, film.pictures[:1] * len(right)) > 20  # something was drawn
    table.demand("mesh swap of a real face: from the processor", real_faces.apart(made, right), 2, "levels")


def test_copies_and_work_overlap(device: CudaDevice, table: Table) -> None:
    found = measures.overlap(device.driver)
    table.tell("64 MiB in, work, 64 MiB out", f"{found.copy_in:.2f} + {found.work:.2f} + {found.copy_out:.2f} ms")
    table.demand(f"all three at once ({found.together:.2f} ms), of their sum", found.share, 0.75, "")


def test_a_graph_is_launched_faster_than_its_parts(device: CudaDevice, table: Table) -> None:
    found = measures.replay(device.driver)
    assert found.same
    table.tell("200 crops, one by one", f"{found.plain_ms:.2f} ms, of the processor {found.plain_host_ms:.2f} ms")
    table.tell("the same as a graph", f"{found.graph_ms:.2f} ms")
    table.demand("  of the processor, launching the graph", found.graph_host_ms, found.plain_host_ms, "ms")


def test_a_network_of_inswappers_width(
    device: CudaDevice, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOPPELCAM_MODELS", str(tmp_path))
    opened = full_width.open_best(
        full_width.full_width(), tmp_path, device, lambda told: table.tell("inswapper's width", told)
    )
    table.tell("inswapper's width, half precision, on", opened.engine.runtime)
    if opened.why:
        table.tell("  because", opened.why)
    assert "CPUExecutionProvider" not in opened.engine.runtime
    found = full_width.speed(device, opened.engine)
    table.tell("  cut and network, on the device", f"{found.network_ms:.2f} ms")
    table.tell("  a frame of 1280x720, one face", f"{found.one_ms:.2f} ms, {1e3 / found.one_ms:.0f} fps")
    table.tell("  the same, two frames in flight", f"{found.two_fps:.0f} fps")
    assert not found.remarks
    with full_width.without_graphs(device.driver):
        plain = full_width.speed(device, opened.engine)
    table.tell("  without graphs", f"{plain.one_ms:.2f} ms, {plain.two_fps:.0f} fps with two in flight")
    opened.engine.close()
    put(tmp_path, arcface())
    bench(table, tmp_path, "its bench", f"swap.engine={full_width.NAME}", "engine.build=false")


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_the_mesh_from_capture_to_output(gpu: str, table: Table, tmp_path: Path, kind: str) -> None:
    bench(table, tmp_path, "bench", f"engine.device={kind}")
