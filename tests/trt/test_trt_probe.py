"""Asking for TensorRT never takes the program down, and ends in words."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the tests build networks with onnx, which is in the extra dev")

from engines.contract import Availability, Device
from engines.cpu import CpuDevice
from engines.errors import EngineError
from engines.tensorrt import api, probe
from engines.tensorrt.open import open_planned
from engines.tensorrt.probe import tried
from tests.cuda.fake_driver import FakeDriver
from tests.trt.fake_tensorrt import FakeTensorRt
from tests.trt.plans import MODEL_SHA256, built, gpu, inputs, right, swapper, trt_on

pytestmark = pytest.mark.trt_api
GOOD = 'print(\'{"ok": true, "reason": "TensorRT 11.4.0.106", "hint": ""}\')'
FOUND = Availability(True, "RTX 4090, compute 8.9")


def saying(*lines: str) -> tuple[str, ...]:
    """A process that runs some Python."""
    return sys.executable, "-c", "\n".join(("import os, signal, sys, time", *lines))


def test_what_the_process_found_is_told() -> None:
    assert tried(saying(GOOD)) == Availability(True, "TensorRT 11.4.0.106")
    assert tried(saying("print('a package that talks')", GOOD)).ok


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (saying("os.kill(os.getpid(), signal.SIGSEGV)"), "takes its process down when it starts (signal 11)"),
        (saying("sys.exit('no symbol found')"), "(exit code 1): no symbol found"),
        (saying("print('nothing of use')"), "(exit code 0): without a word"),
        (saying("print('[1]')"), "(exit code 0)"),
        (("/no/such/python",), "cannot be tried: No such file or directory"),
    ],
)
def test_a_process_without_an_answer_is_told_with_its_end(command: tuple[str, ...], says: str) -> None:
    found = tried(command)
    assert not found.ok
    assert says in found.reason
    assert found.hint


def test_a_process_that_hangs_is_ended() -> None:
    found = tried(saying("time.sleep(60)"), 0.5)
    assert (found.ok, found.reason) == (False, "TensorRT did not answer within 0.5 s")


def test_it_is_tried_once(tmp_path: Path) -> None:
    command = saying(f"open({str(tmp_path / 'tried')!r}, 'a').write('x')", GOOD)
    assert tried(command) is tried(command)
    assert (tmp_path / "tried").read_text() == "x"


def test_the_real_process_answers_wherever_it_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tensorrt.py").write_text("raise SystemExit('imported from where it was started')")
    monkeypatch.chdir(tmp_path)
    assert "takes its process down" not in tried(probe.TRIAL).reason


def test_without_a_gpu_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    none = Availability(False, "there is no NVIDIA driver", "install it")
    monkeypatch.setattr("engines.cuda.opening.probe", lambda: none)
    monkeypatch.setattr(probe, "TRIAL", saying("raise SystemExit('started')"))
    assert probe.probe() == none


def test_with_a_gpu_the_package_is_looked_for_and_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engines.cuda.opening.probe", lambda: FOUND)
    monkeypatch.setattr(api, "PACKAGES", ("no_such_package",))
    found = probe.probe()
    assert (found.ok, found.reason) == (False, "package tensorrt is not installed")
    assert "NVIDIA's own index" in found.hint
    monkeypatch.setattr(api, "PACKAGES", ("json",))
    monkeypatch.setattr(probe, "TRIAL", saying("print('here')", GOOD))
    assert probe.probe() == Availability(True, "TensorRT 11.4.0.106")


def test_bindings_that_are_not_there_or_do_not_load_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "PACKAGES", ("no_such_package", "broken_bindings"))
    with pytest.raises(EngineError, match="package tensorrt is not installed"):
        api.load()
    (tmp_path / "broken_bindings.py").write_text("raise ImportError('libnvinfer.so.11 is not found')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(EngineError, match=r"broken_bindings is installed but does not load: libnvinfer\.so\.11"):
        api.load()


class OnFakeGpu(CpuDevice):
    """A device with a driver."""

    def __init__(self, driver: FakeDriver) -> None:
        super().__init__()
        self.driver = driver


def open_swapper(monkeypatch: pytest.MonkeyPatch, device: Device | None, trt: FakeTensorRt) -> Any:
    monkeypatch.setattr("engines.tensorrt.open.load", lambda: trt)
    monkeypatch.setattr("engines.tensorrt.open.fingerprint", lambda *_: MODEL_SHA256)
    return open_planned(swapper().card, Path("swapper.onnx"), 4, cast(Device, device))


def test_the_plan_of_a_model_is_opened_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    net, driver = swapper(), gpu()
    built(net)
    engine = open_swapper(monkeypatch, OnFakeGpu(driver), trt_on(driver))
    np.testing.assert_allclose(engine.run(*inputs(net))[0], right(net, *inputs(net))[0], atol=1e-5)


@pytest.mark.parametrize("device", [None, CpuDevice()])
def test_without_a_device_on_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch, device: Device | None) -> None:
    with pytest.raises(EngineError, match="this run is on none"):
        open_swapper(monkeypatch, device, trt_on(gpu()))


def test_without_a_plan_it_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = gpu()
    with pytest.raises(EngineError, match=r"no plan of .* has been built") as caught:
        open_swapper(monkeypatch, OnFakeGpu(driver), trt_on(driver))
    assert caught.value.hint == f"doppelcam models build {swapper().card.name}"
    built(swapper())
    driver.gpu = replace(driver.gpu, name="Another GPU")
    with pytest.raises(EngineError, match="was built for Fake GPU, this is Another GPU"):
        open_swapper(monkeypatch, OnFakeGpu(driver), trt_on(driver))
