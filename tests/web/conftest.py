"""What the tests of the web room share: a camera, a browser, a WHIP client; each skips with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.web.whip_client import Film


@pytest.fixture(scope="session")
def camera(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The drawn person of the demo, numbered, as a file that Chromium has for a camera."""
    from tests.web.camera_file import write_camera

    return write_camera(tmp_path_factory.mktemp("camera") / "camera.y4m", None)


@pytest.fixture(scope="module")  # Playwright keeps an asyncio loop running in its thread for as long as it is open
def real_browser(camera: Path) -> Iterator[Browser]:
    """Chromium with that camera."""
    from tests.web.chromium import missing, open_browser

    if why := missing():
        pytest.skip(why)
    with open_browser(camera) as browser:
        yield browser


@pytest.fixture(scope="session")
def obs(camera: Path, tmp_path_factory: pytest.TempPathFactory) -> Film:
    """An OBS-like client and something to send."""
    from tests.web.whip_client import Film, install, write_film

    folder = tmp_path_factory.mktemp("whip")
    if why := install(folder):
        pytest.skip(why)
    return Film(folder, write_film(folder / "film.bin", camera))
