"""A plan that is built while a run goes on: what is built, when it is taken, and that nothing is built in vain."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

import engines.building
from engines.building import BuildSettings
from engines.card import ModelCard
from engines.errors import EngineError
from realtime.app import background as room
from realtime.config import Settings, default_layer, from_set_options, resolve
from realtime.meter import Meter
from realtime.models import Models

SWAPPER = "inswapper_128"


def made(*options: str) -> Settings:
    return resolve([default_layer(), from_set_options([f"swap.engine={SWAPPER}", *options])])


class FakeDevice:
    """A device that may be attached to."""

    works_ahead = True

    def __init__(self) -> None:
        self.attached_in: list[str] = []

    @contextmanager
    def attached(self) -> Iterator[None]:
        self.attached_in.append(threading.current_thread().name)
        yield


@dataclass
class Run:
    """A run whose network has no plan."""

    settings: Settings
    improvable: tuple[str, ...] = (SWAPPER,)
    device: FakeDevice = field(default_factory=FakeDevice)
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pipeline = type("Pipeline", (), {"painters": "old"})()
        self.scene: Any = type("Scene", (), {"settings": self.settings, "faces": None, "pipeline": self.pipeline})()

    def start(self) -> Any:
        run = self

        class Opened(Models):
            improvable = run.improvable

        @dataclass
        class Networks:
            models: Models
            device: FakeDevice

        networks: Any = Networks(Opened(), self.device)
        return room.upgrading(self.scene, networks, Meter(), self.told.append)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What was built: names and pictures in one run."""
    made: list[tuple[str, int]] = []

    def build(card: ModelCard, settings: BuildSettings, told: Callable[..., None], stopped: Callable[[], bool]) -> None:
        made.append((card.name, settings.pictures))

    monkeypatch.setattr("realtime.upgrade.build", build)
    monkeypatch.setattr(room, "build_painters", lambda *_: "new")
    return made


def wait_for(run: Run, take: Callable[[], None]) -> None:
    for _ in range(500):
        take()
        if run.pipeline.painters == "new":
            return
        time.sleep(0.01)
    raise AssertionError(run.told)


def test_a_missing_plan_is_built_and_taken_between_two_frames(built: list[tuple[str, int]]) -> None:
    run = Run(made("swap.boost=2"))
    with run.start() as take:
        assert run.pipeline.painters == "old"
        wait_for(run, take)
    assert built == [(SWAPPER, 4)]
    assert run.device.attached_in == ["upgrade"]
    assert run.told[-1] == f"from now on a TensorRT plan for {SWAPPER} is used"


@pytest.mark.parametrize(
    ("options", "improvable"),
    [((), ()), (("engine.build=false",), (SWAPPER,)), ((), ("w600k_r50",))],
    ids=["nothing is missing", "switched off", "only what paints"],
)
def test_nothing_is_built_in_vain(
    built: list[tuple[str, int]], options: tuple[str, ...], improvable: tuple[str, ...]
) -> None:
    run = Run(made(*options), improvable)
    with run.start() as take:
        take()
    assert not built
    assert run.pipeline.painters == "old"
    assert not run.told


def test_a_build_that_fails_is_told_and_what_runs_runs_on(
    built: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = threading.Event()

    def fail(*_: Any) -> None:
        failed.set()
        raise EngineError("the GPU has no room", "close other programs")

    monkeypatch.setattr("realtime.upgrade.build", fail)
    run = Run(made())
    with run.start() as take:
        assert failed.wait(5)
        take()
    assert run.pipeline.painters == "old"
    assert run.told[-1] == f"a TensorRT plan for {SWAPPER} was not built: the GPU has no room; close other programs"


def test_the_stand_in_for_building_has_the_arguments_of_the_real_one() -> None:
    import inspect

    assert [*inspect.signature(engines.building.build).parameters][:2] == ["card", "settings"]
