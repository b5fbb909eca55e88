"""What doctor says of a GPU: on a machine without one, and on one that has it."""

from __future__ import annotations

import pytest

from engines import gpu_report, registry
from engines.contract import Availability
from engines.cuda import device, opening
from engines.errors import DeviceError
from realtime.doctor import can_run
from realtime.doctor_gpu import examine_gpu

NO_DRIVER = Availability(False, "there is no NVIDIA driver", "if you have an NVIDIA GPU, install its driver")


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "ask_driver", lambda: NO_DRIVER)


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_every_way_is_named_with_its_reason_and_the_program_runs() -> None:
    checks = list(examine_gpu())
    assert [check.name[0] for check in checks] == ["1", "2", "3", "4"]
    assert [check.state for check in checks] == ["missing", "missing", "ok", "ok"]
    assert all("no NVIDIA driver" in check.found and check.fix for check in checks[:2])
    assert can_run(checks)


@pytest.mark.usefixtures("no_gpu")
def test_packages_that_are_missing_too_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_report, "find_spec", lambda package: None)
    assert gpu_report.chain()[0].found == "there is no NVIDIA driver; cupy and tensorrt are not installed"


@pytest.fixture
def a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    there = Availability(True, "NVIDIA GeForce RTX 4090, compute 8.9")
    monkeypatch.setattr(registry, "probe", lambda _kind, _name: there)
    monkeypatch.setattr(opening, "ask_driver", lambda: there)


@pytest.mark.usefixtures("a_gpu")
def test_with_a_gpu_what_a_frame_takes_of_it_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (("pinned", "numbers", 1_000_000), ("device", "picture", 2_764_800), ("device", "triangles", 7_000_000))
    monkeypatch.setattr(gpu_report, "memory", lambda: lines)
    found = [(check.name, check.found) for check in examine_gpu()][4:]
    assert found == [
        ("device memory", "   2.8 MB  picture"),
        ("device memory", "   7.0 MB  triangles"),
        ("pinned memory", "   1.0 MB  numbers"),
    ]


@pytest.mark.usefixtures("a_gpu")
def test_a_gpu_that_fails_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise DeviceError("the GPU failed: cuInit said 999", "update the NVIDIA driver")

    monkeypatch.setattr(device, "CudaDevice", fail)
    broken = list(examine_gpu())[-1]
    assert (broken.state, broken.found, broken.fix) == (
        "broken", "the GPU failed: cuInit said 999", "update the NVIDIA driver",
    )  # fmt: skip
    assert can_run([broken])
