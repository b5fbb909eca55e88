"""What the control page says to the run: each control sends one order of the schema, by mouse and by keys alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, get_args

import pytest

from realtime.assets import sample_source
from realtime.desk.messages import LIVE_KEYS, FaceBox, Order
from tests.web.page_browser import chromium, opened, order_after, until

pytest.importorskip("fastapi", reason="fastapi is not installed: pip install -e '.[webrtc]'")
pytest.importorskip("aiortc", reason="aiortc is not installed: pip install -e '.[webrtc]'")

from tests.web.page_server import PAGE, PageServer, StandIn

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Position

pytestmark = [
    pytest.mark.browser,
    # A stand-in that is stopped in the middle of a handshake drops it; the real server's end has tests of its own.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def stand_in() -> StandIn:
    return StandIn()


@pytest.fixture
def server(stand_in: StandIn) -> Iterator[PageServer]:
    running = PageServer(stand_in)
    running.start()
    yield running
    running.stop()


@pytest.fixture
def page(browser: Browser, server: PageServer) -> Iterator[Page]:
    with opened(browser, server.url) as shown:
        shown.wait_for_selector("#veil", state="hidden")
        yield shown


def slide(page: Page, key: str, value: str) -> None:
    """Move a slider, as a hand does."""
    page.locator(f'[data-key="{key}"] input').fill(value)


def choose(page: Page, key: str, value: str) -> None:
    page.evaluate("document.getElementById('more').open = true")
    page.locator(f'[data-key="{key}"] select').select_option(value)


def add_stream(page: Page) -> None:
    page.select_option("#output-kind", "other")
    page.fill("#output-to", "rtmp://live.example/app")
    page.keyboard.press("Enter")


def save(page: Page) -> None:
    page.click("#save")
    page.fill("#profile", "evening_2")
    page.keyboard.press("Enter")


CONTROLS: dict[str, tuple[Callable[[Page], object], dict[str, Any]]] = {
    "slider": (lambda p: slide(p, "swap.likeness", "0.4"), {"do": "set", "key": "swap.likeness", "value": 0.4}),
    "switch": (
        lambda p: p.click('[data-key="swap.own_mouth"] input'),
        {"do": "set", "key": "swap.own_mouth", "value": True},
    ),
    "words": (
        lambda p: choose(p, "faces.on_lost", "card"),
        {"do": "set", "key": "faces.on_lost", "value": "card"},
    ),
    "number among words": (lambda p: choose(p, "faces.which", "2"), {"do": "set", "key": "faces.which", "value": 2}),
    "whole number": (lambda p: slide_hidden(p, "swap.boost", "3"), {"do": "set", "key": "swap.boost", "value": 3}),
    "a key that the page was never told of": (
        lambda p: slide_hidden(p, "swap.brand_new", "7"),
        {"do": "set", "key": "swap.brand_new", "value": 7},
    ),
    "engine": (
        lambda p: p.select_option("#engine", "inswapper_128"),
        {"do": "set", "key": "swap.engine", "value": "inswapper_128"},
    ),
    "input": (lambda p: p.select_option("#input", "screen"), {"do": "input", "what": "screen"}),
    "photo": (lambda p: p.click('[data-photo=""]'), {"do": "photo", "photo": ""}),
    "face": (lambda p: p.click(".face"), {"do": "pick", "x": pytest.approx(0.49), "y": pytest.approx(0.475)}),
    "new output": (lambda p: p.click("#add-output button"), {"do": "add_output", "to": "virtualcam"}),
    "stream": (add_stream, {"do": "add_output", "to": "rtmp://live.example/app"}),
    "end of an output": (
        lambda p: p.click("#outputs li:last-child button"),
        {"do": "remove_output", "name": "rtmp://live.example/app"},
    ),
    "record": (lambda p: p.click("#record"), {"do": "record", "on": True}),
    "blank": (lambda p: p.click("#blank"), {"do": "blank", "on": True}),
    "profile": (save, {"do": "save", "profile": "evening_2"}),
}


def slide_hidden(page: Page, key: str, value: str) -> None:
    page.evaluate("document.getElementById('more').open = true")
    slide(page, key, value)


@pytest.mark.parametrize("what", CONTROLS)
def test_a_control_sends_its_order(page: Page, stand_in: StandIn, what: str) -> None:
    act, order = CONTROLS[what]
    assert order_after(page, stand_in, lambda: act(page)) == order


def test_every_kind_of_order_can_be_sent_from_the_page() -> None:
    written = "".join(file.read_text(encoding="utf-8") for file in PAGE.glob("*.js"))
    kinds = {kind.model_fields["do"].default for kind in get_args(get_args(Order)[0])}
    assert kinds == set(re.findall(r'do: "(\w+)"', written))


def test_every_setting_has_words_of_its_own() -> None:
    words = (PAGE / "words.js").read_text(encoding="utf-8")
    assert [key for key in LIVE_KEYS if f'"{key}"' not in words] == []


def test_the_page_loads_without_an_error_and_asks_nobody_else(browser: Browser, server: PageServer) -> None:
    with opened(browser) as page:
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(server.url)
        page.wait_for_selector("#veil", state="hidden")
        page.keyboard.down("b")
        page.wait_for_selector("#before:visible")
        page.keyboard.up("b")
        page.set_input_files("#photo-file", sample_source())
        page.wait_for_selector("#photos canvas")
        page.wait_for_timeout(500)
        assert said == []
        assert [url for url in asked if not url.startswith(server.url)] == []


def test_a_moving_slider_sends_few_orders_and_always_the_last(page: Page, stand_in: StandIn) -> None:
    page.evaluate(
        """async () => {
          const slider = document.querySelector('[data-key="swap.opacity"] input');
          for (let step = 0; step <= 50; step++) {
            slider.value = step / 50;
            slider.dispatchEvent(new Event("input"));
            await new Promise((resolve) => setTimeout(resolve, 5));
          }
        }"""
    )
    until(lambda: stand_in.orders and stand_in.orders[-1]["value"] == 1, page)
    assert len(stand_in.orders) <= 15


def test_a_refused_order_is_told_with_its_hint_and_the_control_goes_back(page: Page, stand_in: StandIn) -> None:
    page.evaluate("document.getElementById('more').open = true")
    field = page.locator('[data-key="enhance.model"] input')
    field.fill("refused")
    order_after(page, stand_in, lambda: page.keyboard.press("Enter"))
    message = page.wait_for_selector(".toast.warning")
    assert message is not None
    assert message.text_content() == "There is no model “refused”See what there is."
    until(lambda: field.input_value() == "", page)
    page.click(".toast button")
    assert page.locator(".toast").count() == 0


def test_a_click_beside_the_faces_picks_there_as_the_run_sees_it(page: Page, stand_in: StandIn) -> None:
    box = page.locator("#faces").bounding_box()
    assert box is not None
    place: Position = {"x": box["width"] * 0.1, "y": box["height"] * 0.9}
    mirrored = order_after(page, stand_in, lambda: page.locator("#faces").click(position=place))
    assert (mirrored["x"], mirrored["y"]) == (pytest.approx(0.9, abs=0.01), pytest.approx(0.9, abs=0.01))
    page.keyboard.press("m")
    plain = order_after(page, stand_in, lambda: page.locator("#faces").click(position=place))
    assert plain["x"] == pytest.approx(0.1, abs=0.01)
    assert order_after(page, stand_in, lambda: page.click("#unpick")) == {"do": "unpick"}


def test_a_face_keeps_its_frame_while_it_is_followed(page: Page, stand_in: StandIn) -> None:
    page.evaluate("document.querySelector('.face').dataset.kept = 'yes'")
    other = FaceBox(track_id=2, left=0.7, top=0.3, right=0.85, bottom=0.7, swapped=False)
    stand_in.faces = (*stand_in.faces, other)
    page.wait_for_selector(".face:nth-child(2)")
    assert page.locator(".face").first.get_attribute("data-kept") == "yes"
    assert page.locator(".face").last.get_attribute("aria-label") == "Face 2, as it is: swap it"
    stand_in.faces = (other,)
    until(lambda: page.locator(".face").count() == 1, page)
    assert order_after(page, stand_in, lambda: page.click(".face"))["x"] == pytest.approx(0.775)


def test_panic_by_key_holds_however_often_it_is_pressed(page: Page, stand_in: StandIn) -> None:
    for key in ("Escape", "Space", "Escape"):
        page.keyboard.press(key)
    page.wait_for_selector('#veil[data-kind="blank"]')
    page.click("#blank")
    page.click("#blank", click_count=2)
    page.wait_for_timeout(200)
    assert {order["on"] for order in stand_in.orders} == {True}
    assert stand_in.state.blank
    assert page.locator("#status-text").text_content() == "Hidden"


def test_the_way_back_is_a_button_or_a_key(page: Page, stand_in: StandIn) -> None:
    order_after(page, stand_in, lambda: page.keyboard.press("Escape"))
    assert order_after(page, stand_in, lambda: page.click("#veil-go")) == {"do": "blank", "on": False}
    page.wait_for_selector("#veil", state="hidden")
    order_after(page, stand_in, lambda: page.keyboard.press("Escape"))
    assert order_after(page, stand_in, lambda: page.keyboard.press("l")) == {"do": "blank", "on": False}


def test_escape_hides_the_picture_from_within_a_field_too(page: Page, stand_in: StandIn) -> None:
    page.focus("#engine")
    assert order_after(page, stand_in, lambda: page.keyboard.press("Escape")) == {"do": "blank", "on": True}


def test_letters_typed_into_a_field_are_letters(page: Page, stand_in: StandIn) -> None:
    page.select_option("#output-kind", "other")
    page.focus("#output-to")
    page.keyboard.type("r b l m.mp4")
    page.wait_for_timeout(200)
    assert stand_in.orders == []
    assert page.input_value("#output-to") == "r b l m.mp4"


def tab_to(page: Page, selector: str) -> None:
    """Go to an element by Tab alone."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"Tab does not lead to {selector}")


def test_the_keyboard_alone_is_enough(page: Page, stand_in: StandIn) -> None:
    tab_to(page, ".face")
    assert order_after(page, stand_in, lambda: page.keyboard.press("Enter"))["do"] == "pick"
    tab_to(page, "#engine")
    choice = order_after(page, stand_in, lambda: page.keyboard.press("ArrowDown"))
    assert choice == {"do": "set", "key": "swap.engine", "value": "inswapper_128"}
    tab_to(page, '[data-key="swap.likeness"] input')
    assert order_after(page, stand_in, lambda: page.keyboard.press("ArrowLeft"))["value"] == pytest.approx(0.99)
    tab_to(page, '[data-key="swap.obstacles"] input')
    assert order_after(page, stand_in, lambda: page.keyboard.press("Space"))["value"] is False
    tab_to(page, "#more > summary")
    page.keyboard.press("Enter")
    tab_to(page, "#save")
    page.keyboard.press("Enter")
    page.keyboard.type("by_keys")
    saved = order_after(page, stand_in, lambda: page.keyboard.press("Enter"))
    assert saved == {"do": "save", "profile": "by_keys"}
    page.keyboard.press("?")
    assert page.locator("#dialog-help[open] dt").count() >= 8
    page.keyboard.press("Escape")
    assert page.locator("#dialog-help[open]").count() == 0
    assert not stand_in.state.blank
    assert order_after(page, stand_in, lambda: page.keyboard.press("r")) == {"do": "record", "on": True}


def test_before_is_shown_for_as_long_as_its_button_is_held(page: Page) -> None:
    page.hover("#compare")
    page.mouse.down()
    page.wait_for_selector("#before:visible")
    assert page.locator("#ribbon").text_content() == "Before – only you see this"
    page.mouse.up()
    page.wait_for_selector("#before", state="hidden")
    page.focus("#compare")
    page.keyboard.down("Space")
    page.wait_for_selector("#before:visible")
    page.keyboard.up("Space")
    page.wait_for_selector("#before", state="hidden")


def test_a_photo_is_sent_by_file_by_drop_and_by_paste(page: Page, stand_in: StandIn) -> None:
    sent = order_after(page, stand_in, lambda: page.set_input_files("#photo-file", sample_source()))
    assert sent == {"do": "photo", "photo": sample_source().name}
    assert stand_in.photos == [sample_source().read_bytes()]
    bring = """async (kind) => {
      const data = new DataTransfer();
      data.items.add(new File([await (await fetch("built-in.jpg")).blob()], `${kind}.jpg`, { type: "image/jpeg" }));
      if (kind === "paste") dispatchEvent(new ClipboardEvent("paste", { clipboardData: data }));
      else for (const step of ["dragenter", "dragover", "drop"]) {
        document.getElementById("stage").dispatchEvent(new DragEvent(step, { dataTransfer: data, bubbles: true }));
        if (step === "dragover" && document.getElementById("drop").hidden) throw new Error("it does not invite");
      }
    }"""
    for kind in ("drop", "paste"):
        order = order_after(page, stand_in, lambda kind=kind: page.evaluate(bring, kind))  # type: ignore[misc]
        assert order == {"do": "photo", "photo": f"{kind}.jpg"}
    assert page.locator('#photos [aria-checked="true"]').get_attribute("title") == "paste.jpg"
    assert page.locator("#drop").is_hidden()


def test_a_photo_without_a_face_is_refused_in_words(page: Page, stand_in: StandIn) -> None:
    page.set_input_files("#photo-file", {"name": "wall.png", "mimeType": "image/png", "buffer": b"no face"})
    message = page.wait_for_selector(".toast.warning")
    assert message is not None
    assert "There is no face in it. Take another photo." in (message.text_content() or "")
    assert page.locator("#photos button").count() == 1
    assert stand_in.orders == []
