"""A real browser for the tests: Debian's Chromium through Playwright, with a file as its camera; knows no server."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.web.lossy import Relay

SCRIPT = Path(__file__).with_name("bench_page.js")
FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-fake-ui-for-media-stream",
    "--autoplay-policy=no-user-gesture-required",
    "--disable-features=WebRtcHideLocalIpsWithMdns",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
)
PAGE = """<!doctype html><title>bench</title><style>body{margin:0}video{width:640px;height:360px}</style>
<video autoplay muted playsinline></video>"""


def executable() -> str | None:
    """Path of Chromium or Chrome, ``None`` where there is none."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


def missing() -> str:
    """Why no browser can be had, empty where one can."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed"
    return "" if executable() else "Chromium is not installed"


@contextmanager
def open_browser(camera: Path | None = None) -> Iterator[Browser]:
    """Start Chromium without a window.

    Args:
        camera: a .y4m file that every page gets as its camera; ``None``: Chromium's own test picture.
    """
    from playwright.sync_api import sync_playwright

    flags = [*FLAGS, "--use-fake-device-for-media-stream"]
    if camera:
        flags.append(f"--use-file-for-fake-video-capture={camera}")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        flags.append("--no-sandbox")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=executable(), args=flags)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Seen:
    """What a page saw in a while.

    Attributes:
        sent: of each picture of the camera: when it came (s since 1970, the clock of Python), its number.
        shown: the same for the pictures that the page showed.
        decoded: the same before the compositor, where that was asked for.
        unreadable: pictures without a number.
        first_ms: from the click to the first picture; 0 while none has come.
    """

    sent: list[tuple[float, int]] = field(default_factory=list)
    shown: list[tuple[float, int]] = field(default_factory=list)
    decoded: list[tuple[float, int]] = field(default_factory=list)
    unreadable: int = 0
    first_ms: float = 0.0

    def round_trips_ms(self) -> list[float]:
        """From the camera to the screen, for each picture that came back; numbers come again with every loop."""
        delays: list[float] = []
        for shown_s, number in self.shown:
            sent = [sent_s for sent_s, other in self.sent if other == number and sent_s <= shown_s]
            if sent:
                delays.append((shown_s - sent[-1]) * 1e3)
        return delays

    def one_way_ms(self) -> list[float]:
        """From the server to the screen, where the number is the server's clock in microseconds."""
        return [shown_s * 1e6 % 2**40 / 1e3 - number / 1e3 for shown_s, number in self.shown]

    def longest_gap_s(self) -> float:
        """The longest time without a new picture."""
        new = [
            shown_s
            for (shown_s, number), (_, before) in zip(self.shown[1:], self.shown, strict=False)
            if number != before
        ]
        return max((after - before for after, before in zip(new[1:], new, strict=False)), default=float("inf"))


class Tab:
    """One page of the browser, on the server's own origin.

    Attributes:
        page: Playwright's.
    """

    def __init__(self, browser: Browser, url: str) -> None:
        self.url = url.rstrip("/")
        self.page: Page = browser.new_page(viewport={"width": 1280, "height": 720}, ignore_https_errors=True)
        self.page.add_init_script(path=SCRIPT)
        self._offset_s = 0.0

    def open_plain(self) -> None:
        """A page with a video and nothing else: what any web page would do."""
        address = f"{self.url}/bench.html"
        self.page.route(address, lambda route: route.fulfill(body=PAGE, content_type="text/html"))
        self.page.goto(address)
        self.set_clock()

    def open_own(self, path: str = "/") -> None:
        """The program's own page."""
        self.page.goto(self.url + path)
        self.set_clock()

    def set_clock(self) -> None:
        """Find out how far the page's clock is ahead of Python's; good to a millisecond."""
        best_s = float("inf")
        for _ in range(20):
            before_s = time.time()
            theirs_s = self.page.evaluate("bench.now()") / 1e3
            after_s = time.time()
            if after_s - before_s < best_s:
                best_s, self._offset_s = after_s - before_s, theirs_s - (before_s + after_s) / 2

    def connect(self, path: str, **wish: Any) -> str:
        """Connect a plain page; see ``bench.connect`` in the script.

        Returns:
            Where the server says the session lies.
        """
        return str(self.page.evaluate("wish => bench.connect(wish)", {"path": path, **wish}))

    def pass_through(self, relay: Relay) -> dict[str, str]:
        """Let the descriptions of the next connection be rewritten by a relay.

        Returns:
            What ``connect`` needs to be told.
        """
        self.page.expose_function("relayOffer", relay.offer)
        self.page.expose_function("relayAnswer", relay.answer)
        return {"before": "relayOffer", "after": "relayAnswer"}

    def wait_for_picture(self, timeout_s: float = 15.0) -> None:
        """Until the first one is shown."""
        self.page.wait_for_function("bench.marks.first", timeout=timeout_s * 1e3)

    def take(self) -> Seen:
        """What was seen since the last time."""
        taken: Mapping[str, Any] = self.page.evaluate("bench.take()")
        marks = taken["marks"]
        return Seen(
            self._moments(taken["sent"]),
            self._moments(taken["shown"]),
            self._moments(taken["decoded"]),
            taken["unreadable"],
            marks["first"] - marks["click"] if "first" in marks and "click" in marks else 0.0,
        )

    def watch(self, seconds: float) -> Seen:
        """What is seen from now on for so long. Pictures that were sent just before are among ``sent``."""
        before = self.take()
        self.page.wait_for_timeout(seconds * 1e3)
        seen = self.take()
        seen.sent = before.sent + seen.sent
        return seen

    def stats(self) -> dict[str, dict[str, Any]]:
        """What the browser measured: "inbound", "outbound" and "pair" of its last connection, sums since its begin."""
        found: dict[str, dict[str, Any]] = self.page.evaluate("bench.stats()")
        return found

    def _moments(self, listed: Sequence[Sequence[float]]) -> list[tuple[float, int]]:
        return [(t_ms / 1e3 - self._offset_s, int(number)) for t_ms, number in listed]
