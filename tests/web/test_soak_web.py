"""Peers that come and go every ten seconds: nothing of them is left. Slow tier, three minutes of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("aiortc", reason="aiortc is not installed: pip install -e '.[webrtc]'")

from tests.web.served import Program
from tests.web.viewer import SETTLE_S, Viewing

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.slow

ROUNDS = 12
WARM_ROUNDS = 4
"""Until then caches and pools fill: the first viewer starts the encoder, the decoders of the first senders ..."""
STAY_S = 10.0
MOST_GROWTH_MB = 10


def test_joining_and_leaving_leaves_nothing(tmp_path: Path) -> None:
    with Program(tmp_path, "--input", "demo") as program:
        early: Mapping[str, float] = {}
        for number in range(ROUNDS):
            looked = Viewing(f"{program.url}/whep", STAY_S - SETTLE_S, count=2).finish()
            assert looked.first_ms, f"nothing came in round {number}"
            time.sleep(1)
            if number == WARM_ROUNDS:
                early = program.holdings()
        late = program.holdings()
        assert program.metrics()["doppelcam_frames_total"] > 0
    print({name: late[name] - early[name] for name in late}, late)
    assert late["rss_mb"] - early["rss_mb"] < MOST_GROWTH_MB
    assert late["threads"] <= early["threads"]
    assert late["handles"] <= early["handles"]
