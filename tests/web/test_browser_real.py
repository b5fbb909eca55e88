"""A real browser and the real program: its camera goes up, and its picture comes back with another face."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np
import pytest

pytest.importorskip("aiortc", reason="aiortc is not installed: pip install -e '.[webrtc]'")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from realtime.types import U8
from tests.web import stamp
from tests.web.camera_file import pictures
from tests.web.chromium import Tab
from tests.web.served import Program

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

FACE = (slice(190, 420), slice(520, 760))
"""Rows and columns in which the demo's face is, whatever it does."""
ROOM = (slice(0, 300), slice(0, 300))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with Program(tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture
def new_tab(real_browser: Browser, program: Program) -> Iterator[Callable[[], Tab]]:
    tabs: list[Tab] = []

    def make() -> Tab:
        tabs.append(Tab(real_browser, program.url))
        tabs[-1].open_plain()
        return tabs[-1]

    yield make
    for tab in tabs:
        tab.page.evaluate("bench.peers.forEach((peer) => peer.close())")  # a page that dies is missed after 30 s only
        tab.page.close()


def until(true: Callable[[], object], what: str, patience_s: float = 10.0) -> None:
    end_s = time.monotonic() + patience_s
    while not true():
        assert time.monotonic() < end_s, what
        time.sleep(0.1)


def picture_of(tab: Tab) -> U8:
    """What the page shows now, (720, 1280, 3) BGR."""
    data = tab.page.evaluate(
        """() => {
            const [video, canvas] = [document.querySelector("video"), document.createElement("canvas")];
            [canvas.width, canvas.height] = [video.videoWidth, video.videoHeight];
            canvas.getContext("2d").drawImage(video, 0, 0);
            return canvas.toDataURL("image/png").split(",")[1];
        }"""
    )
    pixels = cv2.imdecode(np.frombuffer(base64.b64decode(data), np.uint8), cv2.IMREAD_COLOR)
    assert pixels is not None
    return np.ascontiguousarray(cv2.resize(pixels, stamp.PICTURE), np.uint8)


def difference(one: U8, other: U8, where: tuple[slice, slice]) -> float:
    return float(cv2.absdiff(one[where], other[where]).mean())


def peers(program: Program) -> int:
    return round(sum(value for name, value in program.metrics().items() if name.startswith("doppelcam_peers")))


@pytest.mark.parametrize("codec", ["h264", "vp8"])
def test_the_camera_comes_back_with_another_face(
    new_tab: Callable[[], Tab], program: Program, codec: str, tmp_path: Path
) -> None:
    tab = new_tab()
    tab.connect("/session", send=True, codec=codec, hurry=True)
    tab.wait_for_picture()
    seen = tab.watch(4)
    assert len({number for _, number in seen.shown}) > 20
    assert seen.unreadable <= len(seen.shown) / 10
    assert seen.round_trips_ms()
    shown = picture_of(tab)
    cv2.imwrite(str(tmp_path / "shown.png"), shown)  # for people
    number = stamp.read(shown)
    assert number is not None
    sent = list(pictures(None))[number]
    assert difference(shown, sent, ROOM) < 4
    assert difference(shown, sent, FACE) > 8


def test_every_viewer_joins_at_once_and_sees_the_same(new_tab: Callable[[], Tab]) -> None:
    sender = new_tab()
    sender.connect("/session", send=True, codec="h264", hurry=True)
    sender.wait_for_picture()
    viewers = [new_tab() for _ in range(2)]
    for viewer, codec in zip(viewers, ("h264", "vp8"), strict=True):
        viewer.connect("/whep", codec=codec)
        viewer.wait_for_picture()
    for viewer in viewers:
        assert len(viewer.watch(2).shown) > 10
        assert difference(picture_of(viewer), picture_of(sender), ROOM) < 6


def test_a_page_that_is_loaded_again_takes_the_place_of_its_old_self(
    new_tab: Callable[[], Tab], program: Program
) -> None:
    before = new_tab()
    before.connect("/session", send=True, codec="h264")
    before.wait_for_picture()
    after = new_tab()
    after.connect("/session", send=True, codec="h264")
    after.wait_for_picture()
    before.page.wait_for_function("bench.peers.at(-1).connectionState !== 'connected'", timeout=10_000)
    assert len(after.watch(1).shown) > 5


def test_deleting_a_session_ends_it_and_nothing_is_left(new_tab: Callable[[], Tab], program: Program) -> None:
    until(lambda: peers(program) == 0, "those of the other tests have left")
    tab = new_tab()
    place = tab.connect("/session", send=True, codec="h264")
    tab.wait_for_picture()
    assert peers(program) == 1
    assert tab.page.evaluate("async place => (await fetch(place, { method: 'DELETE' })).status", place) == 200
    until(lambda: peers(program) == 0, "the peer is gone")
    assert tab.page.evaluate("async place => (await fetch(place, { method: 'DELETE' })).status", place) == 404
