"""A recording in a process that dies: killed at any moment, or stopped by the kernel for writing too much."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest

from tests.clips import number_of

ROOT = Path(__file__).resolve().parents[2]

RECORDER = """
import json, resource, sys, time
from realtime.errors import SinkError
from realtime.sinks import SinkWish
from realtime.sinks.recording import Recording
from realtime.types import Frame
from tests.clips import SMALL, numbered

path, pictures, limit, pause_s = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sink = Recording(path, SinkWish(SMALL, fps=30))
try:
    for i in range(pictures):
        sink.write(Frame(i, i / 30, numbered(i)))
        print(i, flush=True)
        time.sleep(pause_s)
    sink.close()
except SinkError as error:
    print(json.dumps([error.message, error.hint]), flush=True)
    sink.close()
"""


def recorder(path: Path, pictures: int, *, limit: int = 0, pause_s: float = 0.0) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", RECORDER, str(path), str(pictures), str(limit), str(pause_s)]
    return subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def numbers(path: Path) -> list[int]:
    with av.open(str(path)) as found:
        return [number_of(picture.to_ndarray(format="bgr24").astype(np.uint8)) for picture in found.decode(video=0)]


@pytest.mark.parametrize("suffix", [".mp4", ".mov", ".mkv"])
@pytest.mark.parametrize("after", [60, 97])
def test_a_killed_recording_plays_up_to_its_last_half_second(tmp_path: Path, suffix: str, after: int) -> None:
    path = tmp_path / f"out{suffix}"
    with recorder(path, 100_000, pause_s=0.002) as process:
        assert process.stdout is not None
        written = next(int(line) for line in process.stdout if int(line) >= after)
        process.send_signal(signal.SIGKILL)
        written = max([written, *(int(line) for line in process.stdout.read().split())])
    assert process.returncode == -signal.SIGKILL
    found = numbers(path)
    assert found == list(range(len(found)))
    assert len(found) > written - 25  # a quarter of a second in the fragment, and what the encoder looks ahead


@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
def test_a_limit_of_the_system_stops_the_recording_but_not_its_use(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    with recorder(path, 100_000, limit=20_000) as process:
        output, _ = process.communicate(timeout=120)
    message, hint = json.loads(output.splitlines()[-1])
    assert "File too large" in message
    assert "can be played" in hint
    assert process.returncode == 0
    found = numbers(path)
    assert len(found) > 100
    assert found == list(range(len(found)))
    assert path.stat().st_size <= 20_000
