"""What doctor says of a GPU: on a machine without one, on one that has it, and on one where something goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import onnxruntime
import pytest
from rich.console import Console

from engines import gpu_report, isolated, registry
from engines.contract import Availability
from engines.cuda import opening, provider
from engines.errors import EngineError
from engines.gpu_report import Finding
from realtime import doctor
from realtime.commands.doctor import report
from realtime.doctor import Check, can_run
from realtime.doctor_gpu import examine_gpu

NO_DRIVER = Availability(False, "there is no NVIDIA driver", "if you have an NVIDIA GPU, install its driver")
GPU = Availability(True, "NVIDIA GeForce RTX 4090, compute 8.9")
TRT = Availability(True, "TensorRT 11.4.0.106")
CUDA = ["CUDAExecutionProvider", "CPUExecutionProvider"]
TOLD = {
    "name": "cuda (RTX 4090)", "cuda": "13.0", "memory_bytes": 24_000_000_000, "free_bytes": 23_000_000_000,
    "allocations": [["device", "picture of frame 0", 2_700_000], ["pinned", "numbers of frame 0", 1_000_000],
                    ["device", "picture of frame 1", 2_700_000], ["device", "swapper, frame 0: input", 200_000]],
    "remarks": [],
}  # fmt: skip


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOPPELCAM_MODELS", str(tmp_path))


def machine(
    monkeypatch: pytest.MonkeyPatch,
    gpu: Availability = GPU,
    packages: Sequence[str] = ("cupy", "pycuda", "cuda.bindings", "tensorrt"),
    providers: Sequence[str] = CUDA,
    answers: object = None,
) -> dict[str, Check]:
    """Examine a machine that is like this; ``answers`` is told by what is tried in other processes."""

    def ask(_what: str, command: Sequence[str], hint: str, _most_s: float) -> object:
        if isinstance(answers, str):
            raise EngineError(answers, hint)
        fine = {"device": TOLD, "kernels": {"compiled": "paste.cu"}, "onnxruntime": {"really": CUDA[0], "why": ""}}
        return {**fine, **(answers if isinstance(answers, dict) else {})}[command[-1]]

    monkeypatch.setattr(opening, "ask_driver", lambda: gpu)
    monkeypatch.setattr(opening, "is_there", lambda package: package in packages)
    monkeypatch.setattr(gpu_report, "installed", lambda: "tensorrt" if "tensorrt" in packages else None)
    monkeypatch.setattr(gpu_report, "probe_tensorrt", lambda: TRT)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: list(providers))
    monkeypatch.setattr(isolated, "ask", ask)
    provider.tried.cache_clear()
    return {f"{check.area}: {check.name}": check for check in examine_gpu()}


def test_without_a_gpu_every_way_is_named_with_what_it_lacks_and_the_program_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = machine(monkeypatch, NO_DRIVER, packages=(), providers=CUDA[1:])
    assert [name for name in found if name.startswith("gpu: ")] == [
        "gpu: GPU", "gpu: CuPy", "gpu: back end", "gpu: TensorRT", "gpu: ONNX Runtime's CUDA",
    ]  # fmt: skip
    assert {name: check.found for name, check in found.items() if check.area == "networks"} == {
        "networks: 1 TensorRT": "lacks: GPU, CuPy, back end, TensorRT",
        "networks: 2 ONNX Runtime CUDA": "lacks: GPU, ONNX Runtime's CUDA",
        "networks: 3 ONNX Runtime CPU": f"ONNX Runtime {onnxruntime.__version__}",
        "networks: 4 mesh": "needs no network",
    }
    assert all(bool(check.fix) == (check.state != "ok") for check in found.values())
    assert can_run(list(found.values()))


def test_all_of_it_fits_one_screen_and_each_cure_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = list(machine(monkeypatch, NO_DRIVER, packages=(), providers=CUDA[1:]).values())
    console = Console(width=80, no_color=True)
    with console.capture() as capture:
        console.print(report(checks), soft_wrap=True)
    lines = capture.get().splitlines()
    assert len(lines) <= 24
    assert sum("install its driver" in line for line in lines) == 1
    assert sum(".[gpu]" in line for line in lines) == 1
    assert any(line.startswith("CuPy, back end, TensorRT: ") for line in lines)


@pytest.mark.parametrize(
    ("gone", "part"),
    [(("cupy",), "CuPy"), (("pycuda", "cuda.bindings"), "back end"), (("tensorrt",), "TensorRT")],
)
def test_a_package_that_is_missing_is_what_tensorrt_lacks(
    monkeypatch: pytest.MonkeyPatch, gone: tuple[str, ...], part: str
) -> None:
    every = ("cupy", "pycuda", "cuda.bindings", "tensorrt")
    found = machine(monkeypatch, packages=[package for package in every if package not in gone])
    assert found[f"gpu: {part}"].state == "missing"
    assert found["networks: 1 TensorRT"].found == f"lacks: {part}"
    assert found["networks: 2 ONNX Runtime CUDA"].state == "ok"


def test_either_back_end_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    found = machine(monkeypatch, packages=("cupy", "cuda.bindings", "tensorrt"))
    assert found["gpu: back end"].found == "cuda-bindings"
    assert found["networks: 1 TensorRT"].state == "ok"


def test_a_provider_that_is_listed_and_does_not_start_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = machine(monkeypatch, answers={"onnxruntime": {"really": "CPUExecutionProvider", "why": "no libcudnn.so.9"}})
    assert found["gpu: ONNX Runtime's CUDA"].found == "ONNX Runtime's CUDA does not start: no libcudnn.so.9"
    assert "onnxruntime-gpu[cuda,cudnn]" in found["networks: 2 ONNX Runtime CUDA"].fix


def test_an_onnx_runtime_that_lost_its_files_is_broken_and_doctor_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As pip leaves it where one of the two packages that share its folder is uninstalled."""
    monkeypatch.setattr(registry, "probe", lambda *_: Availability(False, "is installed but does not load", "mend it"))
    found = machine(monkeypatch)
    assert found["gpu: ONNX Runtime's CUDA"].found == "is installed but does not load"
    (tmp_path / "lost").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(doctor, "PACKAGES", {"onnxruntime": "lost"})
    checks = {check.name: check for check in doctor.CHECKS["packages"]()}
    assert checks["onnxruntime"].state == "broken"
    assert checks["onnxruntime"].found == "does not load: its files are gone"
    assert checks["onnxruntime"].fix.startswith("pip install --force-reinstall onnxruntime")


def test_kernels_that_do_not_compile_are_cupys(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {"error": "CuPy cannot compile paste.cu: no libnvrtc.so.13", "hint": "get it"}
    found = machine(monkeypatch, answers={"kernels": broken})
    assert (found["gpu: CuPy"].found, found["gpu: CuPy"].fix) == (broken["error"], "get it")
    assert found["networks: 1 TensorRT"].found == "lacks: CuPy"


def test_with_a_gpu_what_two_frames_take_of_it_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "ask_driver", lambda: GPU)
    machine(monkeypatch)
    assert [(check.name, check.found) for check in examine_gpu() if check.area == "gpu memory"] == [
        ("driven as", "cuda (RTX 4090), driver for CUDA 13.0"),
        ("free", "23000 of 24000 MB"),
        ("device", "   5.4 MB  picture"),
        ("device", "   0.2 MB  swapper: input"),
        ("pinned", "   1.0 MB  numbers"),
    ]


def test_a_gpu_that_takes_its_process_down_is_broken_and_the_program_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    found = machine(monkeypatch, answers="the GPU takes its process down when it starts (signal 11)")
    assert found["gpu memory: two frames"].state == "broken"
    assert "signal 11" in found["gpu memory: two frames"].found
    assert "signal 11" in found["gpu: ONNX Runtime's CUDA"].found
    assert can_run(list(found.values()))


def test_models_that_are_here_are_told_with_their_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnx", reason="the tests build networks with onnx, which is in the extra dev")
    from engines.card import load_card
    from engines.folders import user_folder
    from tests import cards
    from tests.trt.plans import built, swapper

    name = cards.put(user_folder(), swapper())
    plans = gpu_report.plans()
    assert plans == (Finding("plans", Availability(False, f"not built: {name}", plans[0].found.hint)),)
    assert plans[0].found.hint.startswith(f"doppelcam models build {name}")
    built(swapper())
    assert load_card(name)
    (plan,) = gpu_report.plans()
    assert (plan.name, plan.found.ok) == (f"plan of {name}", True)
    assert plan.found.reason.startswith("fp16, 1x3x32x32, for Fake GPU")


@pytest.mark.parametrize("name", [name for names in doctor.STAND_INS.values() for name in names])
def test_a_build_of_onnx_runtime_for_a_gpu_is_onnx_runtime(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    real = metadata.version

    def version(asked: str) -> str:
        if asked == name:
            return "1.31.1"
        if asked == "onnxruntime" or asked in doctor.STAND_INS["onnxruntime"]:
            raise metadata.PackageNotFoundError(asked)
        return real(asked)

    monkeypatch.setattr(metadata, "version", version)
    found = {check.name: check for check in doctor.CHECKS["packages"]()}
    assert (found["onnxruntime"].state, found["onnxruntime"].found) == ("ok", f"1.31.1 ({name})")
