"""Fixtures that every tier shares; knows where the real test material may lie, never what is in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A property is about values, never about how busy the machine is.
settings.register_profile("doppelcam", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("doppelcam")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder with real clips, photos and weights beside the project; skips where a checkout has none."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real clips and photos (../shared/data) are not part of a plain checkout")
    return folder
