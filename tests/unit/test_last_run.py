"""What a plain start repeats, on real files in a home of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from engines.card import load_card
from realtime import config, last_run
from realtime.config import Layer, Settings, store

MODELS = {"swap.engine": "inswapper_128", "enhance.model": "gfpgan_1.4"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(store, "user_config_path", lambda *_, **__: tmp_path / "config")
    monkeypatch.setattr(store, "user_state_path", lambda *_, **__: tmp_path / "state")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(**values: object) -> Settings:
    return config.load(None, [Layer("test", {key.replace("__", "."): value for key, value in values.items()})])


def test_photos_input_and_live_outputs_are_repeated_by_their_full_paths(home: Path) -> None:
    for name in ("me.png", "clip.mkv"):
        (home / name).write_bytes(b"x")
    last_run.keep(made(source__photos=["me.png"], input__what="clip.mkv", output__to=["preview", "out.mp4"]))
    layer, warnings = last_run.recall()
    assert warnings == ()
    assert layer.values == {
        "source.photos": (str(home / "me.png"),),
        "input.what": str(home / "clip.mkv"),
        "output.to": ("preview",),
    }
    assert last_run.repeated(config.load(None, [], layer), layer) == ("face", "input", "output")


def test_what_is_typed_again_is_not_said_to_be_as_last_time() -> None:
    last_run.keep(made(input__what="demo", output__to=["preview"]))
    layer, _ = last_run.recall()
    assert last_run.repeated(config.load(None, [], layer), layer, {"input.what"}) == ("output",)


@pytest.mark.parametrize(("what", "taken"), [("demo", False), ("clip.mkv", False), ("0", True), ("screen", True)])
def test_who_names_a_photo_means_the_camera_and_not_the_last_trial(what: str, taken: bool, home: Path) -> None:
    (home / "clip.mkv").write_bytes(b"x")
    last_run.keep(made(input__what=what, output__to=["preview"]))
    layer, _ = last_run.recall(new_face=True)
    assert ("input.what" in layer.values) is taken
    assert layer.values["output.to"] == ("preview",)


def test_settings_of_a_run_can_be_used_from_any_folder(home: Path) -> None:
    (home / "me.png").write_bytes(b"x")
    full = last_run.with_full_paths(made(source__photos=["me.png"], input__what="demo"))
    assert full.source.photos == (str(home / "me.png"),)
    assert full.input.what == "demo"


def test_people_who_were_named_are_repeated_with_their_faces_until_other_photos_are_named(home: Path) -> None:
    for name in ("me.png", "her.png", "him.png"):
        (home / name).write_bytes(b"x")
    last_run.keep(made(faces__only=["her.png"], faces__map=["him.png=me.png"], input__what="demo"))
    layer, warnings = last_run.recall()
    assert warnings == ()
    assert layer.values["faces.only"] == (str(home / "her.png"),)
    assert layer.values["faces.map"] == (f"{home / 'him.png'}={home / 'me.png'}",)
    assert last_run.repeated(config.load(None, [], layer), layer) == ("people", "input", "output")
    assert not set(last_run.PEOPLE) & set(last_run.recall(new_face=True)[0].values)
    (home / "me.png").unlink()
    layer, warnings = last_run.recall()
    assert set(layer.values) - set(last_run.RECOGNISED_BY) == {"source.photos", "faces.only", "input.what", "output.to"}
    assert "me.png" in warnings[0]


def test_people_are_recognised_again_by_what_recognised_them(home: Path) -> None:
    (home / "her.png").write_bytes(b"x")
    named = {"faces.only": ["her.png"], "faces.recogniser": "w600k_mbf", "faces.match": 0.7, "input.what": "demo"}
    last_run.keep(config.load(None, [Layer("test", named)]))
    layer, warnings = last_run.recall()
    assert warnings == ()
    assert layer.values["faces.recogniser"] == "w600k_mbf"
    assert layer.values["faces.match"] == 0.7
    assert last_run.repeated(config.load(None, [], layer), layer, {"output.to"}) == ("people", "input")
    assert not set(last_run.RECOGNISED_BY) & set(last_run.recall(new_face=True)[0].values)
    last_run.keep(config.load(None, [Layer("test", {**named, "faces.only": []})]))
    assert "faces.recogniser" not in last_run.recall()[0].values, "nobody is recognised"


def test_a_saved_profile_names_people_by_their_full_paths(home: Path) -> None:
    full = last_run.with_full_paths(made(faces__only=["her.png"], faces__map=["a,b.png=me.png,him.png=me.png"]))
    assert full.faces.only == (str(home / "her.png"),)
    assert full.faces.map == (f"{home / 'a,b.png'}={home / 'me.png'}", f"{home / 'him.png'}={home / 'me.png'}")


@pytest.fixture
def models(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files under the names of two models; nobody looks into them before the run."""
    monkeypatch.setenv("DOPPELCAM_MODELS", str(home / "models"))
    (home / "models").mkdir()
    for name in MODELS.values():
        (home / "models" / load_card(name).file).write_bytes(b"x")
    return home / "models"


def test_models_are_repeated_also_for_another_photo(models: Path) -> None:
    last_run.keep(made(swap__engine=MODELS["swap.engine"], enhance__model=MODELS["enhance.model"], input__what="demo"))
    for new_face in (False, True):
        layer, warnings = last_run.recall(new_face=new_face)
        assert warnings == ()
        assert MODELS.items() <= layer.values.items()
    assert last_run.repeated(config.load(None, [], layer), layer, {"output.to"}) == ("model", "enhancer")
    last_run.keep(made(input__what="demo"))
    assert not MODELS.keys() & last_run.recall()[0].values.keys()


@pytest.mark.parametrize(("key", "falls_back_to"), [("swap.engine", "mesh"), ("enhance.model", "")])
def test_a_model_that_is_gone_is_told_and_the_run_goes_on_without(models: Path, key: str, falls_back_to: str) -> None:
    last_run.keep(config.load(None, [Layer("test", {**MODELS, "input.what": "demo"})]))
    (models / load_card(MODELS[key]).file).unlink()
    layer, warnings = last_run.recall()
    assert MODELS.keys() - {key} == MODELS.keys() & layer.values.keys()
    section, name = key.split(".")
    assert getattr(getattr(config.load(None, [], layer), section), name) == falls_back_to
    assert len(warnings) == 1
    assert MODELS[key] in warnings[0]


def test_a_model_whose_card_is_gone_is_told_too() -> None:
    last_run.keep(made(swap__engine="my_own_model", input__what="demo"))
    layer, warnings = last_run.recall()
    assert "swap.engine" not in layer.values
    assert "my_own_model" in warnings[0]


def test_a_recording_is_never_repeated() -> None:
    last_run.keep(made(output__to=["out.mp4"]))
    assert "output.to" not in last_run.recall()[0].values


def test_what_is_gone_is_told_and_left_out(home: Path) -> None:
    for name in ("me.png", "clip.mkv"):
        (home / name).write_bytes(b"x")
    last_run.keep(made(source__photos=["me.png"], input__what="clip.mkv"))
    (home / "me.png").unlink()
    (home / "clip.mkv").unlink()
    layer, warnings = last_run.recall()
    assert set(layer.values) == {"output.to"}
    assert len(warnings) == 2
    assert all(name in " ".join(warnings) for name in ("me.png", "clip.mkv"))


def test_the_first_start_has_nothing_to_repeat() -> None:
    assert last_run.recall() == (Layer("the last run", {}), ())


@pytest.mark.parametrize(
    "damage",
    [b"\xff\xfe\x00", b"[input]\nwhat = 3.5\n", b"[in", b"[input]\nwat = 'x'\n", b"x = 1", b"x = " + b"[" * 9999],
)
def test_a_damaged_memory_is_one_warning_and_no_more(damage: bytes) -> None:
    last_run.keep(made(input__what="demo"))
    store.last_run_path().write_bytes(damage)
    layer, warnings = last_run.recall()
    assert not layer.values
    assert len(warnings) == 1
    assert "last run" in warnings[0]
