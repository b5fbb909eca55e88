"""Something better is made ready behind a run: taken once between two frames, and never the run's trouble."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from engines.building import BuildSettings, StoppedError
from engines.building import build as build_plan
from engines.errors import EngineError
from realtime import upgrade
from realtime.upgrade import Part, Upgrade, plan_of
from tests.building.stand import saying, small_model

GIVE_UP_S = 60


class Scripted:
    """Builds as far as it is let, and notes what was opened."""

    def __init__(self, *, fails: str = "", opening_fails: bool = False) -> None:
        self.go, self.at_work, self.told_everything = threading.Event(), threading.Event(), threading.Event()
        self.fails, self.opening_fails = fails, opening_fails
        self.told: list[str] = []
        self.opened_in = ""

    def part(self, name: str) -> Part:
        def build(moved: Callable[[float], None], stopped: Callable[[], bool]) -> None:
            if name == self.fails:
                raise EngineError("TensorRT took too long", "allow more")
            for percent in range(41):
                moved(percent / 100)
            self.at_work.set()
            while not self.go.wait(0.01):
                if stopped():
                    raise StoppedError("stopped", "-")
            moved(1.0)

        return Part(name, build)

    def open(self) -> str:
        self.opened_in = threading.current_thread().name
        if self.opening_fails:
            raise EngineError("the plan does not load", "build it again")
        return "new"

    def upgrade(self, *names: str) -> Upgrade[str]:
        return Upgrade([self.part(name) for name in names], self.open, self.told.append)


def join(one: Upgrade[str]) -> None:
    one._thread.join(GIVE_UP_S)
    assert not one._thread.is_alive()


def test_what_is_ready_is_taken_once_and_the_way_there_is_told() -> None:
    script = Scripted()
    with script.upgrade("plan one") as one:
        assert script.at_work.wait(GIVE_UP_S)
        assert one.poll() is None
        script.go.set()
        join(one)
        assert one.poll() == "new"
        assert one.poll() is None
    assert script.opened_in == "upgrade"
    assert script.told == [
        "building plan one: 0%",
        "building plan one: 25%",
        "building plan one: 100%",
        "from now on plan one is used",
    ]


def test_the_end_of_a_run_stops_the_build_and_tells_nothing() -> None:
    script = Scripted()
    with script.upgrade("plan one", "plan two") as one:
        assert script.at_work.wait(GIVE_UP_S)
    join(one)
    assert script.opened_in == ""
    assert script.told[-1] == "building plan one: 25%"
    one.close()


def test_what_fails_is_told_and_the_rest_is_used() -> None:
    script = Scripted(fails="plan one")
    script.go.set()
    with script.upgrade("plan one", "plan two") as one:
        join(one)
        assert one.poll() == "new"
    assert script.told[0] == "plan one was not built: TensorRT took too long; allow more"
    assert script.told[-1] == "from now on plan two is used"


def test_where_nothing_could_be_built_nothing_is_opened() -> None:
    script = Scripted(fails="plan one")
    with script.upgrade("plan one") as one:
        join(one)
        assert one.poll() is None
    assert script.opened_in == ""


def test_what_does_not_open_is_told() -> None:
    script = Scripted(opening_fails=True)
    script.go.set()
    with script.upgrade("plan one") as one:
        join(one)
        assert one.poll() is None
    assert script.told[-1] == "plan one cannot be used: the plan does not load; build it again"


def test_a_real_build_is_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a process that says how far it is, and then that it failed."""
    monkeypatch.setenv("DOPPELCAM_MODELS", str(tmp_path))
    process = saying(
        "tell(kind='stage', name='building')",
        "tell(kind='failed', error='EngineError', message='no room on the GPU', hint='close a game')",
    )
    monkeypatch.setattr(upgrade, "build", lambda *arguments: build_plan(*arguments, command=process))
    told: list[str] = []
    part = plan_of(small_model(tmp_path), BuildSettings())
    with Upgrade([part], lambda: "new", told.append) as one:
        join(one)
    assert told[0].startswith("building a TensorRT plan for one: ")
    assert told[-1] == "a TensorRT plan for one was not built: no room on the GPU; close a game"
