"""A driver that is damaged, crashes, hangs or has no GPU for us: it is told in words, and never ends the program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from engines import isolated
from engines.cuda import trial
from engines.errors import EngineError
from tests.conftest import ROOT
from tests.kernels.host import compiler

pytestmark = pytest.mark.ordering
SOURCE = Path(__file__).with_name("fake_libcuda.c")
GIVE_UP_S = 120

INIT = "int cuInit(unsigned flags) {{ {} return flags; }}\n"
COUNT = "int cuDeviceGetCount(int* count) {{ *count = {}; return 0; }}\n"
REST = """
int cuDeviceGet(int* device, int number) {{ *device = number; return 0; }}
int cuDeviceGetName(char* name, int length, int device) {{
    __builtin_strncpy(name, "GTX 1080", length);
    return device;
}}
int cuDeviceGetAttribute(int* value, int what, int device) {{ *value = what == 75 ? {} : {}; return device; }}
"""
GOOD = INIT.format("") + COUNT.format(1)

DRIVERS = {
    "nothing but its name": ("int unrelated;", "is damaged"),
    "half of its calls": (GOOD, "is damaged"),
    "a crash": (INIT.format("*(volatile int*)0 = 1;"), "takes its process down when it starts (signal 11)"),
    "a crash on loading": (
        "__attribute__((constructor)) void go(void) { *(volatile int*)0 = 1; }",
        "takes its process down when it starts (signal 11)",
    ),
    "an end": ("void exit(int);" + INIT.format("exit(3);"), "takes its process down when it starts (exit code 3)"),
    "a hang": ("int pause(void);" + INIT.format("for (;;) pause();"), "did not answer within"),
    "no GPU": (INIT.format("return 100;"), "finds no GPU (cuInit: error 100)"),
    "another driver": (INIT.format("return 804;"), "finds no GPU (cuInit: error 804)"),
    "an unknown error": (INIT.format("return 999;"), "finds no GPU (cuInit: error 999)"),
    "none of its GPUs": (INIT.format("") + COUNT.format(0) + REST.format(8, 9), "the NVIDIA driver finds no GPU"),
    "a GPU that will not talk": (
        GOOD + REST.format(8, 9).replace("*device = number; return 0", "return *device = number, 101"),
        "finds no GPU (cuDeviceGet: error 101)",
    ),
    "an old GPU": (GOOD + REST.format(6, 1), "GTX 1080 has compute capability 6.1, less than 7.5"),
}
"""What the driver has -> its source, and what is said of it."""

ASK = """
import json
from engines.cuda import opening
opening.MOST_S = {}
found = opening.ask_driver()
assert found is opening.ask_driver()
print(json.dumps([found.ok, found.reason, found.hint]))
"""


def ask(folder: Path, most_s: float = 20) -> tuple[bool, str, str]:
    """Ask the driver in a folder, in a program of its own."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", ASK.format(most_s)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=GIVE_UP_S, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    ok, reason, hint = json.loads(done.stdout)
    return ok, reason, hint


@pytest.fixture
def build(tmp_path: Path) -> Callable[[str], Path]:
    """Compile a driver into a folder."""
    if compiler() is None:
        pytest.skip("g++ is not installed")

    def build(source: str) -> Path:
        (tmp_path / "driver.c").write_text(source)
        command = ["gcc", "-shared", "-fPIC", "-w", "-o", str(tmp_path / "libcuda.so.1"), str(tmp_path / "driver.c")]
        subprocess.run(command, check=True)
        return tmp_path

    return build


@pytest.mark.parametrize("what", DRIVERS)
def test_a_driver_with(what: str, build: Callable[[str], Path]) -> None:
    source, says = DRIVERS[what]
    ok, reason, hint = ask(build(source), 2 if what == "a hang" else 20)
    assert not ok
    assert says in reason
    assert "NVIDIA driver" in reason or "GTX 1080" in reason
    assert hint


def test_a_driver_that_is_no_library(tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_text("it was here")
    ok, reason, hint = ask(tmp_path)
    assert (ok, reason.partition(" load")[0]) == (False, "the NVIDIA driver does not")
    assert "install the NVIDIA driver again" in hint


@pytest.mark.parametrize(
    ("vendor", "kind", "says"),
    [
        ("0x10de", "0x030000", "there is no NVIDIA driver, but there is an NVIDIA GPU"),
        ("0x10de", "0x040300", "there is no NVIDIA driver, nor does the system see an NVIDIA GPU"),
        ("0x8086", "0x030000", "there is no NVIDIA driver, nor does the system see an NVIDIA GPU"),
    ],
)
def test_without_a_driver_it_is_said_whether_one_would_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vendor: str, kind: str, says: str
) -> None:
    device = tmp_path / "0000:01:00.0"
    device.mkdir()
    (device / "vendor").write_text(vendor)
    (device / "class").write_text(kind)
    monkeypatch.setattr(trial, "PCI", tmp_path)
    monkeypatch.setattr(trial, "LIBRARY", "libnone.so.1")
    monkeypatch.setattr(trial, "_NOT_THERE", "libnone.so.1: cannot open")
    found = trial.ask()
    assert (found["ok"], found["reason"]) == (False, says)
    monkeypatch.setattr(trial, "PCI", tmp_path / "elsewhere")
    assert trial.ask()["reason"] == "there is no NVIDIA driver"


def test_a_process_that_cannot_be_ended_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that hangs inside the kernel's part of a driver."""
    started: list[subprocess.Popen[str]] = []

    def kill(process: subprocess.Popen[str]) -> None:
        started.append(process)

    monkeypatch.setattr(subprocess.Popen, "kill", kill)
    monkeypatch.setattr(isolated, "_END_S", 0.1)
    with pytest.raises(EngineError, match="it did not answer within"):
        isolated.ask("it", (sys.executable, "-S", "-c", "import time; time.sleep(3)"), "wait", 0.2)
    assert [process.poll() for process in started] == [None]
    started[0].terminate()
    started[0].wait()


RUN = ("live", "--input", "demo", "--duration", "1", "--set", "engine.device=cuda", "--output")
IMPATIENT = "import engines.cuda.opening as o, realtime.cli as c; o.MOST_S = 2; c.main()"


@pytest.mark.parametrize("what", ["half of its calls", "a crash", "a hang", "no GPU", "an old GPU"])
def test_a_run_that_insists_on_the_gpu_is_refused_in_two_lines(
    what: str, build: Callable[[str], Path], tmp_path: Path
) -> None:
    source, says = DRIVERS[what]
    folder, film = build(source), tmp_path / "film.mp4"
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(folder),
        "PYTHONPATH": str(ROOT),
        **{name: str(tmp_path) for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "DOPPELCAM_MODELS")},
    }
    done = subprocess.run(
        [sys.executable, "-c", IMPATIENT, *RUN, str(film)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=False,
    )
    error, hint = done.stderr.splitlines()[-2:]
    assert done.returncode == 4
    assert error.startswith("error: device 'cuda' cannot be used: ")
    assert says in error
    assert hint.startswith("try: ")
    assert "Traceback" not in done.stderr
    assert not film.exists()
