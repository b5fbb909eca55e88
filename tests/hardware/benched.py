"""The program's own bench, in a process of its own, as lines of the table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from realtime.assets import sample_source
from tests.conftest import ROOT
from tests.hardware.table import Table

MOST_S = 60
FRAMES = 240


def bench(table: Table, folder: Path, what: str, *settings: str, frames: int = FRAMES) -> None:
    """Measure 1280x720 with a photo's face.

    Args:
        table: gets the lines.
        folder: for the figures.
        what: is measured, for people.
        settings: as after ``--set``.
        frames: in each of the three runs.
    """
    out = folder / "bench.json"
    command = [sys.executable, "-c", "from realtime.cli import main; main()", "bench", "--input", "demo",
               "--size", "1280x720", "--frames", str(frames), "--source", str(sample_source()), "--json", str(out),
               *(part for setting in settings for part in ("--set", setting))]  # fmt: skip
    done = subprocess.run(
        command, check=False, cwd=ROOT, timeout=MOST_S, capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr[-2000:]
    figures: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    out.unlink()
    compute = figures["compute_ms"]
    latency = ", ".join(f"{row['p50']:.1f} / {row['p95']:.1f} at {rate}" for rate, row in figures["latency_ms"].items())
    table.tell(f"{what}: {figures['engine']} on", figures["device"])
    table.tell("  compute p50 / p95", f"{compute['p50']:.2f} / {compute['p95']:.2f} ms, {figures['fps_free']:.0f} fps")
    table.tell("  capture to output p50 / p95", f"{latency} fps, in ms")
