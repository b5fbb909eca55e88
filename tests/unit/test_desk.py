"""The desk on fakes: what is painted follows what is wanted, whoever is slow, refuses or comes too late."""

from __future__ import annotations

import datetime
import io
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from realtime import app, config
from realtime.budget import Budget
from realtime.config import Settings
from realtime.desk import painting, places
from realtime.desk.album import Album
from realtime.desk.appearance import Appearance
from realtime.desk.places import Places
from realtime.desk.tap import Tap
from realtime.errors import ConfigError, EngineError, IdentityError, LiveError, SinkError
from realtime.meter import Meter
from realtime.pipeline import Painters
from realtime.swappers import Look
from realtime.types import Frame

NO_ENGINE = EngineError("no runtime can run it", "install one")


def eventually(condition: Callable[[], object]) -> None:
    limit_s = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < limit_s, "did not happen"
        time.sleep(0.002)


class Painter:
    """A swapper, as far as the desk knows one."""

    def __init__(self, settings: Settings, *, relooks: bool) -> None:
        self.settings, self.relooks, self.looks = settings, relooks, list[Look]()

    def relook(self, look: Look) -> bool:
        if self.relooks:
            self.looks.append(look)
        return self.relooks


class Models:
    """Models that are open."""

    def __init__(self) -> None:
        self.closed = 0

    def __enter__(self) -> Models:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed += 1


class Rig:
    """An appearance whose painters are made by a script."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, relooks: bool = True) -> None:
        settings = config.resolve([config.default_layer()])
        self.relooks, self.gate, self.refused = relooks, threading.Event(), set[str]()
        self.gate.set()
        self.made: list[Settings] = []
        self.models: list[Models] = []
        self.said: list[tuple[str, LiveError | None]] = []
        self.budgets: list[Budget] = []
        self.chosen: list[object] = []
        self.meter, self.lock = Meter(), threading.RLock()
        self.device: Any = SimpleNamespace(works_ahead=False, attached=threading.Lock)
        pipeline: Any = SimpleNamespace(
            painters=Painters(self.device, [self.painter(settings)]),
            guard=SimpleNamespace(on_lost="hold", hold_s=1.0),
            tracker=SimpleNamespace(cutoff_hz=0.0),
            chooser=SimpleNamespace(unpick=self.chosen.append),
        )
        self.pipeline = pipeline
        monkeypatch.setattr(painting, "open_models", self.open_models)
        monkeypatch.setattr(painting, "build_painters", self.build)
        monkeypatch.setattr(painting.PaintShop, "_read", lambda _shop, settings, _networks: faces_of(settings))
        monkeypatch.setattr(painting, "replace", lambda networks, **_: networks)
        scene = app.Scene(settings, faces_of(settings), self.pipeline)
        networks: Any = SimpleNamespace(device=self.device)
        self.appearance = Appearance(
            scene, networks, self.meter, self.lock, self.budgets.append, lambda *said: self.said.append(said)
        )
        self.appearance.begin(app.build_budget(settings))

    def painter(self, settings: Settings) -> Any:
        return Painter(settings, relooks=self.relooks)

    def open_models(self, *_: object) -> Models:
        self.models.append(Models())
        return self.models[-1]

    def build(self, settings: Settings, *_: object) -> Painters:
        self.made.append(settings)
        assert self.gate.wait(20)
        if settings.swap.engine in self.refused:
            raise NO_ENGINE
        return Painters(self.device, [self.painter(settings)])

    @property
    def painter_now(self) -> Painter:
        painter = self.pipeline.painters.swappers[0]
        assert isinstance(painter, Painter)
        return painter

    def frames(self, count: int = 10) -> None:
        for _ in range(count):
            self.meter.processed(time.perf_counter(), 1.0)

    def set(self, key: str, value: object) -> None:
        self.appearance.set(key, value)


def faces_of(settings: Settings) -> app.SourceFaces:
    return app.SourceFaces((settings.source.photos,), (), ())


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    one = Rig(monkeypatch)
    with closing(one.appearance):
        yield one
        one.gate.set()


def test_what_a_painter_can_take_at_once_makes_no_other(rig: Rig) -> None:
    for likeness in (0.1, 0.2, 0.3):
        rig.set("swap.likeness", likeness)
    assert [look.likeness for look in rig.painter_now.looks] == [0.1, 0.2, 0.3]
    assert rig.made == []


def test_another_engine_paints_once_it_is_made_and_the_one_before_until_then(rig: Rig) -> None:
    before = rig.painter_now
    rig.gate.clear()
    rig.set("swap.engine", "inswapper_128")
    eventually(lambda: rig.made)
    rig.frames()
    assert rig.painter_now is before
    rig.gate.set()
    eventually(lambda: rig.said)
    assert rig.painter_now.settings.swap.engine == "inswapper_128"
    assert rig.said == [("the face is made by inswapper_128 now", None)]


def test_what_was_taken_back_while_it_was_made_is_thrown_away(rig: Rig) -> None:
    before = rig.painter_now
    rig.gate.clear()
    rig.set("swap.engine", "inswapper_128")
    eventually(lambda: rig.made)
    rig.set("swap.engine", "mesh")
    rig.gate.set()
    eventually(lambda: rig.models[0].closed)
    assert rig.painter_now is before
    assert rig.said == []


def test_a_control_that_is_moved_while_something_is_made_is_followed_and_nothing_is_made_twice(rig: Rig) -> None:
    rig.gate.clear()
    rig.set("swap.engine", "inswapper_128")
    eventually(lambda: rig.made)
    for likeness in np.linspace(0, 1, 60):
        rig.set("swap.likeness", float(likeness))
    rig.set("swap.likeness", 0.25)
    rig.gate.set()
    eventually(lambda: rig.said)
    assert len(rig.made) == 1
    assert rig.painter_now.looks[-1].likeness == 0.25


def test_a_refused_engine_leaves_the_settings_and_the_painter_as_they_were(rig: Rig) -> None:
    before = rig.painter_now
    rig.refused.add("inswapper_128")
    rig.set("faces.on_lost", "card")
    rig.set("swap.engine", "inswapper_128")
    eventually(lambda: rig.said)
    assert rig.said == [("what paints stays as it was", NO_ENGINE)]
    assert rig.painter_now is before
    assert rig.appearance.settings.swap.engine == "mesh"
    assert rig.appearance.settings.faces.on_lost == "card", "what does not paint is not undone"
    assert rig.models[0].closed == 1


def test_a_refusal_of_what_nobody_wants_any_more_undoes_nothing(rig: Rig) -> None:
    rig.refused.add("inswapper_128")
    rig.gate.clear()
    rig.set("swap.engine", "inswapper_128")
    eventually(lambda: rig.made)
    rig.set("swap.engine", "uniface_256")
    rig.gate.set()
    eventually(lambda: rig.said)
    assert rig.said == [("the face is made by uniface_256 now", None)]
    assert rig.appearance.settings.swap.engine == "uniface_256"
    assert rig.painter_now.settings.swap.engine == "uniface_256"


def test_models_are_freed_only_when_no_frame_can_be_painted_with_them(rig: Rig) -> None:
    rig.set("swap.engine", "inswapper_128")
    eventually(lambda: len(rig.said) == 1)
    rig.frames()
    rig.set("swap.engine", "uniface_256")
    eventually(lambda: len(rig.said) == 2)
    time.sleep(3 * painting.LOOK_S)
    assert rig.models[0].closed == 0, "two frames may still be in flight"
    rig.frames(painting.RETIRE_FRAMES)
    eventually(lambda: rig.models[0].closed == 1)
    assert rig.models[1].closed == 0
    rig.appearance.close()
    assert [models.closed for models in rig.models] == [1, 1]


def test_what_is_being_made_at_the_end_is_freed_and_never_paints(rig: Rig) -> None:
    before = rig.painter_now
    rig.gate.clear()
    rig.set("swap.engine", "inswapper_128")
    eventually(lambda: rig.made)
    threading.Timer(0.05, rig.gate.set).start()
    rig.appearance.close()
    assert rig.painter_now is before
    assert rig.models[0].closed == 1
    rig.set("swap.engine", "uniface_256")  # an order that comes too late
    assert len(rig.made) == 1


def test_where_a_look_takes_a_new_painter_the_last_one_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(monkeypatch, relooks=False)
    with closing(rig.appearance):
        rig.gate.clear()
        for likeness in np.linspace(1, 0, 60):
            rig.set("swap.likeness", float(likeness))
        rig.gate.set()

        def met() -> bool:
            rig.frames()
            return rig.painter_now.settings.swap.likeness == 0

        eventually(met)
        assert len(rig.made) <= 3


def test_what_a_budget_has_learnt_stays_where_the_steps_do(rig: Rig) -> None:
    rig.set("masks.regions", "")
    rig.appearance.show_photos(("me.png",))
    eventually(lambda: rig.said)
    assert rig.budgets == []
    rig.set("swap.obstacles", False)
    assert len(rig.budgets) == 1
    assert "obstacles" not in rig.budgets[0].best.steps
    rig.set("swap.obstacles", True)
    assert "obstacles" in rig.budgets[1].best.steps


def test_how_many_faces_are_chosen_follows_the_names_that_were_given(rig: Rig) -> None:
    rig.set("faces.which", "2")
    faces = rig.appearance.settings.faces.model_copy(update={"only": ("them.jpg",)})
    rig.appearance.settings = rig.appearance.settings.model_copy(update={"faces": faces})
    rig.set("faces.which", "largest")
    assert rig.chosen == [2, "all"]


def test_where_everybody_has_a_face_of_their_own_no_other_is_shown(rig: Rig) -> None:
    faces = rig.appearance.settings.faces.model_copy(update={"map": ("ann.jpg=me.png",)})
    rig.appearance.settings = rig.appearance.settings.model_copy(update={"faces": faces})
    with pytest.raises(ConfigError, match="face of their own"):
        rig.appearance.show_photos(("you.png",))
    assert rig.appearance.settings.source.photos == ()


ORDERS = st.lists(
    st.one_of(
        st.tuples(st.just("swap.engine"), st.sampled_from(["mesh", "inswapper_128", "uniface_256", "broken"])),
        st.tuples(st.just("swap.likeness"), st.sampled_from([0.0, 0.5, 1.0])),
        st.tuples(st.just("swap.own_mouth"), st.booleans()),
    ),
    max_size=12,
)


@given(ORDERS, st.booleans())
def test_whatever_is_ordered_in_the_end_what_paints_is_what_the_settings_say(
    orders: list[tuple[str, object]], relooks: bool
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        rig = Rig(monkeypatch, relooks=relooks)
        rig.refused.add("broken")
        with closing(rig.appearance):
            for key, value in orders:
                rig.set(key, value)
                rig.frames()

            def settled() -> bool:
                rig.frames()
                with rig.lock:
                    return rig.appearance._shop.wanted is None

            eventually(settled)
            wanted, painter = rig.appearance.settings, rig.painter_now
            assert wanted.swap.engine != "broken"
            assert painter.settings.swap.engine == wanted.swap.engine
            assert painter.settings.swap.own_mouth == wanted.swap.own_mouth
            likeness = painter.looks[-1].likeness if painter.looks else painter.settings.swap.likeness
            assert likeness == wanted.swap.likeness
        assert all(models.closed for models in rig.models)


class Controls:
    """Controls that note what they are told to do; nothing is carried out before ``answer``."""

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ("window",)
        self.asked: list[tuple[str, Callable[[LiveError | None], None]]] = []

    def add_sink(self, open_sink: object, told: Callable[[LiveError | None], None], *, aside: bool) -> None:
        self.asked.append((f"add {'aside' if aside else 'here'}", told))

    def remove_sink(self, name: str, told: Callable[[LiveError | None], None]) -> None:
        self.asked.append((f"remove {name}", told))

    def change_source(self, open_source: object, told: Callable[[LiveError | None], None]) -> None:
        self.asked.append(("change", told))

    def answer(self, error: LiveError | None = None) -> None:
        self.asked.pop(0)[1](error)


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[Places, Any, list[tuple[str, LiveError | None]]]:
    monkeypatch.setattr(places, "user_videos_path", lambda: tmp_path)
    settings = config.resolve([config.default_layer(), config.from_set_options(("input.what=demo",))])
    said: list[tuple[str, LiveError | None]] = []
    one = Places(app.name_ends(settings), lambda: settings, lambda *words: said.append(words))
    controls: Any = Controls()
    one.controls = controls
    return one, controls, said


Ends = tuple[Places, Any, list[tuple[str, LiveError | None]]]


def test_a_recording_is_begun_once_and_ended_once(ends: Ends) -> None:
    one, controls, said = ends
    one.record(on=False)
    one.record(on=True)
    one.record(on=True)
    path = one.recording
    controls.answer()
    one.record(on=False)
    one.record(on=False)
    assert [what for what, _ in controls.asked] == [f"remove recording {path}"]
    controls.answer()
    assert one.recording == ""
    assert [words for words, _ in said] == [f"recording to {path}", f"recorded to {path}"]


def test_a_recording_that_cannot_be_begun_is_none_and_one_that_stays_open_goes_on(ends: Ends) -> None:
    one, controls, said = ends
    full = SinkError("the disk is full", "free some space")
    one.record(on=True)
    controls.answer(full)
    assert one.recording == ""
    assert said == [("nothing is recorded", full)]
    one.record(on=True)
    path = one.recording
    controls.answer()
    one.remove(f"recording {path}")
    controls.answer(SinkError("it is the only output", "add another"))
    assert one.recording == path
    one.remove(f"recording {path}")
    controls.answer()
    assert one.recording == ""


def test_a_recording_never_takes_the_name_of_an_older_one(
    ends: Ends, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _, _ = ends

    class Noon(datetime.datetime):
        @classmethod
        def now(cls, _zone: datetime.tzinfo | None = None) -> Noon:
            return cls(2024, 5, 6, 12, 0, 0)

    monkeypatch.setattr(datetime, "datetime", Noon)
    (tmp_path / "doppelcam 2024-05-06 12.00.00.mp4").touch()
    one.record(on=True)
    assert one.recording == str(tmp_path / "doppelcam 2024-05-06 12.00.00 (2).mp4")


def test_a_folder_that_cannot_be_made_is_told(ends: Ends, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, controls, _ = ends
    (tmp_path / "file").touch()
    monkeypatch.setattr(places, "user_videos_path", lambda: tmp_path / "file" / "videos")
    with pytest.raises(ConfigError, match="nothing can be recorded"):
        one.record(on=True)
    assert one.recording == ""
    assert controls.asked == []


@pytest.mark.parametrize(("to", "where"), [("preview", "here"), ("out.mp4", "aside"), ("rtmp://host/app/key", "aside")])
def test_only_windows_are_opened_by_the_calling_thread(ends: Ends, to: str, where: str) -> None:
    one, controls, _ = ends
    one.add(to)
    assert controls.asked[0][0] == f"add {where}"


def test_before_the_run_has_begun_nothing_is_placed(ends: Ends) -> None:
    one, _, _ = ends
    one.controls = None
    with pytest.raises(ConfigError, match="not begun"):
        one.record(on=True)
    with pytest.raises(ConfigError, match="not begun"):
        one.add("null")
    with pytest.raises(ConfigError, match="not begun"):
        one.use_input("demo")
    assert one.recording == ""


def test_an_input_is_in_use_once_it_is_open(ends: Ends) -> None:
    one, controls, said = ends
    one.use_input("screen")
    assert one.input == "demo"
    controls.answer(SinkError("no screen", "find one"))
    assert one.input == "demo"
    one.use_input("screen")
    controls.answer()
    assert one.input == "screen"
    assert [words for words, _ in said] == ["screen cannot be used", "the pictures come from screen now"]


def a_photo(kind: str) -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (200, 200), (120, 90, 80)).save(data, kind)
    return data.getvalue()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "BMP"])
def test_a_photo_is_kept_under_a_name_of_its_own_and_gone_at_the_end(kind: str) -> None:
    album = Album()
    photo = album.keep("../../etc/passwd", a_photo(kind))
    path = album.path(photo)
    assert (photo in album, path.is_file(), album.name_of(str(path))) == (True, True, "passwd")
    assert album.holds(str(path))
    assert not album.holds("/etc/passwd")
    assert path.parent.stat().st_mode & 0o077 == 0, "nobody else can read it"
    album.close()
    assert not path.exists()


def test_what_is_no_photo_is_not_kept() -> None:
    album = Album()
    with closing(album):
        with pytest.raises(IdentityError, match=r"holiday\.jpg"):
            album.keep("C:\\me\\holiday.jpg", b"no picture")
        folder = album.path("photo-1.photo").parent
        assert list(folder.iterdir()) == []
        assert "photo-1.photo" not in album


def test_a_picture_is_copied_for_whoever_asks_and_only_then() -> None:
    pipeline: Any = SimpleNamespace(on_begin=None)
    tap = Tap(pipeline)
    assert tap.take() is None
    assert pipeline.on_begin is None
    frame = Frame(0, 0.0, np.full((2, 2, 3), 7, np.uint8))

    def begin() -> None:
        eventually(lambda: pipeline.on_begin)
        pipeline.on_begin(frame)
        frame.pixels[:] = 0  # painted over

    threading.Thread(target=begin).start()
    taken = None
    for _ in range(20):
        taken = taken if taken is not None else tap.take()
    assert taken is not None
    assert (taken == 7).all()
