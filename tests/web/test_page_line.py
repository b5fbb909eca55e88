"""The control page and its line to the run: pictures, the camera and why it fails, lost connections, tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.web.page_browser import chromium, opened, order_after, until

pytest.importorskip("fastapi", reason="fastapi is not installed: pip install -e '.[webrtc]'")
pytest.importorskip("aiortc", reason="aiortc is not installed: pip install -e '.[webrtc]'")

from tests.web.page_server import PageServer, StandIn

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    # A stand-in that is stopped in the middle of a handshake drops it; the real server's end has tests of its own.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


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


def text(page: Page, selector: str) -> str:
    return page.locator(selector).text_content() or ""


def start_camera(page: Page) -> None:
    page.click("#veil-go")
    page.wait_for_selector("#veil", state="hidden")
    page.wait_for_selector("#status-text:text('Live')")


def pictures(page: Page) -> int:
    """How many the preview has shown."""
    count: int = page.evaluate("document.getElementById('preview').getVideoPlaybackQuality().totalVideoFrames")
    return count


def test_the_camera_starts_with_one_click_and_the_swapped_picture_comes_back(
    browser: Browser, server: PageServer, stand_in: StandIn
) -> None:
    with opened(browser, server.url) as page:
        assert text(page, "#veil-title") == "See yourself with another face"
        assert "this computer" in text(page, "#veil-fine")
        assert page.evaluate("document.activeElement.id") == "veil-go"
        start_camera(page)
        assert stand_in.state.sender
        assert page.evaluate("document.getElementById('preview').videoWidth") == 1280
        page.keyboard.down("b")
        page.wait_for_selector("#own:visible")
        page.keyboard.up("b")
        page.wait_for_selector("#own", state="hidden")


def test_a_page_that_goes_gives_its_place_back(browser: Browser, server: PageServer, stand_in: StandIn) -> None:
    with opened(browser, server.url) as page:
        start_camera(page)
        page.goto("about:blank")
        until(lambda: stand_in.deleted, page)
    assert not stand_in.peers


def test_a_reload_goes_on_without_a_click(browser: Browser, server: PageServer) -> None:
    with opened(browser, server.url) as page:
        start_camera(page)
        page.reload()
        page.wait_for_selector("#status-text:text('Live')")


def test_a_page_whose_camera_is_refused_says_what_to_do(browser: Browser, server: PageServer) -> None:
    with opened(browser, server.url, camera=False) as page:
        page.click("#veil-go")
        page.wait_for_selector('#veil[data-kind="error"]')
        assert text(page, "#veil-title") == "The camera is not allowed yet"
        assert "Allow" in text(page, "#veil-text")
        page.context.grant_permissions(["camera"])
        start_camera(page)


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("NotFoundError", "No camera found"),
        ("NotReadableError", "The camera is busy"),
        ("OddError", "The camera did not start"),
    ],
)
def test_what_is_wrong_with_a_camera_is_said_in_words(
    browser: Browser, server: PageServer, name: str, title: str
) -> None:
    with opened(browser) as page:
        page.add_init_script(
            f"navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('odd', '{name}'))"
        )
        page.goto(server.url)
        page.click("#veil-go")
        page.wait_for_selector('#veil[data-kind="error"]')
        assert text(page, "#veil-title") == title
        assert text(page, "#veil-go") == "Try again"


def test_a_page_that_is_not_secure_says_so_before_anybody_tries(browser: Browser, server: PageServer) -> None:
    with opened(browser, f"http://studio.example:{server.port}/", camera=False) as page:
        page.wait_for_selector('#veil[data-kind="error"]')
        assert text(page, "#veil-title") == "This page may not use a camera"
        assert "https" in text(page, "#veil-text")
        assert page.locator("#veil-go").is_hidden()


def test_a_camera_that_is_pulled_out_is_told(browser: Browser, server: PageServer) -> None:
    with opened(browser, server.url) as page:
        page.evaluate(
            """() => {
              const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
              navigator.mediaDevices.getUserMedia = async (wish) => (window.given = await ask(wish));
            }"""
        )
        start_camera(page)
        page.evaluate("window.given.getVideoTracks()[0].dispatchEvent(new Event('ended'))")
        page.wait_for_selector("#veil-title:text('The camera has gone')")


def test_another_input_lets_go_of_the_camera(browser: Browser, server: PageServer, stand_in: StandIn) -> None:
    with opened(browser, server.url) as page:
        page.evaluate(
            """() => {
              const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
              navigator.mediaDevices.getUserMedia = async (wish) => (window.given = await ask(wish));
            }"""
        )
        start_camera(page)
        page.select_option("#input", "demo")
        until(lambda: page.evaluate("window.given.getVideoTracks()[0].readyState") == "ended", page)
        page.wait_for_selector("#status-text:text('Live')")
        assert stand_in.orders[-1] == {"do": "input", "what": "demo"}


def test_a_page_only_watches_while_another_one_sends(browser: Browser, server: PageServer, stand_in: StandIn) -> None:
    stand_in.state = stand_in.state.model_copy(update={"sender": "a browser at 192.0.2.7"})
    with opened(browser, server.url) as page:
        page.wait_for_selector("#strip:visible")
        assert text(page, "#strip-text") == "The picture comes from a browser at 192.0.2.7."
        page.click("#strip-go")
        page.wait_for_selector("#strip", state="hidden")
        until(lambda: stand_in.state.sender == "a browser at 127.0.0.1", page)


def test_a_page_whose_place_another_one_takes_lets_go_and_watches(
    browser: Browser, server: PageServer, stand_in: StandIn
) -> None:
    with opened(browser, server.url) as first, opened(browser, server.url) as second:
        start_camera(first)
        second.click("#strip-go")
        second.wait_for_selector("#strip", state="hidden")
        first.wait_for_selector("#strip:visible")
        first.wait_for_timeout(1500)
        assert first.locator("#strip").is_visible()
        assert second.locator("#strip").is_hidden()


def test_a_lost_line_is_seen_and_comes_back_by_itself(browser: Browser, server: PageServer, stand_in: StandIn) -> None:
    with opened(browser, server.url) as page:
        start_camera(page)
        server.stop()
        page.wait_for_selector('#veil[data-kind="lost"]')
        assert text(page, "#status-text") == "Connection lost"
        assert page.evaluate("document.getElementById('panel').inert")
        server.start()
        page.wait_for_selector("#status-text:text('Live')")
        shown = pictures(page)
        until(lambda: pictures(page) > shown + 5, page)
        sent = order_after(page, stand_in, lambda: page.click('[data-key="swap.own_mouth"] input'))
        assert sent["key"] == "swap.own_mouth"


def test_panic_without_a_line_darkens_the_camera_and_is_the_first_order_later(
    browser: Browser, server: PageServer, stand_in: StandIn
) -> None:
    with opened(browser, server.url) as page:
        page.evaluate(
            """() => {
              const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
              navigator.mediaDevices.getUserMedia = async (wish) => (window.given = await ask(wish));
            }"""
        )
        start_camera(page)
        server.stop()
        page.wait_for_selector('#veil[data-kind="lost"]')
        page.keyboard.press("Escape")
        page.wait_for_selector("#veil-title:text('Your camera is covered')")
        assert page.evaluate("window.given.getVideoTracks()[0].enabled") is False
        server.start()
        until(lambda: stand_in.state.blank, page)
        assert stand_in.orders == [{"do": "blank", "on": True}]
        page.click("#veil-go")
        page.wait_for_selector("#status-text:text('Live')")
        assert page.evaluate("window.given.getVideoTracks()[0].enabled") is True


def test_a_token_is_taken_out_of_the_address_and_sent_with_everything(browser: Browser) -> None:
    server = PageServer(StandIn(token="abc.def"))
    server.start()
    with opened(browser, f"{server.url}#token=abc.def") as page:
        page.wait_for_selector("#status-text:text('Live')")
        assert page.url == server.url
        page.keyboard.down("b")
        page.wait_for_selector("#before:visible")
        page.reload()
        page.wait_for_selector("#status-text:text('Live')")
    server.stop()


def test_a_page_without_its_token_asks_for_it(browser: Browser) -> None:
    server = PageServer(StandIn(token="abc.def"))
    server.start()
    with opened(browser, server.url) as page:
        page.wait_for_selector("#token-form:visible")
        assert text(page, "#veil-text") == "A token is missing. Make one with: doppelcam token."
        page.fill("#token", "wrong")
        page.keyboard.press("Enter")
        page.wait_for_timeout(500)
        assert page.locator("#token-form").is_visible()
        page.fill("#token", "abc.def")
        page.keyboard.press("Enter")
        page.wait_for_selector("#status-text:text('Live')")
    server.stop()


def test_no_message_grows_the_page_without_end(browser: Browser, server: PageServer, stand_in: StandIn) -> None:
    from realtime.desk.messages import Note

    with opened(browser, server.url) as page:
        for number in range(20):
            stand_in.tell(Note(text=f"Warning {number}", warning=True))
        page.wait_for_selector(".toast:has-text('Warning 19')")
        assert page.locator(".toast").count() == 3
