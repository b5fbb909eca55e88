"""What a person and a log see of a run: rich's own terminal, recorded."""

from __future__ import annotations

import io

from rich.console import Console

from realtime import app
from realtime.config import default_layer, from_set_options, resolve
from realtime.facts import banner_facts, face_facts
from realtime.meter import Meter, Stats
from realtime.sinks import SinkInfo
from realtime.sources import SourceInfo
from realtime.terminal import PLAIN_S, Terminal
from realtime.types import Size
from tests.fakes import FakeClock

CAMERA = SourceInfo("C920", Size(1280, 720), 30.0, live=True, facts=("asked for 1920x1080, the camera gives 1280x720",))
FILM = SourceInfo("clip.mkv", Size(640, 480), 25.0, live=False)
SINKS = (
    SinkInfo("virtual camera", Size(1280, 720), 30.0, live=True),
    SinkInfo("out.mp4", Size(1280, 720), 0.0, live=False, facts=("82 GB free",)),
)


def made(frames: int) -> Stats:
    clock = FakeClock()
    meter = Meter(clock)
    for _ in range(frames):
        clock.advance(1 / 30)
        meter.captured(clock.now_s)
        meter.processed(clock.now_s, 4.0)
    return meter.snapshot()


def looked(terminal: bool, conversion: int | None, seconds: float) -> tuple[str, int]:
    out, clock = io.StringIO(), FakeClock()
    shown = Terminal(Console(file=out, width=100, force_terminal=terminal), clock)
    looks: list[float] = []

    def look() -> tuple[Stats, int]:
        looks.append(clock.now_s)
        return made(90), 1

    shown.start(conversion)
    for _ in range(round(seconds * 20)):
        shown.tick(look)
        clock.advance(0.05)
    shown.note("camera lost")
    shown.end(made(90))
    return out.getvalue(), len(looks)


def test_a_log_gets_plain_lines_at_a_slow_beat() -> None:
    text, looks = looked(terminal=False, conversion=None, seconds=2 * PLAIN_S + 1)
    assert "\x1b" not in text
    lines = text.splitlines()
    assert looks == 2
    assert lines[0].startswith("30 fps in, 30 out | ")
    assert lines[-2] == "camera lost"
    assert lines[-1].startswith("90 pictures in 3.0 s (30.0 fps)")


def test_a_terminal_gets_one_line_that_changes_and_goes() -> None:
    text, looks = looked(terminal=True, conversion=None, seconds=3)
    assert 10 <= looks <= 13
    assert "\x1b[2K" in text
    assert text.rstrip().splitlines()[-1].endswith("0 dropped")


def test_a_conversion_shows_how_far_it_is() -> None:
    assert "90 of 180 (50%) pictures, 30 fps" in looked(terminal=True, conversion=180, seconds=1)[0]
    assert "90 of 180 (50%) pictures, 30 fps" in looked(terminal=False, conversion=180, seconds=PLAIN_S + 1)[0]
    assert "90 pictures, 30 fps" in looked(terminal=True, conversion=0, seconds=1)[0]


def test_a_run_that_never_began_ends_without_a_word() -> None:
    out = io.StringIO()
    Terminal(Console(file=out)).end(made(0))
    assert out.getvalue() == ""


def banner(source: SourceInfo, *options: str) -> str:
    settings = resolve([default_layer(), from_set_options(options)])
    out = io.StringIO()
    budget = app.build_budget(settings)
    facts = banner_facts(settings, source, SINKS, budget.best, budget.least)
    Terminal(Console(file=out, width=120)).banner([*face_facts(settings, True), *facts])
    return out.getvalue()


def test_the_banner_says_what_was_negotiated_and_what_was_refused() -> None:
    text = banner(CAMERA, 'source.photos=["/home/me/me.png"]')
    for words in (
        "me.png",
        "C920: 1280x720 at 30 fps",
        "asked for 1920x1080, the camera gives 1280x720",
        "virtual camera: 1280x720 at a steady 30 fps",
        "82 GB free",
        "everything; where 30 fps cannot be held, in this order: without obstacles, fewer looks",
        "at 50% of its size",
    ):
        assert words in text


def test_the_banner_says_what_a_plain_start_uses_and_warns_of_raw() -> None:
    text = banner(FILM, "faces.on_lost=raw", "faces.which=3")
    assert "built-in sample" in text
    assert "every picture, as fast as possible" in text
    assert "up to 3 faces" in text
    assert "AS IT IS" in text
    assert "everything, always" in text


def test_the_banner_promises_only_what_the_load_can_change() -> None:
    network = " ".join(banner(CAMERA, "swap.engine=inswapper_128", "enhance.model=gfpgan_1.4").split())
    assert "in this order: without enhance, without obstacles, fewer looks for new faces" in network
    assert "of its size" not in network
    assert "everything, always" in banner(CAMERA, "quality.adaptive=false")


def test_the_banner_says_who_is_swapped_and_that_everyone_else_is_shown() -> None:
    text = banner(FILM, 'faces.only=["her.png"]', 'faces.map=["/home/him.png=/home/me.png"]', "swap.engine=mesh")
    for words in (
        "the built-in sample; give your own with --source FILE, on the person of her.png",
        "me.png, on the person of him.png",
        "mesh, on the people named; everyone else is shown AS THEY ARE",
    ):
        assert words in text
    assert "up to 2 of the people named" in banner(FILM, 'faces.only=["her.png"]', "faces.which=2")
