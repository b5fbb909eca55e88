"""Which file of a card is used, and when it is refused."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import date
from hashlib import sha256
from pathlib import Path

import pytest

from engines import store
from engines.card import NOT_STATED, Copy, Licence, ModelCard, load_card, names
from engines.errors import ModelError
from engines.registry import open_engine
from engines.store import records
from engines.store.state import state
from tests.own_models import write_card

DATA = b"weights" * 100
COPY = b"converted" * 100
CARD = replace(
    load_card("face_landmark"),
    file="w.onnx",
    size_bytes=len(DATA),
    sha256=sha256(DATA).hexdigest(),
    runtimes=("litert",),
)
NO_HASH = replace(CARD, name="mystery", size_bytes=0, sha256="")
RESEARCH = replace(CARD, licence=replace(CARD.licence, name="Research", holder="Lab", commercial_use=False))


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own folder."""
    folder = tmp_path / "mine"
    folder.mkdir()
    monkeypatch.setenv("DOPPELCAM_MODELS", str(folder))
    monkeypatch.delenv("DOPPELCAM_OFFLINE", raising=False)
    return folder


def test_the_first_folder_that_has_the_file_wins(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    second.mkdir()
    (second / "w.onnx").write_bytes(DATA)
    assert store.find(CARD, (first, second)) == second / "w.onnx"
    first.mkdir()
    (first / "w.onnx").write_bytes(DATA)
    assert store.find(CARD, (first, second)) == first / "w.onnx"


def test_offline_folders_come_after_the_users_and_before_the_embedded(
    tmp_path: Path, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sticks = [tmp_path / "stick", tmp_path / "share"]
    monkeypatch.setenv("DOPPELCAM_OFFLINE", os.pathsep.join(map(str, sticks)))
    sticks[1].mkdir()
    (sticks[1] / "w.onnx").write_bytes(DATA)
    assert store.find(CARD) == sticks[1] / "w.onnx"
    assert state(CARD)[0] == "offline"
    (mine / "w.onnx").write_bytes(DATA)
    assert store.find(CARD) == mine / "w.onnx"
    assert state(CARD)[0] == "yours"
    assert store.find(load_card("face_landmark")).parent == store.EMBEDDED


def test_a_missing_file_names_every_folder_and_the_origin(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        store.find(CARD, (tmp_path / "a", tmp_path / "b"))
    assert str(tmp_path / "a") in caught.value.message
    assert str(tmp_path / "b") in caught.value.message
    assert CARD.licence.origin in caught.value.hint


def test_what_can_be_fetched_says_how() -> None:
    with pytest.raises(ModelError) as caught:
        store.find(replace(CARD, mirrors=("https://models.example/w.onnx",)))
    assert (
        caught.value.hint == "doppelcam models pull face_landmark; where you have the file: doppelcam models add FILE"
    )


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (DATA[:-1], f"has {len(DATA) - 1} bytes, its card says {len(DATA)}"),
        (b"", "has 0 bytes"),
        (b"X" + DATA[1:], "has sha256"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "w.onnx").write_bytes(data)
    with pytest.raises(ModelError, match=said):
        store.find(CARD, (tmp_path,))


def test_a_damaged_file_does_not_hide_behind_a_good_one(tmp_path: Path) -> None:
    for folder, data in (("old", b"old"), ("theirs", DATA)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "w.onnx").write_bytes(data)
    with pytest.raises(ModelError, match="old"):
        store.find(CARD, (tmp_path / "old", tmp_path / "theirs"))


def test_a_copy_that_the_card_names_is_as_good(mine: Path) -> None:
    (mine / "w.onnx").write_bytes(COPY)
    with pytest.raises(ModelError, match=f"has {len(COPY)} bytes"):
        store.find(CARD)
    card = replace(CARD, copies=(Copy(len(COPY), sha256(COPY).hexdigest()),))
    assert store.find(card) == mine / "w.onnx"
    (mine / "w.onnx").write_bytes(DATA)
    assert store.find(card) == mine / "w.onnx"


def test_a_file_without_a_known_hash_is_used_only_once_it_was_confirmed(mine: Path) -> None:
    (mine / "w.onnx").write_bytes(DATA)
    assert state(NO_HASH)[0] == "not confirmed"
    with pytest.raises(ModelError, match="nobody has published the sha256 of model mystery") as caught:
        store.find(NO_HASH)
    assert caught.value.hint == f"doppelcam models add {mine / 'w.onnx'} --as mystery"
    records.confirm(NO_HASH, sha256(DATA).hexdigest(), len(DATA))
    assert store.find(NO_HASH) == mine / "w.onnx"
    assert state(NO_HASH)[0] == "yours, unpublished"
    (mine / "w.onnx").write_bytes(b"X" + DATA[1:])
    with pytest.raises(ModelError, match="has sha256"):
        store.find(NO_HASH)


def test_a_confirmed_file_is_told_from_a_published_one_of_its_size(mine: Path) -> None:
    other = b"X" + DATA[1:]
    records.confirm(CARD, sha256(other).hexdigest(), len(other))
    (mine / "w.onnx").write_bytes(other)
    assert state(CARD)[0] == "yours, unpublished"
    (mine / "w.onnx").write_bytes(DATA)
    assert state(CARD)[0] == "yours"
    records.confirm(CARD, sha256(DATA).hexdigest(), len(DATA))  # before its maker published it
    assert state(CARD)[0] == "yours"


def test_a_maker_who_states_no_licence_has_not_forbidden_anything(mine: Path) -> None:
    (mine / "w.onnx").write_bytes(DATA)
    silent = replace(RESEARCH, licence=replace(RESEARCH.licence, name=NOT_STATED))
    with pytest.raises(ModelError, match="has no licence that its maker states") as caught:
        store.find(silent)
    assert "commercial" not in caught.value.message


def test_a_licence_is_accepted_once_for_all_models_under_it(mine: Path) -> None:
    (mine / "w.onnx").write_bytes(DATA)
    assert state(RESEARCH)[0] == "not accepted"
    with pytest.raises(ModelError, match="not for commercial use") as caught:
        store.find(RESEARCH)
    assert "doppelcam models pull face_landmark" in caught.value.hint
    records.accept(RESEARCH.licence)
    assert store.find(RESEARCH) == mine / "w.onnx"
    assert store.find(replace(RESEARCH, name="sibling")) == mine / "w.onnx"
    with pytest.raises(ModelError, match="Other lab"):
        store.find(replace(RESEARCH, licence=replace(RESEARCH.licence, holder="Other lab")))
    noted = json.loads((mine / "known.json").read_text(encoding="utf-8"))
    assert noted["licences"] == {"Research, Lab": date.today().isoformat()}


def test_decisions_do_not_push_each_other_out() -> None:
    records.accept(RESEARCH.licence)
    records.confirm(NO_HASH, "0" * 64, 5)
    records.accept(Licence("Other", "Lab", commercial_use=False, origin=""))
    records.confirm(CARD, "1" * 64, 6)
    known = records.read()
    assert known.licences.keys() == {"Research, Lab", "Other, Lab"}
    assert known.files.keys() == {"mystery", "face_landmark"}


@pytest.mark.parametrize("damage", [b"{", b"\xff\xfe", b'{"files": {"a": 1}}', b'{"unknown": 1}', b"[]"])
def test_damaged_records_are_told_and_never_overwritten(mine: Path, damage: bytes) -> None:
    (mine / "known.json").write_bytes(damage)
    (mine / "w.onnx").write_bytes(DATA)
    for attempt in (lambda: store.find(RESEARCH), lambda: records.accept(RESEARCH.licence)):
        with pytest.raises(ModelError, match=r"known\.json is damaged"):
            attempt()
    assert (mine / "known.json").read_bytes() == damage


def test_an_embedded_model_needs_no_decision(mine: Path) -> None:
    (mine / "known.json").write_text("damaged", encoding="utf-8")
    assert store.find(load_card("face_landmark")).parent == store.EMBEDDED


def test_an_embedded_model_needs_no_licence_to_be_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "EMBEDDED", tmp_path)
    (tmp_path / "w.onnx").write_bytes(DATA)
    assert store.find(RESEARCH, (tmp_path,)) == tmp_path / "w.onnx"


def test_the_environment_names_the_users_folder(mine: Path) -> None:
    (mine / "w.onnx").write_bytes(DATA)
    assert store.find(CARD) == mine / "w.onnx"


def test_without_the_environment_the_users_folder_is_the_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOPPELCAM_MODELS", raising=False)
    assert store.user_folder().name == "models"
    assert "doppelcam" in str(store.user_folder())


def test_no_engine_opens_an_unverified_file(mine: Path) -> None:
    card = load_card("face_landmark")
    (mine / card.file).write_bytes(bytes(card.size_bytes))
    with pytest.raises(ModelError, match="has sha256"):
        open_engine(card)


def test_a_model_is_added_by_writing_one_file(mine: Path) -> None:
    write_card(mine, "my_model", DATA, file="w.onnx")
    (mine / "w.onnx").write_bytes(DATA)
    assert "my_model" in names()
    card: ModelCard = load_card("my_model")
    assert card.family == "small"
    assert store.find(card) == mine / "w.onnx"


def test_a_users_card_may_not_take_the_place_of_one_that_comes_with_the_program(mine: Path) -> None:
    write_card(mine, "face_landmark", DATA)
    with pytest.raises(ModelError, match=r"face_landmark\.toml has the name of a card that comes with the program"):
        load_card("face_landmark")
    assert names().count("face_landmark") == 1


def test_a_name_that_is_nearly_right_is_suggested(mine: Path) -> None:
    write_card(mine, "my_model")
    with pytest.raises(ModelError) as caught:
        load_card("my_modle")
    assert caught.value.hint == "use one of: my_model"
