"""A real run that is steered from Python while it goes on: every order, seen in the pictures that come out."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest
from rich.console import Console

from realtime import config, session, sinks
from realtime.app.path import BLANK
from realtime.assets import sample_source
from realtime.desk import places
from realtime.desk.desk import Desk
from realtime.desk.messages import (
    AddOutput,
    Blank,
    Event,
    Note,
    Pick,
    Record,
    RemoveOutput,
    Save,
    SetValue,
    State,
    Unpick,
    UseInput,
    UsePhoto,
)
from realtime.errors import ConfigError, IdentityError
from realtime.placard import placard
from realtime.terminal import Terminal
from realtime.types import U8, Size
from tests.e2e import spy
from tests.e2e.spy import Seen

SIZE = Size(640, 360)
LONG_S = 40.0


class Steered:
    """A run in the calling thread, and a script that steers it in another."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
        monkeypatch.setattr(spy, "SEEN", Seen())
        monkeypatch.setitem(sinks.SINKS, "null", "tests.e2e.spy:Spy")
        monkeypatch.setattr(places, "user_videos_path", lambda: home / "videos")
        monkeypatch.setattr("realtime.config.store.user_config_path", lambda *_, **__: home / "config")
        monkeypatch.setattr("realtime.config.store.user_state_path", lambda *_, **__: home / "state")
        self.seen, self.events = spy.SEEN, list[Event]()
        self.trouble: list[BaseException] = []

    def run(self, script: Callable[[Desk], None], *options: str) -> None:
        usual = ("input.what=demo", "input.pace=live", f"input.size={SIZE}", "output.to=['null']")
        wish = (*usual, "quality.adaptive=false", *options)
        settings = config.resolve([config.default_layer(), config.from_set_options(wish)])
        threads = []

        def steer(desk: Desk) -> None:
            try:
                self.seen.next(2)
                script(desk)
            except BaseException as error:  # noqa: BLE001 - raised in the test's own thread
                self.trouble.append(error)
            finally:
                self.seen.enough.set()

        def begin(desk: Desk) -> None:
            desk.listen(self.events.append)
            threads.append(threading.Thread(target=steer, args=(desk,)))
            threads[0].start()

        before = threading.active_count()
        session.play(settings, Terminal(Console(file=io.StringIO())), on_desk=begin)
        threads[0].join()
        if self.trouble:
            raise self.trouble[0]
        until(lambda: threading.active_count() <= before)

    def until_note(self, words: str) -> Note:
        end_s = time.monotonic() + LONG_S
        while time.monotonic() < end_s:
            for event in tuple(self.events):
                if isinstance(event, Note) and words in event.text:
                    return event
            time.sleep(0.02)
        raise AssertionError(f"nobody said {words!r}: {[e.text for e in self.events if isinstance(e, Note)]}")


@pytest.fixture
def steered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Steered:
    return Steered(monkeypatch, tmp_path)


def is_card(pixels: U8) -> bool:
    return bool((pixels == placard(Size(pixels.shape[1], pixels.shape[0]), *BLANK)).all())


def until(met: Callable[[], object]) -> None:
    end_s = time.monotonic() + LONG_S
    while not met():
        assert time.monotonic() < end_s
        time.sleep(0.02)


def test_the_panic_key_hides_everything_until_it_is_taken_back(steered: Steered) -> None:
    def script(desk: Desk) -> None:
        assert not any(is_card(pixels) for pixels in steered.seen.next(3))
        desk.order(Blank(on=True))
        assert desk.state().blank
        steered.seen.next(1)  # the one that was on its way
        assert all(is_card(pixels) for pixels in steered.seen.next(20))
        desk.order(Blank(on=False))
        steered.seen.wait(lambda pixels: not is_card(pixels))

    steered.run(script)


def test_a_slider_acts_on_the_next_pictures_and_costs_none(steered: Steered) -> None:
    def script(desk: Desk) -> None:
        begun = len(steered.seen.frames)
        for step in range(60):
            desk.order(SetValue(key="swap.opacity", value=1 - step / 59))
            time.sleep(1 / 60)
        assert desk.state().values["swap.opacity"] == 0
        bare = desk.before()
        assert bare is not None
        numbers = [frame.seq for frame in steered.seen.frames[begun:]]
        assert numbers == sorted(numbers)
        wrong: list[tuple[str, object]] = [
            ("swap.likeness", 2),
            ("swap.nothing", 1),
            ("web.port", 1),
            ("swap.engine", ""),
        ]
        for key, value in wrong:
            with pytest.raises(ConfigError):
                desk.order(SetValue(key=key, value=value))
        right: list[tuple[str, object]] = [
            ("tracking.smoothing", 1.0),
            ("faces.on_lost", "card"),
            ("swap.obstacles", False),
        ]
        for key, value in right:
            desk.order(SetValue(key=key, value=value))
            assert desk.state().values[key] == value
        assert steered.seen.next(3)

    steered.run(script)


def test_faces_are_picked_where_they_are(steered: Steered) -> None:
    def script(desk: Desk) -> None:
        until(lambda: any(face.swapped for face in desk.figures().faces))
        face = desk.figures().faces[0]
        place = Pick(x=(face.left + face.right) / 2, y=(face.top + face.bottom) / 2)
        desk.order(place)
        assert desk.state().picked
        until(lambda: desk.figures().faces and not any(one.swapped for one in desk.figures().faces))
        desk.order(place)
        until(lambda: any(one.swapped for one in desk.figures().faces))
        with pytest.raises(ConfigError, match="no face at that place"):
            desk.order(Pick(x=0.01, y=0.99))
        desk.order(Unpick())
        assert not desk.state().picked

    steered.run(script)


def test_another_photo_is_shown_without_a_gap_and_what_is_none_is_refused(steered: Steered) -> None:
    def script(desk: Desk) -> None:
        with pytest.raises(IdentityError, match=r"holiday\.jpg is not a picture"):
            desk.keep_photo("../../holiday.jpg", b"no picture")
        photo = desk.keep_photo("C:\\me\\portrait.png", sample_source().read_bytes())
        begun = len(steered.seen.frames)
        desk.order(UsePhoto(photo=photo))
        until(lambda: desk.state().photos == ("portrait.png",))
        steered.seen.next(20)
        times = [frame.t_capture_s for frame in steered.seen.frames[begun:]]
        assert times == sorted(times)
        with pytest.raises(ConfigError, match="no photo"):
            desk.order(UsePhoto(photo="../../etc/passwd"))
        desk.order(UsePhoto(photo=""))
        steered.seen.next(5)

    steered.run(script)


def test_a_model_that_is_not_here_changes_nothing(steered: Steered) -> None:
    def script(desk: Desk) -> None:
        desk.order(SetValue(key="swap.engine", value="inswapper_128"))
        note = steered.until_note("what paints stays as it was")
        assert note.warning
        assert "doppelcam models pull" in note.hint
        assert desk.state().values["swap.engine"] == "mesh"
        assert steered.seen.next(5)

    steered.run(script)


def test_the_input_changes_and_what_cannot_be_opened_is_left(steered: Steered, tmp_path: Path) -> None:
    import cv2

    still = tmp_path / "green.png"
    cv2.imwrite(str(still), np.full((SIZE.h, SIZE.w, 3), (0, 200, 0), np.uint8))

    def script(desk: Desk) -> None:
        desk.order(UseInput(what=str(still)))
        steered.until_note("green.png now")
        assert desk.state().input == str(still)
        desk.order(UseInput(what="camera:there is none"))
        note = steered.until_note("cannot be used")
        assert note.warning
        assert desk.state().input == str(still)
        with pytest.raises(ConfigError):
            desk.order(UseInput(what="nowhere"))
        with pytest.raises(ConfigError, match="web server"):
            desk.order(UseInput(what="browser"))
        desk.order(UseInput(what="demo"))
        steered.until_note("come from demo now")
        until(lambda: desk.figures().faces)

    steered.run(script, "faces.on_lost=raw", "faces.hold_s=0")


def test_outputs_come_and_go_and_recordings_can_be_played(steered: Steered, tmp_path: Path) -> None:
    film, older = tmp_path / "film.mp4", tmp_path / "older.mp4"
    older.write_bytes(b"mine")

    def script(desk: Desk) -> None:
        desk.order(AddOutput(to=str(film)))
        steered.until_note("film.mp4 is open")
        desk.order(Record(on=True))
        until(lambda: len(desk.state().outputs) == 3)
        recording = desk.state().recording
        assert recording.startswith(str(tmp_path / "videos"))
        desk.order(AddOutput(to=str(film)))
        assert "is not open" in steered.until_note("is not open").text
        steered.seen.next(30)
        desk.order(Record(on=False))
        desk.order(RemoveOutput(name=f"recording {film}"))
        until(lambda: len(desk.state().outputs) == 1)
        assert not desk.state().recording
        desk.order(RemoveOutput(name="spy"))
        steered.until_note("the only output")
        desk.order(AddOutput(to=str(older)))
        assert "exists" in steered.until_note("older.mp4 is not open").text
        with pytest.raises(ConfigError):
            desk.order(AddOutput(to="nowhere"))
        with pytest.raises(ConfigError, match="web server"):
            desk.order(AddOutput(to="webrtc"))
        assert steered.seen.next(3)

    steered.run(script, "output.overwrite=true")
    assert older.read_bytes() == b"mine"
    for path in (film, *(tmp_path / "videos").iterdir()):
        with av.open(str(path)) as container:
            assert sum(1 for _ in container.decode(video=0)) >= 10


def test_the_settings_as_they_are_now_become_a_profile(steered: Steered, tmp_path: Path) -> None:
    def script(desk: Desk) -> None:
        desk.order(SetValue(key="swap.likeness", value=0.25))
        desk.order(Save(profile="evening"))
        with pytest.raises(ConfigError):
            desk.order(Save(profile="../evening"))
        assert "evening" in desk.state().profiles

    steered.run(script)
    assert "likeness = 0.25" in (tmp_path / "config" / "profiles" / "evening.toml").read_text()


def test_state_and_limits_name_every_key_that_can_be_changed(steered: Steered) -> None:
    def script(desk: Desk) -> None:
        state = desk.state()
        assert isinstance(state, State)
        assert state.values.keys() == state.limits.keys()
        assert (state.limits["swap.likeness"].low, state.limits["swap.likeness"].high) == (0, 1)
        assert state.limits["faces.on_lost"].choices == ("hold", "blur", "card", "raw")
        assert any(label == "device" for label, _ in state.facts)
        until(lambda: any(choice.value == "demo" for choice in desk.state().inputs))
        assert desk.state().engines[0].value == "mesh"
        figures = desk.figures()
        assert figures.fps_out > 0
        assert "compute" in figures.steps_ms

    steered.run(script)
