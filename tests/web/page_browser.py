"""A real browser for the tests of the control page; skips with a reason where there is none."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.web.page_server import StandIn

PATIENCE_MS = 10000
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--autoplay-policy=no-user-gesture-required",
    "--disable-features=WebRtcHideLocalIpsWithMdns",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--use-fake-device-for-media-stream",
    "--host-resolver-rules=MAP studio.example 127.0.0.1",
)
"""Chromium is quiet and has a camera that draws; ``studio.example`` is this machine, by a name that is not secure."""
DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """The browser of this system."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    pytest.importorskip("aiortc", reason="aiortc is not installed: pip install -e '.[webrtc]'")
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("there is no Chromium on this system")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@contextlib.contextmanager
def opened(browser: Browser, url: str = "", **how: Any) -> Iterator[Page]:
    """A page in a context of its own, with a camera if ``camera`` is not false; the rest is of ``new_context``."""
    camera = how.pop("camera", True)
    context = browser.new_context(**{"viewport": DESKTOP, "reduced_motion": "no-preference", **how})
    context.set_default_timeout(PATIENCE_MS)
    if camera:
        context.grant_permissions(["camera"])
    page = context.new_page()
    if url:
        page.goto(url)
        page.wait_for_selector("#status-text:not(:text('Connecting'))")
    yield page
    context.close()


def until(true: Callable[[], object], page: Page) -> None:
    """Wait until something is true, while the page goes on.

    Raises:
        AssertionError: it did not become true in time.
    """
    end_s = time.monotonic() + PATIENCE_MS / 1000
    while not true():
        assert time.monotonic() < end_s, "it did not happen"
        page.wait_for_timeout(30)


def order_after(page: Page, stand_in: StandIn, act: Callable[[], object]) -> dict[str, Any]:
    """The last order that something on the page caused."""
    before = len(stand_in.orders)
    act()
    until(lambda: len(stand_in.orders) > before, page)
    return stand_in.orders[-1]
