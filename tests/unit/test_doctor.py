"""What the doctor finds on this very machine, and how it tells what is not there."""

from __future__ import annotations

import importlib
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from realtime import doctor
from realtime.commands.doctor import report
from realtime.doctor import Check

ROOT = Path(__file__).resolve().parents[2]


def shown(checks: list[Check]) -> str:
    console = Console(width=120, no_color=True)
    with console.capture() as capture:
        console.print(report(checks))
    return capture.get()


def test_every_dependency_is_looked_at() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(doctor.PACKAGES) == {re.split(r"[<>=]", line)[0] for line in project["dependencies"]}


def test_this_machine_can_run_the_main_job_and_every_trouble_has_a_fix() -> None:
    checks = list(doctor.examine())
    assert doctor.can_run(checks), [check for check in checks if check.needed and check.state != "ok"]
    assert {check.area for check in checks} >= {
        "machine",
        "packages",
        "engines",
        "models",
        "inputs",
        "outputs",
        "folders",
    }
    for check in checks:
        assert bool(check.fix) == (check.state != "ok"), check


def test_a_missing_system_library_is_not_cured_with_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def load(name: str) -> object:
        if name == "cv2":
            raise ImportError("libGL.so.1: cannot open shared object file: No such file or directory")
        return real(name)

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(importlib, "import_module", load)
    assert f"opencv-python: {doctor.LIBRARIES}" in shown(list(doctor.CHECKS["packages"]()))


def test_a_missing_package_is_a_finding_with_its_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    real = metadata.version

    def version(name: str) -> str:
        if name == "av":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    checks = list(doctor.examine())
    assert not doctor.can_run(checks)
    text = shown(checks)
    assert re.search(r"av\s+missing\s+not installed", text)
    assert "av: pip install av" in text
    assert "cannot run" in text


def test_a_package_that_does_not_load_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def load(name: str) -> object:
        if name == "cv2":
            raise ImportError("libGL.so.1: cannot open shared object file")
        return real(name)

    monkeypatch.setattr(importlib, "import_module", load)
    found = {check.name: check for check in doctor.examine() if check.area == "packages"}
    assert found["opencv-python"].state == "broken"
    assert "libGL.so.1" in found["opencv-python"].found


def test_packages_that_are_all_well_take_one_row() -> None:
    checks = [Check("packages", name, "ok", "1.0", needed=True) for name in ("a", "b")]
    assert "2 installed and loading" in shown(checks)


def test_every_module_with_kernels_is_looked_at() -> None:
    sources = [path for room in ("engines", "realtime") for path in (ROOT / room).rglob("*.py")]
    with_kernels = {path for path in sources if re.search("^from numba import", path.read_text("utf-8"), re.MULTILINE)}
    assert {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in with_kernels} == set(doctor.KERNELS)


def test_kernels_that_are_not_compiled_yet_are_told_with_their_cure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from engines import patch, raster

    class Cold:
        def __init__(self, kernel: object) -> None:
            self.py_func = kernel.py_func  # type: ignore[attr-defined]  # numba's dispatcher has no types
            self.stats = SimpleNamespace(cache_path=str(tmp_path))

    monkeypatch.setattr(raster, "paint", Cold(raster.paint))
    monkeypatch.setattr(patch, "lay_over", Cold(patch.lay_over))
    (kernels,) = [check for check in doctor.examine() if check.name == "kernels"]
    assert int(kernels.found.split()[0]) >= 2, "one of each module, and whatever else this machine has not compiled"
    assert (kernels.state, kernels.fix) == ("missing", "doppelcam warm")
    assert not kernels.needed
