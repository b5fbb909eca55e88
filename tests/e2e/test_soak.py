"""Three minutes of the real program, watched from outside: nothing may grow. Slow tier: ``pytest -m slow``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.conftest import ROOT

SOAK_S = 180
WARM_S = 40
"""Until then caches fill: kernels, mip levels, the first search everywhere."""
MOST_GROWTH_MB = 10


@pytest.mark.slow
def test_memory_threads_and_handles_stay_flat(tmp_path: Path) -> None:
    stats = tmp_path / "stats.json"
    command = [sys.executable, str(ROOT / "run_live.py"), "--input", "demo", "--output", "null", "--stats", str(stats)]
    command += ["--duration", str(SOAK_S), "--set", "input.pace=live"]
    home = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    with subprocess.Popen(command, cwd=ROOT, env=home, stdin=subprocess.DEVNULL) as run:
        program = psutil.Process(run.pid)
        time.sleep(WARM_S)
        early = _holdings(program)
        time.sleep(SOAK_S - WARM_S - 10)
        late = _holdings(program)
        assert run.wait(60) == 0
    assert late["rss_mb"] - early["rss_mb"] < MOST_GROWTH_MB
    assert late["threads"] <= early["threads"]
    assert late["handles"] <= early["handles"]
    figures = json.loads(stats.read_text())
    assert figures["frames"] > 0
    assert not [name for name in figures["counters"] if name.startswith("failed")]


def _holdings(program: psutil.Process) -> dict[str, float]:
    rss_mb = min(_rss_mb(program) for _ in range(5))  # the least of a second: a picture more or less is no growth
    return {"rss_mb": rss_mb, "threads": program.num_threads(), "handles": program.num_fds()}


def _rss_mb(program: psutil.Process) -> float:
    time.sleep(0.2)
    return float(program.memory_info().rss) / 2**20
