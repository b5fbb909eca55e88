"""A model folder of the test's own, where TensorRT is stood in for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.building.stand import FAKES


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    monkeypatch.setenv("DOPPELCAM_MODELS", str(folder))
    monkeypatch.delenv("DOPPELCAM_OFFLINE", raising=False)
    paths = [str(FAKES), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    for name in ("FAKE_TENSORRT", "FAKE_TENSORRT_VERSION", "FAKE_GPU"):
        monkeypatch.delenv(name, raising=False)
    return folder
