"""Adding a file: where it goes, who is asked, and that a half one is never left."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from engines import store
from engines.card import load_card
from engines.errors import ModelError
from engines.store import records
from engines.store.add import How, add
from tests.own_models import write_card, write_onnx
from tests.owner import ScriptedOwner


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "mine"
    monkeypatch.setenv("DOPPELCAM_MODELS", str(folder))
    monkeypatch.delenv("DOPPELCAM_OFFLINE", raising=False)
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_onnx(tmp_path / "downloaded (1).onnx")


@pytest.mark.parametrize(
    ("how", "stays", "is_link"), [("copy", True, False), ("move", False, False), ("link", True, True)]
)
def test_a_file_comes_under_the_name_of_its_card(
    mine: Path, source: Path, how: How, stays: bool, is_link: bool
) -> None:
    write_card(mine, "one", source.read_bytes())
    owner = ScriptedOwner()
    got = add(source, owner, how=how)
    assert got.path == mine / "one.onnx"
    assert "sha256" in got.how
    assert store.find(load_card("one")) == got.path
    assert (source.exists(), got.path.is_symlink()) == (stays, is_link)
    assert owner.asked == []
    assert not list(mine.glob("*.part*"))


def test_a_file_that_is_known_by_its_tensors_is_confirmed_once(mine: Path, source: Path) -> None:
    write_card(mine, "one", b"the file that the card means")
    owner = ScriptedOwner()
    add(source, owner)
    assert owner.asked == ["file"]
    assert store.find(load_card("one")).read_bytes() == source.read_bytes()
    add(source, owner)
    assert owner.asked == ["file"]


def test_a_file_that_is_not_confirmed_is_not_taken(mine: Path, source: Path) -> None:
    write_card(mine, "one")
    with pytest.raises(ModelError, match="was not confirmed"):
        add(source, ScriptedOwner(trust=False))
    assert not (mine / "one.onnx").exists()
    assert not records.read().files


def test_a_file_that_lies_there_already_is_only_confirmed(mine: Path) -> None:
    write_card(mine, "one")
    path = write_onnx(mine / "one.onnx")
    before = path.stat()
    owner = ScriptedOwner()
    add(path, owner, "one", "move")
    assert owner.asked == ["file"]
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert store.find(load_card("one")) == path


def test_a_licence_is_asked_for(mine: Path, source: Path) -> None:
    write_card(mine, "one", source.read_bytes(), commercial_use=False)
    with pytest.raises(ModelError, match="was not accepted"):
        add(source, ScriptedOwner(accept=False))
    assert not (mine / "one.onnx").exists()
    owner = ScriptedOwner()
    add(source, owner)
    assert owner.asked == ["licence"]
    assert store.find(load_card("one"))


def test_the_name_decides_between_several(mine: Path, source: Path) -> None:
    write_card(mine, "one")
    write_card(mine, "two")
    with pytest.raises(ModelError, match="could be any of"):
        add(source, ScriptedOwner())
    assert add(source, ScriptedOwner(), "two").path == mine / "two.onnx"


def test_the_name_does_not_make_a_file_what_it_is_not(mine: Path, source: Path) -> None:
    write_card(mine, "one", side=16)
    with pytest.raises(ModelError, match="it is not one"):
        add(source, ScriptedOwner(), "one")


@pytest.mark.parametrize("name", ["", "exported"])
def test_a_card_that_lies_beside_its_file_is_taken_along(tmp_path: Path, mine: Path, name: str) -> None:
    path = write_onnx(tmp_path / "exported.onnx")
    card = write_card(tmp_path, "exported", path.read_bytes())
    got = add(path, ScriptedOwner(), name)
    assert got.path == mine / "exported.onnx"
    assert got.how == "its sha256 is the one on the card; its card came with it"
    assert (mine / "exported.toml").read_bytes() == card.read_bytes()
    assert store.find(load_card("exported"))
    assert not list(mine.glob("*.part*"))


def test_a_card_beside_a_file_takes_nobodys_place(tmp_path: Path, mine: Path) -> None:
    path = write_onnx(tmp_path / "one.onnx")
    write_card(tmp_path, "one", b"what it is elsewhere")
    before = write_card(mine, "one", path.read_bytes()).read_bytes()
    add(path, ScriptedOwner())
    assert (mine / "one.toml").read_bytes() == before
    write_card(tmp_path, "two", path.read_bytes(), file="one.onnx")
    add(path.rename(tmp_path / "two.onnx"), ScriptedOwner())
    assert not (mine / "two.toml").exists(), "its file has the name of another model's"


def test_what_has_no_name_has_no_card_beside_it() -> None:
    with pytest.raises(ModelError, match="is no file"):
        add(Path("/"), ScriptedOwner())


def test_a_wrong_card_beside_a_file_is_told(tmp_path: Path, mine: Path) -> None:
    path = write_onnx(tmp_path / "exported.onnx")
    (tmp_path / "exported.toml").write_text("name = 1", encoding="utf-8")
    with pytest.raises(ModelError, match=r"exported\.toml"):
        add(path, ScriptedOwner())
    assert not mine.exists()


def test_a_model_without_a_card_is_told_where_to_write_one(tmp_path: Path, mine: Path) -> None:
    path = tmp_path / "face.dfm"
    path.write_bytes(b"whatever")
    with pytest.raises(ModelError, match="no model card 'my_own'") as caught:
        add(path, ScriptedOwner(), "my_own")
    assert caught.value.hint.startswith("see which of the ")
    assert caught.value.hint.endswith(f"write my_own.toml into {mine} first (README, Models)")


def test_a_disk_that_fills_up_leaves_the_old_file(mine: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_card(mine, "one", source.read_bytes())
    (mine / "one.onnx").write_bytes(b"old")

    def fill(_: Path, part: Path) -> None:
        part.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", fill)
    with pytest.raises(ModelError, match=r"no room for .*: the disk is full"):
        add(source, ScriptedOwner())
    assert (mine / "one.onnx").read_bytes() == b"old"
    assert not list(mine.glob("*.part*"))


def test_a_file_that_changes_while_it_is_copied_is_not_taken(
    mine: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_card(mine, "one", source.read_bytes())
    monkeypatch.setattr(shutil, "copyfile", lambda _, part: part.write_bytes(b"changed"))
    with pytest.raises(ModelError, match="changed while it was copied"):
        add(source, ScriptedOwner())
    assert not (mine / "one.onnx").exists()
    assert not list(mine.glob("*.part*"))


def test_a_folder_that_is_a_file_is_told(mine: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_card(mine, "one", source.read_bytes())
    (mine / "below").write_bytes(b"")
    monkeypatch.setenv("DOPPELCAM_MODELS", str(mine / "below"))
    monkeypatch.setattr("engines.card.card_folders", lambda: (mine,))
    with pytest.raises(ModelError, match=r"cannot be written|cannot be read"):
        add(source, ScriptedOwner())
