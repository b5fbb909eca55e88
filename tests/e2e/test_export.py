"""``doppelcam models export`` as a person runs it, and what it made in a run of the program."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
import typer

from engines.card import load_card
from engines.errors import ModelError, install_extra
from realtime.assets import sample_source
from realtime.commands.export import FUSIONS, PACKAGES, export
from tests.conftest import ROOT

SMALL = ["--width", "8", "--blocks", "1"]
missing = [package for package in PACKAGES if find_spec(package) is None]
needs_train = pytest.mark.skipif(bool(missing), reason=f"the extra train is not installed: {', '.join(missing)}")


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Start the program in its own process with a home of its own."""
    own = {name: str(home) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "APPDATA", "LOCALAPPDATA")}
    env = {**os.environ, **own, "DOPPELCAM_MODELS": str(home / "models"), "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        env=env,
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def export_in(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(home, "-c", "from realtime.cli import main; main()", "models", "export", *arguments)


@needs_train
def test_an_export_is_a_model_that_the_program_swaps_with(tmp_path: Path) -> None:
    done = export_in(tmp_path, *SMALL)
    assert (done.returncode, done.stderr) == (0, "")
    for module in ("encoder", "fusion linear", "generator", "swapper 128"):
        assert [line for line in done.stdout.splitlines() if line.startswith(f"{module} ") and "e-0" in line]
    assert "These weights are random" in done.stdout
    models = tmp_path / "models"
    assert {path.name for path in models.glob("*.onnx")} == {"modular_linear_128.onnx", "modular_linear_encoder.onnx"}
    assert load_card("modular_linear_128", models).family == "latent"

    live = ["--source", str(sample_source()), "--input", "demo", "--output", "out.mp4", "--duration", "0.5"]
    swapped = run(tmp_path, str(ROOT / "run_live.py"), *live, "--set", "swap.engine=modular_linear_128")
    assert swapped.returncode == 0, swapped.stderr
    assert "modular_linear_128 on onnxrt" in " ".join((swapped.stdout + swapped.stderr).split())
    assert (tmp_path / "out.mp4").stat().st_size > 0


WRONG = {
    "size": (["--size", "192"], 2, "192"),
    "fusion": (["--fusion", "sum"], 2, "linear or gated"),
    "width": (["--width", "0"], 2, "--width"),
    "checkpoint": (["--checkpoint", "none.pt"], 4, "none.pt"),
    "other": (["--checkpoint", "text.pt"], 4, "text.pt"),
}


@needs_train
@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_told_in_two_lines_and_nothing_is_written(wrong: str, tmp_path: Path) -> None:
    (tmp_path / "text.pt").write_text("no weights")
    arguments, code, said = WRONG[wrong]
    done = export_in(tmp_path, *arguments)
    assert done.returncode == code
    error, hint = done.stderr.splitlines()
    assert error.startswith("error: ")
    assert hint.startswith("try: ")
    assert said in done.stderr
    assert not (tmp_path / "models").exists()


@pytest.mark.parametrize("package", PACKAGES)
def test_without_the_extra_it_says_which_package_to_install(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for other in missing:  # a bare machine has none of them: this test is about one that is missing alone
        stand_in = ModuleType(other)
        stand_in.__spec__ = ModuleSpec(other, loader=None)
        monkeypatch.setitem(sys.modules, other, stand_in)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModelError, match=f"torch, onnx, onnxscript; {package} is not installed") as caught:
        export(out=tmp_path)
    assert caught.value.hint == install_extra("train")
    assert not list(tmp_path.iterdir())


def test_what_is_wrong_is_told_before_a_package_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in PACKAGES:
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(typer.BadParameter, match="sum is not linear or gated"):
        export(fusion="sum", out=tmp_path)
    with pytest.raises(ModelError, match=r"there is no checkpoint .*none\.pt"):
        export(checkpoint=tmp_path / "none.pt", out=tmp_path)
    with pytest.raises(ModelError, match="torch, onnx, onnxscript are not installed"):
        export(out=tmp_path)


@needs_train
def test_the_fusions_that_are_offered_are_those_there_are() -> None:
    from engines.modular import fusion

    assert tuple(fusion.FUSIONS) == FUSIONS


def test_the_rest_of_the_program_never_loads_torch() -> None:
    code = "import realtime.cli, engines, sys; print('torch' in sys.modules, 'onnx' in sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert loaded.split() == ["False", "False"]
