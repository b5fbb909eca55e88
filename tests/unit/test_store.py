from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from engines import store
from engines.card import load_card
from engines.errors import ModelError
from engines.registry import open_engine

DATA = b"weights" * 100
CARD = replace(
    load_card("face_landmark"),
    file="w.bin",
    size_bytes=len(DATA),
    sha256=sha256(DATA).hexdigest(),
    runtimes=("litert",),
)


def test_the_first_folder_that_has_the_file_wins(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    second.mkdir()
    (second / "w.bin").write_bytes(DATA)
    assert store.find(CARD, (first, second)) == second / "w.bin"
    first.mkdir()
    (first / "w.bin").write_bytes(DATA)
    assert store.find(CARD, (first, second)) == first / "w.bin"


def test_a_missing_file_names_every_folder_and_the_origin(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        store.find(CARD, (tmp_path / "a", tmp_path / "b"))
    assert str(tmp_path / "a") in caught.value.message
    assert str(tmp_path / "b") in caught.value.message
    assert CARD.licence.origin in caught.value.hint


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (DATA[:-1], f"has {len(DATA) - 1} bytes, its card says {len(DATA)}"),
        (b"", "has 0 bytes"),
        (b"X" + DATA[1:], "has sha256"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "w.bin").write_bytes(data)
    with pytest.raises(ModelError, match=said):
        store.find(CARD, (tmp_path,))


def test_a_damaged_file_does_not_hide_behind_a_good_one(tmp_path: Path) -> None:
    for folder, data in (("mine", b"old"), ("theirs", DATA)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "w.bin").write_bytes(data)
    with pytest.raises(ModelError, match="mine"):
        store.find(CARD, (tmp_path / "mine", tmp_path / "theirs"))


def test_the_environment_names_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOPPELCAM_MODELS", str(tmp_path))
    (tmp_path / "w.bin").write_bytes(DATA)
    assert store.find(CARD) == tmp_path / "w.bin"


def test_without_the_environment_the_users_folder_is_the_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOPPELCAM_MODELS", raising=False)
    assert store.user_folder().name == "models"
    assert "doppelcam" in str(store.user_folder())


def test_no_engine_opens_an_unverified_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOPPELCAM_MODELS", str(tmp_path))
    card = load_card("face_landmark")
    (tmp_path / card.file).write_bytes(bytes(card.size_bytes))
    with pytest.raises(ModelError, match="has sha256"):
        open_engine(card)
