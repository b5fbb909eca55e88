"""The script for a real GPU runs on the fake one, so that it does not die of a typo on the day there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="the tests build networks with onnx, which is in the extra dev")

from engines import registry
from engines.cpu import CpuDevice
from engines.cuda.device import CudaDevice
from tests import cards, helpernets
from tests.cuda.fake_driver import FakeDriver
from tests.cuda.fake_engine import FakeSlotted
from tests.faces import Eyes
from tests.halfnets import InswapperGraph
from tests.hardware import full_width, measures, real_faces
from tests.hardware.benched import bench
from tests.hardware.table import Table
from tests.kernels.host import HostKernels

pytestmark = pytest.mark.ordering


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing here is measured, so one round will do."""
    monkeypatch.setattr(measures, "MOST_LAUNCHES", 2)
    monkeypatch.setenv("DOPPELCAM_MODELS", str(tmp_path))


def test_the_table_says_what_failed() -> None:
    table = Table()
    table.tell("GPU", "none")
    table.demand("apart", 1, 2, "levels")
    with pytest.raises(AssertionError, match=r"apart: 3\.00 levels, not <= 2 levels"):
        table.demand("apart", 3, 2, "levels")
    with pytest.raises(AssertionError):
        table.demand("apart", float("nan"), 2, "levels")
    assert table.text().splitlines() == [
        "GPU    none",
        "apart  1.00 levels  <= 2 levels  ok",
        "apart  3.00 levels  <= 2 levels  FAILS",
        "apart  nan levels   <= 2 levels  FAILS",
    ]


@pytest.mark.parametrize("seed", [None, 0])
def test_overlap_is_measured(kernels: HostKernels, seed: int | None) -> None:
    driver = FakeDriver(kernels, seed)
    found = measures.overlap(driver, nbytes=1000, rounds=2)
    assert min(found.copy_in, found.work, found.copy_out, found.together) > 0
    assert not driver.lines


def test_graphs_are_compared(kernels: HostKernels) -> None:
    driver = FakeDriver(kernels)
    assert measures.replay(driver, launches=2, rounds=2).same
    assert driver.graphs == 1
    assert not driver.lines


@pytest.mark.parametrize("where", ["GPU", "host"])
def test_a_real_face_is_painted_as_by_the_processor(kernels: HostKernels, eyes: Eyes, where: str) -> None:
    film, driver = real_faces.film(eyes), FakeDriver(kernels, 0)
    right, _ = real_faces.swap(CpuDevice(), real_faces.on_host(), film, rounds=1)
    on_gpu = FakeSlotted(driver, (real_faces.TARGET,), (real_faces.MADE,), real_faces.copying)
    made, reports = real_faces.swap(CudaDevice(driver), on_gpu if where == "GPU" else real_faces.on_host(), film)
    assert not any(report.failures for report in reports)
    assert real_faces.apart(right, film.pictures) > 10
    assert real_faces.apart(made, right) <= 2
    assert driver.graphs == (2 if where == "GPU" else 0)


def test_a_mesh_is_drawn_as_by_the_processor(kernels: HostKernels, eyes: Eyes, monkeypatch: pytest.MonkeyPatch) -> None:
    real = registry.open_device
    film = real_faces.film(eyes)
    right = real_faces.mesh_swap(film, "cpu")
    monkeypatch.setattr(
        registry, "open_device", lambda name: CudaDevice(FakeDriver(kernels)) if name == "cuda" else real(name)
    )
    made = real_faces.mesh_swap(film, "cuda")
    assert real_faces.apart(right, film.pictures[:1] * len(right)) > 20
    assert real_faces.apart(made, right) <= 2


def test_a_network_is_timed_where_there_is_no_tensorrt(kernels: HostKernels, tmp_path: Path) -> None:
    device, told = CudaDevice(FakeDriver(kernels)), list[str]()
    opened = full_width.open_best(full_width.full_width(width=2), tmp_path, device, told.append)
    assert "no TensorRT: " in opened.why
    assert "CPUExecutionProvider" in opened.engine.runtime
    found = full_width.speed(device, opened.engine, rounds=2)
    assert min(found.one_ms, found.two_fps, found.network_ms) > 0


def test_a_network_on_the_gpu_is_timed_with_graphs_and_without(kernels: HostKernels) -> None:
    driver, card = FakeDriver(kernels), full_width.full_width(width=2).card
    device = CudaDevice(driver)
    engine = FakeSlotted(driver, card.inputs, card.outputs, lambda target, source: (target,))
    assert not full_width.speed(device, engine, rounds=2).remarks
    assert driver.graphs == 2
    with full_width.without_graphs(driver):
        (remark,) = {*full_width.speed(device, engine, rounds=2).remarks}
    assert "without a CUDA graph: graphs are left out for comparison" in remark
    assert driver.graphs == 2


def test_the_network_is_as_large_as_inswapper() -> None:
    """554 MB of single precision are published, with the matrix behind the weights."""
    sizes = [512 * 512]

    class Counting(InswapperGraph):
        def conv(self, x: str, src: int, dst: int, kernel: int = 3, *, stride: int = 1, gain: float = 1.4) -> str:
            sizes.append(src * dst * kernel * kernel)
            return super().conv(x, 1, 1, kernel, stride=stride, gain=gain)

        def gemm(self, x: str, src: int, dst: int, mean: float = 0.0) -> str:
            sizes.append(src * dst)
            return super().gemm(x, 1, 1, mean)

    full_width.full_width(graph=Counting)
    assert 4 * sum(sizes) == pytest.approx(554e6, rel=0.005)


def test_the_bench_runs_on_a_network_of_this_kind(tmp_path: Path) -> None:
    cards.put(tmp_path, full_width.full_width(width=2))
    cards.put(tmp_path, helpernets.arcface())
    table = Table()
    bench(table, tmp_path, "its bench", f"swap.engine={full_width.NAME}", frames=60)
    assert "test_full_width on" in table.text()
    assert "capture to output" in table.text()
