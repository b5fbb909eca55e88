"""Where figures can be written is found out before the run, and a failure is told in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from realtime import figures
from realtime.errors import ConfigError


def test_a_place_that_will_do_is_accepted_and_an_older_file_replaced(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    path.write_text("old", encoding="utf-8")
    figures.check_place(path, "--stats")
    figures.write(path, "--stats", {"frames": 3})
    assert json.loads(path.read_text(encoding="utf-8")) == {"frames": 3}


@pytest.mark.parametrize(("name", "words"), [("", "is a folder"), ("missing/figures.json", "no folder for")])
def test_a_place_that_will_not_do_is_refused_at_once(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"--json: .*{words}"):
        figures.check_place(tmp_path / name, "--json")


def test_a_file_that_cannot_be_written_is_an_error_in_words(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--json: .* cannot be written"):
        figures.write(tmp_path, "--json", {})
