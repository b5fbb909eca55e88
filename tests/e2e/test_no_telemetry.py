"""No library that the program loads notes or sends anything about its user."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT


def test_loading_every_runtime_leaves_nothing_behind_in_an_empty_home(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    code = "from engines import registry; print(*(registry.probe('runtime', name).ok for name in registry.RUNTIMES))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert "True" in done.stdout
    assert [str(path) for path in tmp_path.rglob("*") if path.is_file()] == []
