"""A folder for the plans of each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from engines.folders import ENVIRONMENT


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder, empty."""
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "models"))
    return tmp_path / "models"
