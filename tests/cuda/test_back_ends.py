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
from tests.cuda.driver_contract import CUPY_LAWS, LAWS
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
def target(request: pytest.FixtureRequest) -> str:
    """A back end that is installed, as "module:Class"."""
    target, needs = opening.BACK_ENDS[request.param]
    for package in needs:
        if not opening.is_there(package):
            pytest.skip(f"{package} is not installed")
    return target


@pytest.fixture(scope="session")
def found(target: str, libcuda: Path) -> dict[str, Any]:
    """What a back end did."""
    done = run(libcuda, str(Path(__file__).with_name("on_fake_libcuda.py")), target)
    assert done.returncode == 0, done.stderr[-3000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("law", [law.__name__ for law in LAWS])
def test_it_obeys(found: dict[str, Any], law: str) -> None:
    assert not found["laws"][law], found["laws"][law]


def test_it_says_what_it_drives(found: dict[str, Any]) -> None:
    assert found["gpu"] == ["Fake GPU", [8, 6], "13.0"]


def test_nothing_runs_before_it_must_and_only_a_wait_orders_two_streams(found: dict[str, Any]) -> None:
    assert found["with a wait"] == {"early": False, "right": True, "first": 1}
    assert found["without"] == {"early": False, "right": False, "first": 0xCD}  # the poison
    streams = sorted({line.split()[-1] for line in found["order"]}, key=int)
    one, other = (f"on {number}" for number in streams)
    work = [f"copy {one}", f"mark {one}", f"wait {other}", f"copy {other}", f"mark {other}"]
    assert found["order"] == [f"{what} {line}" for what in ("given", "ran") for line in work]


def test_nothing_leaks_no_context_is_made_and_nothing_waits_for_the_whole_gpu(found: dict[str, Any]) -> None:
    counts = found["counts"]
    assert counts["allocations"] == counts["frees"] > 0
    assert counts["pinned"] == counts["unpinned"] > 0
    assert counts["pushes"] == counts["pops"] > 0
    assert counts["retains"] == counts["releases"] > len(LAWS)
    assert {name: counts[name] for name in ("contexts", "synchronises", "streams", "events")} == dict.fromkeys(
        ("contexts", "synchronises", "streams", "events"), 0
    )


def test_what_a_program_may_not_do_ends_in_an_error_for_people(found: dict[str, Any]) -> None:
    for what, (_, message, hint) in found["refusals"].items():
        assert message, what
        assert hint, what
    assert found["refusals"]["too much pinned memory"][0] == "OutOfMemoryError"


def test_work_that_fails_on_the_gpu_is_told_by_the_wait(found: dict[str, Any]) -> None:
    assert found["broken"].pop("freeing") == []  # what is left to be closed is closed, whatever else
    for kind, message, hint in found["broken"].values():
        assert kind == "DeviceError"
        assert "illegal memory access" in message
        assert "start the program again" in hint


def test_a_driver_that_is_left_open_does_not_take_the_program_down_when_it_ends(target: str, libcuda: Path) -> None:
    module, _, name = target.partition(":")
    done = run(libcuda, "-c", f"from {module} import {name}; left = {name}(); left.buffer(9, 'left'); left.event()")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_laws_for_a_real_gpu_are_rehearsed_and_fail_where_cupy_has_a_part(target: str, libcuda: Path) -> None:
    done = run(libcuda, "-W", "ignore", "-m", "tests.cuda.obeys", target)
    broken = {law for law, how in json.loads(done.stdout.splitlines()[-1]).items() if how}
    assert broken == {law.__name__ for law in CUPY_LAWS}


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
