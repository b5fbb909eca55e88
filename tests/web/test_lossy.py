"""A real browser behind a network that loses and reorders packets, both ways: the picture goes on. Slow tier."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("aiortc", reason="aiortc is not installed: pip install -e '.[webrtc]'")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from tests.web.chromium import Tab
from tests.web.lossy import Relay
from tests.web.served import Program

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.lossy, pytest.mark.slow]

WATCHED_S = 20
LONGEST_FREEZE_S = 1.0


@pytest.mark.parametrize("loss", [0.02, 0.05])
def test_no_freeze_is_longer_than_a_second(real_browser: Browser, tmp_path: Path, loss: float) -> None:
    with Program(tmp_path) as program, Relay() as relay:
        tab = Tab(real_browser, program.url)
        tab.open_plain()
        tab.connect("/session", send=True, codec="h264", hurry=True, **tab.pass_through(relay))
        tab.wait_for_picture()
        tab.watch(5)
        relay.weather.turn_bad(loss)
        seen = tab.watch(WATCHED_S)
        lost = relay.weather.lost
        relay.weather.clear_up()
        tab.watch(2)
        after = tab.watch(3)
        tab.page.close()
    assert lost > 20
    assert seen.longest_gap_s() < LONGEST_FREEZE_S
    assert len(after.shown) > 30
    assert after.longest_gap_s() < LONGEST_FREEZE_S
