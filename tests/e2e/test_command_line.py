"""The program as a person starts it: real processes, real files, real signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
LIVE = [sys.executable, str(ROOT / "run_live.py")]
DOPPELCAM = [sys.executable, "-c", "from realtime.cli import main; main()"]
GIVE_UP_S = 120
SAMPLE = str(ROOT / "realtime" / "assets" / "sample_source.jpg")

Start = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment whose settings, memory and models are the test's own."""
    own = {name: str(tmp_path) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "APPDATA", "LOCALAPPDATA")}
    return {**os.environ, **own, "PYTHONPATH": str(ROOT), "COLUMNS": "200", "PYTHONWARNINGS": "error"}


@pytest.fixture
def start(home: dict[str, str], tmp_path: Path) -> Start:
    def run(command: Sequence[str], *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *arguments],
            env=home,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=GIVE_UP_S,
            check=False,
        )

    return run


def frames_in(path: Path) -> int:
    with av.open(str(path)) as container:
        return sum(1 for _ in container.decode(video=0))


WRONG = {
    "unknown option": (["--inptu", "demo"], 2, "--inptu"),
    "second file without its option": (["--source", "a.png", "b.png"], 2, "b.png"),
    "option without a value": (["--source"], 2, "--source"),
    "number that is none": (["--fps", "many"], 2, "many"),
    "unknown setting": (["--set", "input.szie=640x480"], 2, "input.szie"),
    "value out of range": (["--size", "9x9"], 2, "9x9"),
    "unknown profile": (["--profile", "nope"], 2, "nope"),
    "missing photo": (["--source", "nope.png"], 2, "nope.png"),
    "photo that is no picture": (["--source", "text.png"], 2, "text.png"),
    "empty photo": (["--source", "empty.png"], 2, "empty.png"),
    "photo without a face": (["--source", "grey.png"], 2, "no face"),
    "missing input": (["--input", "nope.mkv"], 2, "nope.mkv"),
    "input that is no video": (["--input", "text.mkv"], 3, "text.mkv"),
    "output of an unknown kind": (["--output", "out.avi"], 2, "out.avi"),
    "output without a folder": (["--output", "nowhere/out.mp4"], 3, "nowhere"),
    "output that exists": (["--output", "there.mp4"], 3, "there.mp4"),
    "output that is the input": (["--input", "there.mp4", "--output", "there.mp4", "--overwrite"], 2, "there.mp4"),
    "virtual camera that is none": (["--output", "virtualcam:text.png"], 3, "text.png"),
    "model that nobody knows": (["--model", "nope"], 4, "nope"),
    "model that makes no faces": (["--model", "face_landmark"], 4, "makes no faces"),
    "model that is not here": (["--model", "uniface_256"], 4, "uniface_256"),
    "enhancer that nobody knows": (["--enhance", "nope"], 4, "nope"),
    "person without a photo": (["--only", "nope.png"], 2, "nope.png"),
    "person whose photo shows no face": (["--only", "grey.png"], 2, "grey.png shows no face"),
    "pair without its half": (["--map", "grey.png"], 2, "--map: faces.map"),
    "pair without a photo": (["--map", f"nope.png={SAMPLE}"], 2, "nope.png"),
    "person who was named twice": (["--only", "grey.png", "--map", "grey.png=grey.png"], 2, "grey.png is named twice"),
    "recogniser that is not here": (["--only", SAMPLE], 4, "w600k_r50"),
    "figures without a folder": (["--stats", "nowhere/stats.json"], 2, "nowhere"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_told_in_two_lines_with_its_exit_code(wrong: str, start: Start, tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("not a picture")
    (tmp_path / "text.mkv").write_text("not a film")
    (tmp_path / "there.mp4").write_text("precious")
    (tmp_path / "empty.png").touch()
    cv2.imwrite(str(tmp_path / "grey.png"), np.full((300, 300, 3), 127, np.uint8))
    options, exit_code, named = WRONG[wrong]
    defaults = {"--input": "demo", "--output": "null", "--duration": "1", "--size": "128x128"}
    for option, value in defaults.items():
        options = options if option in options else [option, value, *options]
    done = start(LIVE, *options)
    lines = [line for line in done.stderr.splitlines() if line]
    assert done.returncode == exit_code, done.stderr
    assert lines[-2].startswith("error: "), done.stderr
    assert named in lines[-2]
    assert lines[-1].startswith("try: ")
    assert len(lines[-1]) > len("try: ")
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert (tmp_path / "there.mp4").read_text() == "precious"


def test_a_damaged_model_is_told_with_exit_code_4(start: Start, home: dict[str, str], tmp_path: Path) -> None:
    home["DOPPELCAM_MODELS"] = str(tmp_path)
    (tmp_path / "face_landmark.tflite").write_bytes(b"half a model")
    done = start(LIVE, "--input", "demo", "--output", "null")
    assert done.returncode == 4
    assert "error: " in done.stderr
    assert "face_landmark.tflite" in done.stderr


def test_the_main_job_makes_a_film_of_the_length_asked_for_with_its_figures(start: Start, tmp_path: Path) -> None:
    options = [
        "--input",
        "demo",
        "--size",
        "320x240",
        "--output",
        "swapped.mp4",
        "--duration",
        "1",
        "--stats",
        "s.json",
    ]
    done = start(LIVE, *options)
    assert done.returncode == 0, done.stderr
    assert frames_in(tmp_path / "swapped.mp4") == 30
    figures = json.loads((tmp_path / "s.json").read_text())
    assert figures["frames"] == 30
    assert figures["drops"] == {}
    assert {"steps", "latency_ms", "machine", "quality_changes"} <= figures.keys()
    assert "litert" in done.stderr
    assert done.stdout == ""


@pytest.mark.skipif(os.name != "posix", reason="closes file numbers with a shell")
def test_a_start_without_any_input_or_output_still_records(start: Start, tmp_path: Path) -> None:
    closed = ["sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', *LIVE]
    done = start(closed, "--input", "demo", "--size", "320x240", "--output", "silent.mp4", "--duration", "1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert frames_in(tmp_path / "silent.mp4") == 30


def test_a_plain_start_repeats_the_last_run_and_says_so(start: Start) -> None:
    first = start(LIVE, "--input", "demo", "--size", "128x128", "--output", "one.mp4", "--duration", "0.2")
    assert "as last time" not in first.stderr
    again = start(LIVE, "--size", "128x128", "--output", "two.mp4", "--duration", "0.2")
    assert again.returncode == 0, again.stderr
    assert "as last time" in again.stderr
    assert "demo" in again.stderr


def test_a_bare_command_shows_the_help_and_no_empty_error(start: Start) -> None:
    done = start(DOPPELCAM)
    assert done.returncode == 2
    assert "Usage: doppelcam" in done.stdout + done.stderr
    assert "error:" not in done.stderr


def test_without_the_packages_the_start_says_how_to_get_them(start: Start) -> None:
    bare = start([sys.executable, "-S", str(ROOT / "run_live.py")])
    assert bare.returncode == 2
    assert bare.stderr.startswith("error: ")
    assert "try: " in bare.stderr
    assert "Traceback" not in bare.stderr


def test_saved_settings_come_back_with_their_profile(start: Start, tmp_path: Path) -> None:
    options = ["--input", "demo", "--size", "128x96", "--duration", "0.2"]
    assert start(LIVE, *options, "--output", "one.mp4", "--save", "mine").returncode == 0
    assert start(LIVE, "--profile", "mine", "--output", "two.mp4", "--duration", "0.2").returncode == 0
    with av.open(str(tmp_path / "two.mp4")) as container:
        assert (container.streams.video[0].width, container.streams.video[0].height) == (128, 96)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals to send to another process")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_end_a_run_well_and_keep_the_recording(
    number: signal.Signals, home: dict[str, str], tmp_path: Path
) -> None:
    options = ["--input", "demo", "--size", "320x240", "--output", "kept.mp4", "--output", "null"]
    process = subprocess.Popen(
        [*LIVE, *options], env=home, cwd=tmp_path, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    assert process.stderr is not None
    for line in process.stderr:  # the banner is the sign that everything is open
        if line.startswith("networks"):
            break
    while not (tmp_path / "kept.mp4").exists() or (tmp_path / "kept.mp4").stat().st_size < 20_000:
        assert process.poll() is None
        signal.sigtimedwait([], 0.05)
    process.send_signal(number)
    _, rest = process.communicate(timeout=GIVE_UP_S)
    assert process.returncode == 0, rest
    assert "Traceback" not in rest
    assert "pictures in" in rest
    assert frames_in(tmp_path / "kept.mp4") > 10


def test_help_of_every_command_answers_and_imports_nothing_heavy(start: Start) -> None:
    for command in ("", "live", "bench", "doctor", "cameras", "models", "warm"):
        done = start(DOPPELCAM, *command.split(), "--help")
        assert done.returncode == 0, done.stderr
        assert "Usage: doppelcam" in done.stdout
    code = "import realtime, engines, realtime.cli, sys; print([m for m in {modules} if m in sys.modules])"
    heavy = "('numpy', 'cv2', 'av', 'numba', 'onnxruntime', 'ai_edge_litert', 'pydantic', 'pyvirtualcam', 'mss')"
    done = start([sys.executable, "-c", code.format(modules=heavy)])
    assert done.stdout == "[]\n", done.stderr


def test_bench_writes_the_figures_it_promises(start: Start, tmp_path: Path) -> None:
    options = ["--input", "demo", "--size", "320x240", "--frames", "60", "--face-height", "100", "--json", "b.json"]
    done = start(DOPPELCAM, "bench", *options)
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "b.json").read_text())
    three = {"p50", "p95", "p99"}
    assert figures["compute_ms"].keys() == three
    assert figures["latency_ms"].keys() == {"30", "60"}
    assert all(row.keys() == three for row in [*figures["steps"].values(), *figures["latency_ms"].values()])
    assert {"fps_free", "drops", "peak_rss_mb", "engine", "device", "size", "machine"} <= figures.keys()
    assert figures["faces"] == 1
    assert {"mesh", "draw"} <= figures["steps"].keys()
    assert "pictures per second" in done.stdout


def test_doctor_finds_that_the_main_job_runs(start: Start) -> None:
    done = start(DOPPELCAM, "doctor", "--json")
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["can_run"]


def test_models_are_listed_located_and_verified(start: Start) -> None:
    assert "Apache-2.0" in start(DOPPELCAM, "models", "list").stdout
    assert start(DOPPELCAM, "models", "verify").stdout.count("ok") == 2
    unknown = start(DOPPELCAM, "models", "verify", "nope")
    assert unknown.returncode == 1
    assert unknown.stdout.startswith("bad nope")
    assert "models" in start(DOPPELCAM, "models", "where").stdout
