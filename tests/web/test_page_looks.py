"""The control page for eyes, fingers and screen readers: contrast, names, sizes, and nothing that jumps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from realtime.desk.messages import FaceBox, Note
from tests.web.page_browser import DESKTOP, PHONE, chromium, opened

pytest.importorskip("fastapi", reason="fastapi is not installed: pip install -e '.[webrtc]'")
pytest.importorskip("aiortc", reason="aiortc is not installed: pip install -e '.[webrtc]'")

from tests.web.page_server import PageServer, StandIn

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    # A stand-in that is stopped in the middle of a handshake drops it; the real server's end has tests of its own.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SMALL: ViewportSize = {"width": 320, "height": 640}
BETWEEN: ViewportSize = {"width": 1024, "height": 768}
SIDEWAYS: ViewportSize = {"width": 844, "height": 390}

FAINT = """() => {
  const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const parse = (colour) => {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = ([r, g, b, a], under) => [r, g, b].map((value, at) => value * a + under[at] * (1 - a));
  const ground = (node) => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour[3] > 0) layers.push(colour);
      if (colour[3] > 0.99) break;
    }
    return layers.reverse().reduce((under, layer) => over(layer, under), [0, 0, 0]);
  };
  const light = (colour) => colour
    .map((value) => value / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
  const faint = [];
  for (const node of document.querySelectorAll("body *")) {
    const words = [...node.childNodes].filter((one) => one.nodeType === 3).map((one) => one.data.trim()).join("");
    if (!words || !node.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (node.closest(":disabled, [inert], svg, option, .away")) continue;
    const style = getComputedStyle(node);
    const under = ground(node);
    const [a, b] = [light(over(parse(style.color), under)), light(under)].sort((one, two) => two - one);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < (large ? 3 : 4.5)) faint.push(`${words}: ${ratio.toFixed(2)}`);
  }
  return faint;
}"""

NAMELESS = """() => [...document.querySelectorAll("button, input, select, textarea, canvas[role], video, dialog, a")]
  .filter((node) => {
    if (node.hidden) return false;
    const named = node.getAttribute("aria-label") || document.getElementById(node.getAttribute("aria-labelledby"));
    const labelled = node.labels?.length && node.labels[0].textContent.trim();
    return !named && !labelled && !node.textContent.trim();
  })
  .map((node) => node.outerHTML)"""

TINY = """() => [...document.querySelectorAll("button, select, input, summary")]
  .filter((node) => node.checkVisibility() && !node.closest(".away") && !node.matches(".away, .face"))
  .map((node) => [node.id || node.textContent, node.getBoundingClientRect()])
  .filter(([, box]) => box.width < 24 || box.height < 24)
  .map(([name, box]) => `${name} ${box.width}x${box.height}`)"""

CUT = """() => [...document.querySelectorAll("button, .top, .bar, .view")]
  .filter((node) => node.checkVisibility() && !node.closest(".faces") && node.scrollWidth > node.clientWidth + 1)
  .map((node) => `${node.id || node.className} ${node.scrollWidth} in ${node.clientWidth}`)"""

PLACES = """() => Object.fromEntries(["stage", "blank", "compare", "record", "mirror", "panel"].map((id) => {
  const { x, y, width, height } = document.getElementById(id).getBoundingClientRect();
  return [id, [x, y, width, id === "panel" ? 0 : height].map(Math.round)];
}))"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def stand_in() -> StandIn:
    return StandIn(input_="browser")


@pytest.fixture
def server(stand_in: StandIn) -> Iterator[PageServer]:
    running = PageServer(stand_in)
    running.start()
    yield running
    running.stop()


def states(page: Page, stand_in: StandIn, server: PageServer) -> Iterator[str]:
    """Lead the page through what it can look like."""
    yield "first run"
    page.click("#veil-go")
    page.wait_for_selector("#status-text:text('Live')")
    page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    other = FaceBox(track_id=2, left=0.7, top=0.3, right=0.85, bottom=0.7, swapped=False)
    stand_in.faces = (*stand_in.faces, other)
    stand_in.tell(Note(text="The camera is slow", hint="More light makes it faster.", warning=True))
    stand_in.tell(Note(text="Saved"))
    page.wait_for_selector(".face:nth-child(2)")
    page.wait_for_timeout(400)
    yield "running"
    stand_in.change(recording="video.mp4", picked=True)
    page.wait_for_selector("#unpick:visible")
    yield "recording"
    stand_in.change(blank=True)
    page.wait_for_selector('#veil[data-kind="blank"]')
    page.wait_for_timeout(300)
    yield "blank"
    server.stop()
    page.wait_for_selector('#veil[data-kind="lost"]')
    yield "lost"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_word_can_be_read(browser: Browser, server: PageServer, stand_in: StandIn, scheme: str) -> None:
    with opened(browser, server.url, color_scheme=scheme) as page:
        faint = {state: page.evaluate(FAINT) for state in states(page, stand_in, server)}
    assert not any(faint.values()), faint


def test_everything_that_can_be_used_has_a_name(browser: Browser, server: PageServer, stand_in: StandIn) -> None:
    with opened(browser, server.url) as page:
        for _ in states(page, stand_in, server):
            assert page.evaluate(NAMELESS) == []
        assert page.evaluate("document.documentElement.lang") == "en"
        ids = "[...document.querySelectorAll('[id]')].map((node) => node.id)"
        assert len(set(page.evaluate(ids))) == len(page.evaluate(ids))


@pytest.mark.parametrize("size", [DESKTOP, BETWEEN, PHONE, SMALL, SIDEWAYS], ids=lambda size: f"{size['width']}")
def test_the_page_fits_and_the_panic_button_is_in_reach(
    browser: Browser, server: PageServer, stand_in: StandIn, size: dict[str, int]
) -> None:
    with opened(browser, server.url, viewport=size, has_touch=True, is_mobile=size["width"] < 1000) as page:
        for state in states(page, stand_in, server):
            width = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert width[0] <= size["width"], state
            assert width[1] == size["width"], state
            assert page.evaluate(TINY) == [], state
            assert page.evaluate(CUT) == [], state
            assert uncovered(page, "#blank"), state
            if page.locator("#veil-go").is_visible():
                assert uncovered(page, "#veil-go"), state


def uncovered(page: Page, selector: str) -> bool:
    """Whether an element's middle lies in the window with nothing over it, and it is large enough for a thumb."""
    box: Any = page.locator(selector).bounding_box()
    hit: bool = page.evaluate(
        "([x, y, selector]) => document.elementFromPoint(x, y)?.closest(selector) !== null",
        [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, selector],
    )
    return hit and box["height"] >= 44 and box["width"] >= 44


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_nothing_jumps(browser: Browser, server: PageServer, stand_in: StandIn, size: ViewportSize) -> None:
    with opened(browser, server.url, viewport=size) as page:
        places = {state: page.evaluate(PLACES) for state in states(page, stand_in, server)}
    first = places["first run"]
    assert places == dict.fromkeys(places, first)


def test_whoever_wants_no_motion_gets_none(browser: Browser, server: PageServer, stand_in: StandIn) -> None:
    moving = "document.getAnimations().filter((one) => one.playState === 'running').length"
    with opened(browser, server.url, reduced_motion="reduce") as page:
        for state in states(page, stand_in, server):
            assert page.evaluate(moving) == 0, state


def test_a_picture_of_another_shape_is_shown_whole(browser: Browser, server: PageServer) -> None:
    with opened(browser, server.url) as page:
        page.click("#veil-go")
        page.wait_for_selector("#status-text:text('Live')")
        page.evaluate("document.getElementById('stage').style.setProperty('--aspect', '0.5625')")
        stage: Any = page.locator("#stage").bounding_box()
        picture: Any = page.locator("#picture").bounding_box()
        assert picture["height"] == pytest.approx(stage["height"], abs=1)
        assert picture["width"] == pytest.approx(stage["height"] * 0.5625, abs=1)
        assert picture["x"] + picture["width"] / 2 == pytest.approx(stage["x"] + stage["width"] / 2, abs=1)


def test_graphs_are_drawn_four_times_a_second_at_most(browser: Browser, server: PageServer, stand_in: StandIn) -> None:
    with opened(browser) as page:
        page.add_init_script(
            """window.cleared = 0;
            const clear = CanvasRenderingContext2D.prototype.clearRect;
            CanvasRenderingContext2D.prototype.clearRect = function (...box) {
              if (this.canvas.id === "graph-fps") window.cleared += 1;
              return clear.apply(this, box);
            };"""
        )
        page.goto(server.url)
        page.wait_for_selector("#legend li")
        before = page.evaluate("window.cleared")
        for _ in range(100):
            stand_in.tell(stand_in.figures())
            page.wait_for_timeout(20)
        assert 1 <= page.evaluate("window.cleared") - before <= 12


def test_a_desktop_never_scrolls_the_picture_away(browser: Browser, server: PageServer) -> None:
    with opened(browser, server.url) as page:
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        page.evaluate("document.getElementById('save').scrollIntoView()")
        assert page.evaluate("[scrollY, document.body.scrollTop, document.body.scrollHeight]") == [0, 0, 900]
        assert uncovered(page, "#save")
