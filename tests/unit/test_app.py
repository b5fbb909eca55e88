"""What the words of the settings become, before anything is opened."""

from __future__ import annotations

import pytest

from engines import registry
from engines.card import load_card
from engines.contract import Engine
from engines.cpu import CpuDevice
from engines.errors import EngineError
from realtime import app
from realtime.app import networks, show
from realtime.config import Settings, default_layer, from_set_options, resolve
from realtime.detect.choice import Choice
from realtime.models import Models
from realtime.sources import SourceInfo, SourceSpec
from realtime.types import Size
from tests.stage import FakeDetector, Scene


def made(*options: str) -> Settings:
    return resolve([default_layer(), from_set_options(options)])


@pytest.mark.parametrize(
    ("pace", "what", "to", "paced"),
    [
        ("auto", "demo", '["out.mp4"]', False),
        ("auto", "demo", '["out.mp4", "null"]', False),
        ("auto", "demo", '["out.mp4", "preview"]', True),
        ("auto", "demo", '["auto"]', True),
        ("auto", "0", '["out.mp4"]', True),
        ("fast", "demo", '["preview"]', False),
        ("live", "demo", '["out.mp4"]', True),
    ],
)
def test_a_file_is_converted_as_fast_as_possible_only_when_nobody_watches(
    pace: str, what: str, to: str, paced: bool
) -> None:
    ends = app.name_ends(made(f"input.pace={pace}", f"input.what={what}", f"output.to={to}"))
    assert ends.wish.paced is paced


def test_the_wish_carries_what_was_set_and_nothing_for_what_was_not() -> None:
    wish = app.name_ends(made("input.what=demo", "input.size=640x480", "input.fps=25")).wish
    assert (wish.size, wish.fps) == (Size(640, 480), 25)
    plain = app.name_ends(made("input.what=demo")).wish
    assert (plain.size, plain.fps) == (None, None)


def test_a_lost_camera_is_opened_again_by_what_names_it_best(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[SourceSpec] = []
    monkeypatch.setattr(show, "open_source", lambda spec, _wish: opened.append(spec))
    ends = app.name_ends(made("input.what=0"))
    by_id = SourceSpec("camera", "/dev/v4l/by-id/c920")
    info = SourceInfo("C920", Size(640, 480), 30.0, live=True)
    app.open_again(ends, None)
    app.open_again(ends, info)
    app.open_again(ends, SourceInfo("C920", Size(640, 480), 30.0, live=True, reopen=by_id))
    assert opened == [SourceSpec("camera", "0"), SourceSpec("camera", "0"), by_id]


def test_quality_that_may_not_adapt_never_does() -> None:
    fixed = app.build_budget(made("quality.adaptive=false"))
    assert all(fixed.update(100 + i / 30, 500.0, 1 / 30) is fixed.quality for i in range(300))
    assert fixed.quality.scale == 1


def test_under_load_only_the_mesh_swapper_gets_a_smaller_picture() -> None:
    for engine, least in (("mesh", 0.5), ("inswapper_128", 1.0)):
        budget = app.build_budget(made(f"swap.engine={engine}", "quality.min_scale=0.5"))
        assert min(budget.update(i / 30, 500.0, 1 / 30).scale for i in range(300)) == least


def test_obstacles_run_when_they_are_wanted() -> None:
    assert app.build_budget(made()).quality.steps == {"obstacles"}
    assert app.build_budget(made("swap.obstacles=false")).quality.steps == frozenset()


@pytest.mark.parametrize(
    ("wanted", "steps"),
    [
        (["swap.engine=a", "masks.occlusion=b", "masks.regions=c", "enhance.model=d"], "enhance regions occlusion"),
        (["swap.engine=a", "masks.regions=c"], "regions obstacles"),
        (["swap.engine=a", "masks.occlusion=b", "swap.obstacles=false"], "occlusion"),
        (["masks.occlusion=b", "masks.regions=c"], "obstacles"),
    ],
)
def test_a_run_has_the_optional_steps_of_its_settings_and_sheds_them_in_order(wanted: list[str], steps: str) -> None:
    budget, shed = app.build_budget(made(*wanted)), []
    assert budget.quality.steps == set(steps.split())
    before = budget.quality.steps
    for number in range(2000):
        after = budget.update(number / 30, 36.0, 1 / 30).steps
        shed += [step for step in steps.split() if step in before - after]
        before = after
    assert shed == steps.split()


@pytest.mark.parametrize(
    ("wanted", "size"),
    [([], (640, 384)), (["input.size=640x480"], (640, 480)), (["tracking.detector=yunet"], None)],
)
def test_a_detector_is_opened_for_the_size_that_it_will_look_at(
    wanted: list[str], size: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def open_engine(*arguments: object) -> Engine:
        asked.append(arguments[-1])
        raise EngineError("no", "try something else")

    monkeypatch.setattr(registry, "open_engine", open_engine)
    settings = made("tracking.detector=scrfd_2.5g", *wanted)
    with Models() as models, pytest.raises(EngineError):
        networks.choose_detector(settings, models, CpuDevice())
    assert asked == [size]


def test_what_looks_for_faces_is_freed_also_when_the_run_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[str] = []

    class Watched(FakeDetector):
        def close(self) -> None:
            freed.append("detector")

    chosen = Choice(load_card("face_detection_short_range"), Watched(Scene()), "")
    monkeypatch.setattr(networks, "choose_detector", lambda *_: chosen)
    with pytest.raises(ZeroDivisionError), app.open_networks(made()):
        raise ZeroDivisionError
    assert freed == ["detector"]
