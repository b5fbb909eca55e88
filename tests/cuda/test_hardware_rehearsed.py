"""What is measured on a GPU runs: a rehearsal on the fake one, so that the script does not die of a typo on the day."""

from __future__ import annotations

from pathlib import Path

import pytest

from engines.cuda.device import CudaDevice
from tests.cuda.fake_driver import FakeDriver
from tests.hardware import full_width, measures
from tests.kernels.host import HostKernels

pytestmark = pytest.mark.ordering


def test_copies_are_timed(kernels: HostKernels) -> None:
    apart, together = measures.overlap(FakeDriver(kernels), nbytes=1000, rounds=2)
    assert apart > 0
    assert together > 0


def test_a_network_is_timed_without_tensorrt(
    kernels: HostKernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measures, "host_ms", lambda work: work() or 1.0)
    monkeypatch.setattr(full_width, "host_ms", lambda work: work() or 1.0)
    device = CudaDevice(FakeDriver(kernels))
    lines = dict(full_width.measure(device, tmp_path, width=4))
    assert "onnxrt" in lines["a network of inswapper's size runs on"]
    assert lines["a 1280x720 frame with it"] == "1.00 ms"
