"""That no setting is a promise which nothing keeps: a run reads each of them, and hands on what it says."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from engines.registry import open_device
from realtime import app, config
from realtime.app import networks
from realtime.app.faces import make_kit
from realtime.assets import demo_photo
from realtime.config import Settings, all_keys, store
from realtime.config.settings import Section
from realtime.meter import Meter
from realtime.models import Models
from realtime.session import play
from realtime.swappers import Kit
from realtime.terminal import Terminal

KIT: dict[str, tuple[Any, Callable[[Kit], object]]] = {
    "swap.engine": ("a", lambda kit: kit.name),
    "swap.likeness": (0.3, lambda kit: kit.look.likeness),
    "swap.colour": (0.3, lambda kit: kit.look.colour),
    "swap.opacity": (0.3, lambda kit: kit.look.opacity),
    "swap.obstacles": (False, lambda kit: kit.masks.obstacles),
    "swap.boost": (3, lambda kit: kit.look.boost),
    "swap.own_mouth": (True, lambda kit: kit.masks.own_mouth),
    "swap.morph": (0.3, lambda kit: kit.look.morph),
    "swap.blend": ("poisson", lambda kit: kit.look.blend),
    "masks.occlusion": ("b", lambda kit: kit.masks.occlusion),
    "masks.regions": ("c", lambda kit: kit.masks.regions),
    "masks.every_n": (7, lambda kit: kit.masks.every_n),
}


def made(values: dict[str, Any]) -> Settings:
    return config.resolve([config.default_layer(), config.Layer("test", values)])


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(store, "user_state_path", lambda *_, **__: tmp_path)
    monkeypatch.setenv("DOPPELCAM_MODELS", str(tmp_path))
    return tmp_path


def test_a_run_reads_every_setting(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnx")
    from tests import cards, helpernets

    for net in (helpernets.arcface(), helpernets.enhancer(side=128)):
        cards.put(home, net)
    settings = made(
        {
            "faces.only": [str(demo_photo())],
            "faces.recogniser": "test_arcface",
            "enhance.model": "test_enhancer",
            "input.what": "demo",
            "output.to": ["null"],
            "run.duration_s": 0.2,
        }
    )
    sections = {type(getattr(settings, name)).__name__: name for name in Settings.model_fields}
    read: set[str] = set()
    plain = Section.__getattribute__

    def noted(section: Section, name: str) -> Any:
        if owner := sections.get(type(section).__name__):
            read.add(f"{owner}.{name}")
        return plain(section, name)

    monkeypatch.setattr(Section, "__getattribute__", noted)
    play(settings, Terminal(Console(file=io.StringIO())))
    unread = set(all_keys()) - read
    assert {key for key in unread if not key.startswith("web.")} == set()  # those are seen to act in tests/web


@pytest.mark.parametrize("key", KIT)
def test_what_a_setting_says_of_the_new_face_reaches_the_swapper(key: str) -> None:
    value, found = KIT[key]
    rooms = cast(app.Networks, SimpleNamespace(device=open_device("cpu"), models=Models()))
    assert found(make_kit(made({}), rooms, Meter())) != value
    assert found(make_kit(made({key: value}), rooms, Meter())) == value


def test_what_the_settings_say_of_the_engine_reaches_every_model(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []

    def opened(card: object, *wishes: Any) -> None:
        asked.append(wishes)
        raise ZeroDivisionError

    monkeypatch.setattr("engines.registry.open_engine", opened)
    wishes = {"runtime": "openvino", "threads": 3, "provider": "cuda", "allow_cpu": True}
    settings = made({**{f"engine.{name}": value for name, value in wishes.items()}, "tracking.detector": "yunet"})
    with pytest.raises(ZeroDivisionError), networks.open_networks(settings):
        pass
    assert [words[:5] for words in asked] == [("openvino", 3, "cuda", True, 1)]
