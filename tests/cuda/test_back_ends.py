"""The back ends of the driver on their unmodified libraries, which sit on a libcuda that has no GPU."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from engines.cuda import opening
from tests.conftest import ROOT
from tests.kernels.host import compiler

pytestmark = pytest.mark.ordering
SOURCE = Path(__file__).with_name("fake_libcuda.c")


@pytest.fixture(scope="session")
def libcuda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the fake library."""
    if compiler() is None:
        pytest.skip("g++ is not installed")
    folder: Path = tmp_path_factory.mktemp("libcuda")
    rest = folder / "rest.c"
    rest.write_text(
        "".join(f"int {name}(void) {{ return 801; }}\n" for name in sorted(unknown_calls())), encoding="utf-8"
    )
    command = ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-Wl,-soname,libcuda.so.1"]
    subprocess.run([*command, "-o", str(folder / "libcuda.so.1"), str(SOURCE), str(rest), "-ldl"], check=True)
    return folder


def unknown_calls() -> set[str]:
    """What PyCUDA links against and nobody here calls: it does not load where a single one is missing."""
    found = find_spec("pycuda")
    libraries = [*Path(found.origin).parent.glob("_driver*.so")] if found and found.origin else []
    if not libraries:
        return set()
    listed = subprocess.run(
        ["nm", "-D", "--undefined-only", str(libraries[0])], check=True, capture_output=True, text=True
    )
    wanted = {line.split()[-1] for line in listed.stdout.splitlines() if line.split()[-1].startswith("cu")}
    return wanted - set(re.findall(r"^Result (cu\w+)\(", SOURCE.read_text(encoding="utf-8"), re.MULTILINE))


def run(libcuda: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libcuda), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *arguments], check=False, capture_output=True, text=True, env=environment, timeout=120
    )


@pytest.fixture(scope="session", params=opening.BACK_ENDS)
def found(request: pytest.FixtureRequest, libcuda: Path) -> dict[str, Any]:
    """What a back end did."""
    target, needs = opening.BACK_ENDS[request.param]
    for package in needs:
        try:
            there = find_spec(package) is not None
        except ModuleNotFoundError:
            there = False
        if not there:
            pytest.skip(f"{package} is not installed")
    done = run(libcuda, str(Path(__file__).with_name("on_fake_libcuda.py")), target)
    assert done.returncode == 0, done.stderr[-3000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_it_says_what_it_drives(found: dict[str, Any]) -> None:
    assert found["gpu"] == ["Fake GPU", [8, 6], "13.0"]
    assert any(char.isdigit() for char in found["name"])
    assert found["handles"] == [True, True]


def test_streams_are_lazy_and_only_a_wait_orders_them(found: dict[str, Any]) -> None:
    assert found["fresh events have happened"]
    assert found["nothing ran before it had to"]
    assert not found["without a wait"]
    assert found["poison"] == 0xCD
    assert found["with a wait"]
    assert found["time"] > 0


def test_a_rectangle_comes_back_row_by_row(found: dict[str, Any]) -> None:
    assert found["rows"]


def test_memory_is_listed_refused_and_freed(found: dict[str, Any]) -> None:
    assert found["allocations"] == [["pinned", "sent", 1000], ["pinned", "back", 1000], ["device", "memory", 1000]]
    assert "no room" in found["no room"][0]
    assert "close other programs" in found["no room"][1]
    assert found["free"] == (1 << 28) - 1000
    assert found["left"] == []


def test_nothing_leaks_and_nothing_waits_for_the_whole_gpu(found: dict[str, Any]) -> None:
    counts = found["counts"]
    assert counts["allocations"] == counts["frees"] == 1
    assert counts["pinned"] == counts["unpinned"] == 2
    assert counts["pushes"] - counts["pops"] == (1 if "pycuda" in found["name"] else 0)  # see PyCudaDriver.close
    assert counts["retains"] == counts["releases"] == 1
    assert (counts["streams"], counts["events"], counts["synchronises"]) == (0, 0, 0)


def test_a_machine_is_asked_for_its_gpu_without_importing_anything(libcuda: Path) -> None:
    said = run(libcuda, "-c", "from engines.cuda import opening; print(opening.ask_driver())")
    assert "Fake GPU, compute 8.6" in said.stdout
    assert opening.ask_driver().ok or opening.probe().hint


def test_doctor_sends_two_frames_through_them(libcuda: Path) -> None:
    done = run(libcuda, "-W", "ignore", "-m", "engines.gpu_trial", "device")
    told = json.loads(done.stdout.splitlines()[-1])
    if "installed" in told.get("error", ""):
        pytest.skip(told["error"])
    assert told["name"].startswith("cuda (Fake GPU, compute 8.6, ")
    assert {where for where, _, _ in told["allocations"]} == {"device", "pinned"}
    assert sum(nbytes for where, _, nbytes in told["allocations"] if where == "device") == (
        told["memory_bytes"] - told["free_bytes"]
    )


def test_a_driver_that_cupy_refuses_is_told_in_words(libcuda: Path) -> None:
    pytest.importorskip("cupy", reason="cupy is in the extra gpu")
    told = json.loads(run(libcuda, "-W", "ignore", "-m", "engines.gpu_trial", "kernels").stdout.splitlines()[-1])
    assert "CuPy cannot compile paste.cu: " in told["error"]
    assert "update the NVIDIA driver" in told["hint"]
