"""The process that builds is never the program's trouble: it is stopped, limited, cleaned up after and explained."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from engines.building import BuildSettings, Progress, StoppedError, build
from engines.card import ModelCard
from engines.errors import DeviceError, EngineError, ModelError
from tests.building.stand import saying, small_model

ROOT = Path(__file__).resolve().parents[2]
GIVE_UP_S = 60.0
FOREVER = "while True: time.sleep(0.05)"


@pytest.fixture
def card(mine: Path) -> ModelCard:
    return small_model(mine)


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE  # nobody may be there to bury an orphan
    except psutil.NoSuchProcess:
        return False


def left_half(mine: Path) -> str:
    half = mine / "half.plan.part"
    half.write_bytes(b"half")
    return f"tell(kind='unfinished', path={str(half)!r})"


def test_whoever_asks_may_stop_it_and_nothing_is_left(mine: Path, card: ModelCard) -> None:
    note, seen = mine / "pid", list[Progress]()
    process = saying(
        f"open({str(note)!r}, 'w').write(str(os.getpid()))",
        left_half(mine),
        "tell(kind='stage', name='building')",
        FOREVER,
    )
    with pytest.raises(StoppedError, match="the build of one was stopped"):
        build(card, BuildSettings(), seen.append, lambda: bool(seen), command=process)
    assert not is_alive(int(note.read_text()))
    assert not list(mine.glob("*.part"))


def test_a_process_that_is_silent_is_stopped_too(mine: Path, card: ModelCard) -> None:
    asked = iter([False, False, True])
    with pytest.raises(StoppedError):
        build(card, BuildSettings(), cancelled=lambda: next(asked), command=saying(FOREVER))


def test_ctrl_c_ends_it(mine: Path, card: ModelCard) -> None:
    def interrupt(_: Progress) -> None:
        raise KeyboardInterrupt

    note = mine / "pid"
    process = saying(
        f"open({str(note)!r}, 'w').write(str(os.getpid()))", "tell(kind='stage', name='building')", FOREVER
    )
    with pytest.raises(KeyboardInterrupt):
        build(card, BuildSettings(), interrupt, command=process)
    assert not is_alive(int(note.read_text()))


def test_its_time_is_limited(mine: Path, card: ModelCard) -> None:
    process = saying(left_half(mine), "tell(kind='stage', name='building')", FOREVER)
    with pytest.raises(EngineError, match=r"not built within 0\.025 min: \d+% done, building") as told:
        build(card, BuildSettings(time_limit_s=1.5), command=process)
    assert "--time-limit" in told.value.hint
    assert not list(mine.glob("*.part"))


def test_its_crash_is_one_error(mine: Path, card: ModelCard) -> None:
    process = saying(
        left_half(mine),
        "tell(kind='stage', name='building')",
        "import faulthandler; faulthandler.enable()",
        'sys.stdout.write(\'{"kind": "sta\'); sys.stdout.flush()',
        "os.kill(os.getpid(), signal.SIGSEGV)",
    )
    with pytest.raises(EngineError) as told:
        build(card, BuildSettings(), command=process)
    assert told.value.message == (
        "the process that builds the plan of one was ended by SIGSEGV (Fatal Python error: Segmentation fault)"
        " while building"
    )
    assert not list(mine.glob("*.part"))


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("sys.exit('something was wrong')", r"ended with code 1 \(something was wrong\) while checking the model"),
        ("os._exit(7)", "ended with code 7 while"),
        ("raise ValueError('a bug')", r"ended with code 1 \(ValueError: a bug\)"),
    ],
)
def test_an_end_without_a_result_is_told_with_its_last_words(card: ModelCard, end: str, words: str) -> None:
    with pytest.raises(EngineError, match=words):
        build(card, BuildSettings(), command=saying(end))


def test_a_process_that_cannot_even_start_is_an_error(card: ModelCard) -> None:
    with pytest.raises(EngineError, match="does not start"):
        build(card, BuildSettings(), command=("/nowhere/python",))


@pytest.mark.parametrize(
    ("name", "kind"), [("ModelError", ModelError), ("DeviceError", DeviceError), ("Odd", EngineError)]
)
def test_its_errors_are_raised_as_what_they_are(card: ModelCard, name: str, kind: type[EngineError]) -> None:
    process = saying(f"tell(kind='failed', error={name!r}, message='no room', hint='make some')")
    with pytest.raises(kind, match="no room") as told:
        build(card, BuildSettings(), command=process)
    assert told.value.hint == "make some"


def test_whole_numbers_are_refused_without_samples(card: ModelCard, tmp_path: Path) -> None:
    for folder in (None, tmp_path / "none"):
        with pytest.raises(EngineError, match="int8 needs a folder of samples") as told:
            build(card, BuildSettings(precision="int8", calibration=folder), command=saying("tell()"))
        assert "--calibrate" in told.value.hint


ASK = """
import sys
from engines.building import BuildSettings, build
from engines.card import load_card
build(load_card("one"), BuildSettings(), lambda now: print(now.stage, flush=True), command=tuple(sys.argv[1:]))
"""


def test_it_ends_with_a_program_that_is_killed(mine: Path, card: ModelCard, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real process: it notices while TensorRT is at work."""
    monkeypatch.setenv("FAKE_TENSORRT", "hangs")
    note = mine / "pid"
    code = f"import os; open({str(note)!r}, 'w').write(str(os.getpid())); import tests.building.child as c; c.start()"
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ['PYTHONPATH']}"}
    command = [sys.executable, "-c", ASK, sys.executable, "-c", code]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as asker:
        assert asker.stdout
        assert "building" in (line.strip() for line in asker.stdout)
        asker.kill()
    deadline = time.monotonic() + GIVE_UP_S
    while is_alive(int(note.read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_who_only_asks_loads_nothing_heavy() -> None:
    code = "import sys, engines.building; print(*sorted(name.partition('.')[0] for name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=GIVE_UP_S
    )
    assert not {"onnx", "onnxruntime", "cv2", "numba", "tensorrt", "cupy", "cuda"} & set(done.stdout.split())
