"""Whoever is hostile gets an answer and a line in the log, while the picture goes on as before. Slow tier."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

pytest.importorskip("aiortc", reason="aiortc is not installed: pip install -e '.[webrtc]'")

from tests.conftest import ROOT
from tests.web.attacker import ADDRESSES, SECONDS
from tests.web.served import Program

pytestmark = pytest.mark.slow

LEAST_RATE = 0.95
"""Share of the pictures that still come."""
MOST_GROWTH_MB = 30


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    options = ["--host", "0.0.0.0", "--set", "web.tls=off", "--input", "demo", "--output", "null"]
    with Program(tmp_path_factory.mktemp("home"), *options) as running:
        running.take_token()
        time.sleep(5)
        yield running


def rate(program: Program, seconds: float) -> float:
    """Pictures per second from now on."""
    before, begun_s = program.metrics()["doppelcam_frames_total"], time.monotonic()
    time.sleep(seconds)
    return (program.metrics()["doppelcam_frames_total"] - before) / (time.monotonic() - begun_s)


@pytest.mark.parametrize("what", ADDRESSES)
def test_the_picture_goes_on_and_nothing_is_left(program: Program, what: str) -> None:
    before, calm = program.holdings(), rate(program, SECONDS)
    said = len(program.said())
    command = [sys.executable, "-m", "tests.web.attacker", str(program.port), program.token, what]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as attacker:
        time.sleep(1)
        attacked = rate(program, SECONDS - 2)
        answers, _ = attacker.communicate(timeout=60)
    assert "500" not in answers
    print(what, f"calm {calm:.1f}/s, attacked {attacked:.1f}/s", answers)
    assert program.code is None
    assert attacked >= LEAST_RATE * calm
    time.sleep(20)  # offers that never connect are let go after 15 s
    after = program.holdings()
    print({name: after[name] - before[name] for name in after})
    assert after["handles"] <= before["handles"] + 3
    assert after["threads"] <= before["threads"] + 3
    assert after["rss_mb"] <= before["rss_mb"] + MOST_GROWTH_MB
    assert what == "connections" or ADDRESSES[what] in program.said()[said:]
