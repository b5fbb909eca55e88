"""Layering, checking and remembering of settings, on real files in a home of the test's own."""

from __future__ import annotations

import contextlib
import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from realtime import config
from realtime.config import Layer, all_keys, allowed_text, from_set_options, resolve, store
from realtime.errors import ConfigError
from realtime.types import Size


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(store, "user_config_path", lambda *_, **__: tmp_path / "config")
    monkeypatch.setattr(store, "user_state_path", lambda *_, **__: tmp_path / "state")
    return tmp_path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_the_manual_states_every_setting_once_with_what_it_allows() -> None:
    manual = (store.SHIPPED / "default.toml").read_text(encoding="utf-8").splitlines()
    section, keys = "", []
    for above, line in itertools.pairwise(manual):
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            key = f"{section}.{line.partition(' = ')[0]}"
            keys.append(key)
            assert above == f"# Allowed: {allowed_text(key)}.", key
    assert tuple(keys) == all_keys()


def test_the_manual_explains_every_setting_before_what_it_allows() -> None:
    manual = (store.SHIPPED / "default.toml").read_text(encoding="utf-8")
    for block in re.split(r"\n(?=# Allowed: )", manual)[:-1]:
        assert block.splitlines()[-1].startswith("# "), block
        assert not block.splitlines()[-1].startswith("# Allowed"), block


@pytest.mark.parametrize("name", store.profile_names())
def test_every_shipped_profile_is_valid_and_only_says_what_differs(name: str) -> None:
    profile = config.profile_layer(name)
    default = config.default_layer()
    assert profile.values
    assert all(default.values[key] != value for key, value in profile.values.items())
    resolve([default, profile])


def test_a_later_layer_wins_and_the_last_run_lies_below_the_users_settings(home: Path) -> None:
    config.remember({"input.what": "clip.mkv", "source.photos": ("/a.png",)})
    write(home / "config" / "settings.toml", '[input]\nwhat = "demo"\nfps = 25\n[output]\nfps = 30\n')
    write(home / "config" / "profiles" / "mine.toml", "[input]\nfps = 50\n[output]\nfps = 31\n")
    loaded = config.load(
        "mine",
        [from_set_options(["output.fps=32"]), config.flag("--size", "input.size", "640x480")],
        config.read_last_run(),
    )
    assert (loaded.source.photos, loaded.input.what) == (("/a.png",), "demo")
    assert (loaded.input.fps, loaded.output.fps, loaded.input.size) == (50, 32, Size(640, 480))


def test_settings_are_frozen() -> None:
    loaded = config.load(None, [])
    with pytest.raises(ValueError, match="frozen"):
        loaded.output.fps = 3


@pytest.mark.parametrize(
    ("option", "key", "value", "allowed"),
    [
        ("engine.threads=65", "engine.threads", "65", "a whole number from 0 to 64"),
        ("engine.threads=1.5", "engine.threads", "1.5", "a whole number from 0 to 64"),
        ("engine.threads=true", "engine.threads", "true", "a whole number from 0 to 64"),
        ("input.fps=nan", "input.fps", "nan", "a number from 0 to 240"),
        ("input.size=9x9", "input.size", '"9x9"', "1280x720"),
        ("faces.which=17", "faces.which", "17", '"largest", "all", or a number of faces'),
        ("output.to=[]", "output.to", "[]", "a list of one text or more"),
        ("source.photos=me.png", "source.photos", '"me.png"', "a list of texts"),
        ("input.loop=yes", "input.loop", '"yes"', "true or false"),
    ],
)
def test_a_wrong_value_is_told_with_layer_key_value_and_what_is_allowed(
    option: str, key: str, value: str, allowed: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        config.load(None, [from_set_options([option])])
    assert f"--set: {key} is {value}, but must be" in caught.value.message
    assert allowed in caught.value.message
    assert "default.toml" in caught.value.hint


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("engin.threads", "engine.threads"),
        ("threads", "engine.threads"),
        ("input.sise", "input.size"),
        ("swap.on_lost", "faces.on_lost"),
    ],
)
def test_an_unknown_setting_names_the_nearest_one(typed: str, meant: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_set_options([f"{typed}=1"])
    assert f"did you mean {meant}?" in caught.value.hint


def test_a_wrong_file_is_named_with_its_line(home: Path) -> None:
    write(home / "config" / "settings.toml", "[output]\nfps = = 3\n")
    with pytest.raises(ConfigError, match=r"settings\.toml is not valid TOML.*line 2"):
        config.load(None, [])


def test_a_settings_file_that_is_a_folder_is_one_clear_error(home: Path) -> None:
    (home / "config" / "settings.toml").mkdir(parents=True)
    with pytest.raises(ConfigError, match="cannot read"):
        config.load(None, [])


def test_a_saved_profile_brings_the_same_settings_back(home: Path) -> None:
    odd = 'a "quoted"\\path\twith \u00fc, \U0001f600 and \x7f.png'
    loaded = config.load(
        None,
        [
            Layer(
                "test", {"source.photos": [odd], "input.size": "640x480", "faces.which": 3, "output.overwrite": True}
            ),
            config.flag("--duration", "run.duration_s", 5),
        ],
    )
    path = config.save_profile("mine", loaded)
    assert path.parent == home / "config" / "profiles"
    again = config.load("mine", [])
    assert again == loaded.model_copy(update={"run": again.run})
    assert again.run.duration_s == 0


@pytest.mark.parametrize("name", ["", "a/b", "..", "a b", "x" * 65])
def test_a_profile_name_cannot_leave_its_folder(name: str) -> None:
    loaded = config.load(None, [])
    with pytest.raises(ConfigError):
        config.save_profile(name, loaded)


def test_a_shipped_profile_cannot_be_replaced_or_a_missing_one_used() -> None:
    loaded = config.load(None, [])
    with pytest.raises(ConfigError, match="ships with"):
        config.save_profile(store.profile_names()[0], loaded)
    with pytest.raises(ConfigError) as caught:
        config.load("nope", [])
    assert store.profile_names()[0] in caught.value.hint


plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates()
values = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))


@given(st.dictionaries(st.sampled_from(all_keys()), values, max_size=4))
def test_random_values_give_settings_or_a_config_error(garbage: dict[str, Any]) -> None:
    with contextlib.suppress(ConfigError):
        resolve([config.default_layer(), Layer("test", garbage)])


@given(st.text() | st.builds("{}={}".format, st.sampled_from(all_keys()), st.text()))
def test_random_options_give_settings_or_a_config_error(option: str) -> None:
    with contextlib.suppress(ConfigError):
        resolve([config.default_layer(), from_set_options([option])])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary()
    | st.sampled_from(["[input]\n", "[output]\nto = ", "input = "]).flatmap(
        lambda head: st.binary().map(head.encode().__add__)
    )
)
def test_random_files_give_a_layer_or_a_config_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "random.toml"
    path.write_bytes(content)
    with contextlib.suppress(ConfigError):
        resolve([config.default_layer(), config.read_layer(path)])


@given(st.lists(st.text(st.characters(codec="utf-8")), max_size=3))
def test_any_text_survives_being_written_as_toml(texts: list[str]) -> None:
    assert from_set_options([f"source.photos={config.layers.as_toml(texts)}"]).values["source.photos"] == texts


def test_no_more_faces_can_be_asked_for_than_are_followed() -> None:
    from realtime.track import MOST_FACES

    assert allowed_text("faces.which").endswith(f" from 1 to {MOST_FACES}")
    resolve([config.default_layer(), from_set_options([f"faces.which={MOST_FACES}"])])
    with pytest.raises(ConfigError, match=r"faces\.which"):
        resolve([config.default_layer(), from_set_options([f"faces.which={MOST_FACES + 1}"])])
