"""The last step of the chain: a network that nothing can run gives way to the mesh, and only where that is wanted."""

from __future__ import annotations

import pytest

from realtime import app
from realtime.app import fallback
from realtime.config import Settings, default_layer, from_set_options, resolve
from realtime.errors import EngineError, ModelError
from realtime.meter import Meter

NOTHING = EngineError("ONNX Runtime cannot load inswapper_128 on cpu: no such operator", "use an export without it")


def made(*options: str) -> Settings:
    return resolve([default_layer(), from_set_options(options)])


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was tried, by swapper; everything but the mesh fails."""
    names: list[str] = []

    def set_up(settings: Settings, *_: object) -> app.Scene:
        names.append(settings.swap.engine)
        if settings.swap.engine == "absent":
            raise ModelError("absent is not here", "pull it")
        if settings.swap.engine != "mesh":
            raise NOTHING
        return app.Scene(settings, None, None)  # type: ignore[arg-type]  # nobody looks at them

    monkeypatch.setattr(fallback, "_set_up", set_up)
    return names


def run(settings: Settings, told: list[str]) -> app.Scene:
    return app.set_up(settings, None, Meter(), told.append)  # type: ignore[arg-type]  # nobody looks at them


def test_the_mesh_takes_over_and_it_is_told_why(tried: list[str]) -> None:
    told: list[str] = []
    scene = run(made("swap.engine=inswapper_128", "swap.likeness=0.5"), told)
    assert tried == ["inswapper_128", "mesh"]
    assert (scene.settings.swap.engine, scene.settings.swap.likeness) == ("mesh", 0.5)
    assert told == [
        "the mesh swapper is used, because nothing here runs inswapper_128: ONNX Runtime cannot load inswapper_128 on "
        "cpu: no such operator; use an export without it"
    ]


@pytest.mark.parametrize("named", ["engine.runtime=onnxrt", "engine.provider=cpu", "engine.fallback=false"])
def test_whoever_names_what_is_to_run_gets_that_or_an_error(tried: list[str], named: str) -> None:
    with pytest.raises(EngineError, match="no such operator"):
        run(made("swap.engine=inswapper_128", named), [])
    assert tried == ["inswapper_128"]


def test_a_model_that_can_be_fetched_is_not_replaced(tried: list[str]) -> None:
    with pytest.raises(ModelError, match="absent"):
        run(made("swap.engine=absent"), [])
    assert tried == ["absent"]


def test_a_mesh_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> app.Scene:
        raise NOTHING

    monkeypatch.setattr(fallback, "_set_up", fail)
    with pytest.raises(EngineError, match="no such operator"):
        run(made(), [])
