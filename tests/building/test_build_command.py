"""``doppelcam models build`` as a person meets it: what is missing, how far it is, what came of it, Ctrl-C."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from engines import building
from engines.building import Progress
from engines.building.messages import PhaseBegun, Stage, StepDone
from engines.contract import Availability
from engines.cuda import opening
from engines.tensorrt import probe as tensorrt
from realtime.assets import demo_photo, sample_source
from realtime.cli import _doppelcam, run
from realtime.commands.build_terminal import BuildTerminal
from tests import cards, helpernets
from tests.building.stand import REAL, small_model
from tests.facenets import latent_swapper

ROOT = Path(__file__).resolve().parents[2]
GIVE_UP_S = 120

Call = Callable[..., int]


@pytest.fixture(autouse=True)
def model(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    small_model(mine)


@pytest.fixture
def models() -> Call:
    return lambda *arguments: run(_doppelcam(), "doppelcam", ["models", *map(str, arguments)])


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "probe", lambda: Availability(False, "there is no NVIDIA driver", "install it"))


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "probe", lambda: Availability(True, "RTX 4090, compute 8.9"))
    monkeypatch.setattr(tensorrt, "probe", lambda: Availability(True, "TensorRT 11.4.0.106"))
    monkeypatch.setattr(building, "build", partial(building.build, command=REAL))


@pytest.mark.usefixtures("no_gpu")
def test_what_is_missing_and_how_to_get_it_is_one_screen(models: Call, capsys: pytest.CaptureFixture[str]) -> None:
    assert models("build", "inswapper_128") == 4
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) <= 24
    assert "NVIDIA GPU    missing  there is no NVIDIA driver" in told.err
    assert "NVIDIA GPU: install it\n" in told.err
    assert "the model: doppelcam models pull inswapper_128" in told.err
    assert "error: no plan of inswapper_128 can be built here, missing: NVIDIA GPU, " in told.err


@pytest.mark.usefixtures("gpu")
def test_a_plan_is_built_and_told_and_marked_in_the_list(
    models: Call, mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert models("build", "one") == 0
    told = capsys.readouterr()
    assert told.out.startswith(f"one: {mine}/plans/one.1x3x8x8.fp16.plan (built)\n")
    words = " ".join(told.out.split())
    assert "precision fp16, 0 of 1 nodes in single precision" in words
    assert "by TensorRT 11.4.0.106 on RTX 4090" in words
    assert "one: 0%, checking the model\n" in told.err
    assert "TensorRT: half of it is slow\n" in told.err
    assert models("build", "one") == 0
    assert "(was already here; --force builds it anew)" in capsys.readouterr().out
    assert models("list") == 0
    told = capsys.readouterr()
    assert [line for line in told.out.splitlines() if "yours +plan" in line]
    assert "+plan: a TensorRT plan has been built" in told.out
    assert all(len(line) <= 80 for line in told.out.splitlines())
    assert models("list", "--json") == 0
    plans = {row["name"]: row["plans"] for row in json.loads(capsys.readouterr().out)["models"]}
    assert plans["one"] == [f"{mine}/plans/one.1x3x8x8.fp16.plan"]
    assert plans["face_landmark"] == []


@pytest.mark.usefixtures("gpu")
def test_a_plan_that_does_not_fit_any_more_is_built_anew_and_the_reason_told(
    models: Call, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert models("build", "one") == 0
    monkeypatch.setenv("FAKE_TENSORRT_VERSION", "10.16.1.11")
    capsys.readouterr()
    assert models("build", "one") == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "built anew the plan of one was built by TensorRT 11.4.0.106, this is 10.16.1.11" in words


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["one", "--precision", "int4"], 2, "int4 is not fp16, fp32, int8"),
        (["one", "--precision", "int8"], 4, "int8 needs a folder of samples"),
        (["one", "--boost", "2"], 4, "one cannot work at 2 times its own size"),
        (["one", "--size", "640"], 2, "640 is no size like 640x384"),
        (["one", "--size", "0x10"], 2, "0x10 is no size like 640x384"),
        (["one", "--size", "640x384"], 4, "one takes pictures of one size, which --size cannot change"),
        (["scrfd_2.5g", "--size", "64x64"], 4, "scrfd_2.5g takes pictures of 192x192 to 640x640, not of 64x64"),
        (["scrfd_2.5g", "--size", "100000x100000"], 4, "not of 100000x100000"),
        (["one", "--time-limit", "inf"], 2, "Invalid value for '--time-limit'"),
        (["one", "--workspace", "99999999999999999999"], 2, "Invalid value for '--workspace'"),
        (["two"], 4, "no model card 'two'"),
    ],
)
def test_what_cannot_be_built_is_refused_before_anything_begins(
    models: Call, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, words: str
) -> None:
    assert models("build", *arguments) == code
    assert words in " ".join(capsys.readouterr().err.split())


@pytest.mark.usefixtures("gpu")
def test_a_crash_of_tensorrt_is_two_lines(
    models: Call, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_TENSORRT", "crashes")
    assert models("build", "one") == 4
    last = capsys.readouterr().err.splitlines()[-2:]
    assert last[0].startswith("error: the process that builds the plan of one was ended by SIGSEGV")
    assert last[1].startswith("try: ")


@pytest.mark.usefixtures("gpu")
def test_whole_numbers_of_a_swapper_are_found_out_on_photos_of_faces(
    models: Call, mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cards.put(mine, helpernets.arcface())
    name = cards.put(mine, latent_swapper(side=64))
    photos = tmp_path / "photos"
    photos.mkdir()
    for number, photo in enumerate((demo_photo(), sample_source())):
        shutil.copy(photo, photos / f"{number}.jpg")
    assert models("build", name, "--precision", "int8", "--calibrate", photos) == 4
    told = capsys.readouterr().err
    assert f"{name}: noted what it is given for 2 faces\n" in told
    assert "error: 2 samples are too few to find out what whole numbers must cover" in told


INTERRUPTED = """
import signal
from functools import partial
from engines import building
from engines.cuda import opening
from engines.tensorrt import probe as tensorrt
from engines.contract import Availability
from realtime.cli import main
from tests import cards, helpernets
from tests.building.stand import REAL
signal.signal(signal.SIGINT, signal.default_int_handler)  # what starts in the background is deaf to Ctrl-C
opening.probe = tensorrt.probe = lambda: Availability(True, "here")
building.build = partial(building.build, command=REAL)
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal there")
def test_ctrl_c_ends_it_and_says_so(mine: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ['PYTHONPATH']}",
        "FAKE_TENSORRT": "hangs",
    }
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, "models", "build", "one"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr
    assert any(line.startswith("one: ") and "building" in line for line in process.stderr)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process
    try:
        _, said = process.communicate(timeout=GIVE_UP_S)
    finally:
        process.kill()
    assert process.returncode == 130
    assert said.splitlines()[-1].startswith("stopped; nothing half is left.")
    assert "Traceback" not in said
    assert [path.name for path in (mine / "plans").iterdir() if not path.name.startswith(".")] == []


def test_phases_stand_under_the_bar_and_nothing_is_wider_than_the_terminal() -> None:
    console = Console(width=60, force_terminal=True, color_system=None)
    terminal, now = BuildTerminal("inswapper_128", console), Progress()
    long = "Timing graph nodes, under a name that does not fit onto the line"
    for message in (
        Stage("building"),
        PhaseBegun("Building Engine", "", 3),
        PhaseBegun(long, "Building Engine", 125),
        StepDone(long, 40),
    ):
        now = now.after(message)
        terminal.moved(now)
    with console.capture() as capture:
        console.print(terminal.shown())
    lines = capture.get().splitlines()
    assert lines[0].startswith("inswapper_128 building ")
    assert lines[1].strip() == "0/3  Building Engine"
    assert lines[2].strip().startswith("41/125  Timing graph nodes")
    assert all(len(line) <= 60 for line in lines)
