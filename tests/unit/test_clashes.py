"""A run never writes over what it reads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from realtime import clashes
from realtime.config import Settings, default_layer, flag, resolve
from realtime.errors import ConfigError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("clip.mkv", "me.mkv", "other.mkv"):
        (tmp_path / name).write_bytes(b"content")
    (tmp_path / "soft.mkv").symlink_to("clip.mkv")
    os.link("clip.mkv", "hard.mkv")
    return tmp_path


def named(outputs: list[str]) -> Settings:
    flags = {"source.photos": ["me.mkv"], "input.what": "clip.mkv", "output.to": outputs}
    return resolve([default_layer(), *(flag("--test", key, value) for key, value in flags.items())])


@pytest.mark.parametrize("output", ["clip.mkv", "./clip.mkv", "soft.mkv", "hard.mkv", "me.mkv", "recording:clip.mkv"])
def test_a_recording_over_the_input_or_a_photo_is_refused(folder: Path, output: str) -> None:
    with pytest.raises(ConfigError, match="is an output, but also"):
        clashes.refuse(named([output]), None)


@pytest.mark.parametrize("figures", ["clip.mkv", "me.mkv", "new.mkv", "soft.mkv"])
def test_figures_over_a_file_of_the_run_are_refused(folder: Path, figures: str) -> None:
    with pytest.raises(ConfigError, match=f"{figures} is the file of the figures, but also"):
        clashes.refuse(named(["new.mkv"]), folder / figures)


def test_one_recording_twice_is_refused_also_before_it_exists(folder: Path) -> None:
    with pytest.raises(ConfigError, match="but also an output"):
        clashes.refuse(named(["new.mkv", str(folder / "new.mkv")]), None)


def test_other_files_and_a_sink_that_is_named_twice_pass(folder: Path) -> None:
    clashes.refuse(named(["other.mkv", "new.mkv", "null", "null"]), folder / "figures.json")
    clashes.refuse(named(["null"]), Path("/dev/null"))


@pytest.mark.parametrize("output", ["me.mkv", "other.mkv"])
@pytest.mark.parametrize(
    "people", [{"faces.only": ["other.mkv"]}, {"faces.map": ["me.mkv=other.mkv"]}, {"faces.map": ["other.mkv=me.mkv"]}]
)
def test_a_recording_over_a_photo_of_somebody_who_was_named_is_refused(
    folder: Path, output: str, people: dict[str, list[str]]
) -> None:
    flags = {"source.photos": ["me.mkv"], "input.what": "demo", "output.to": [output], **people}
    settings = resolve([default_layer(), *(flag("--test", key, value) for key, value in flags.items())])
    with pytest.raises(ConfigError, match="but also a photo"):
        clashes.refuse(settings, None)
