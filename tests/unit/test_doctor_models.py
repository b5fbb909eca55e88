"""What the doctor says of models: the program's own must be well, a person's are looked at, the rest are counted."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from engines.card import load_card
from engines.folders import EMBEDDED
from engines.store.records import confirm
from realtime import doctor
from tests.own_models import write_card

DATA = b"weights"


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DOPPELCAM_MODELS", str(tmp_path))
    monkeypatch.delenv("DOPPELCAM_OFFLINE", raising=False)
    return tmp_path


def looked_at() -> dict[str, doctor.Check]:
    return {check.name: check for check in doctor.CHECKS["models"]()}


def test_what_is_needed_is_what_comes_with_the_program() -> None:
    shipped = {path.name for path in EMBEDDED.glob("*.tflite")}
    assert {load_card(name).file for name in doctor.EMBEDDED_MODELS} == shipped
    checks = looked_at()
    assert {name for name, check in checks.items() if check.needed} == set(doctor.EMBEDDED_MODELS)
    assert "not here" in checks["others"].found


def test_a_model_of_the_program_that_is_gone_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engines.folders.EMBEDDED", tmp_path / "gone")
    check = looked_at()["face_landmark"]
    assert (check.state, check.needed) == ("broken", True)


def test_a_persons_own_model_is_verified_and_stops_nothing(mine: Path) -> None:
    write_card(mine, "own", DATA)
    assert "own" not in looked_at()
    (mine / "own.onnx").write_bytes(DATA)
    assert looked_at()["own"].state == "ok"
    assert looked_at()["own"].found == "0.0 MB, as on its card"
    (mine / "own.onnx").write_bytes(b"damaged")
    check = looked_at()["own"]
    assert (check.state, check.needed) == ("broken", False)
    assert check.fix


def test_a_file_that_only_its_owner_vouches_for_is_told_as_such(mine: Path) -> None:
    write_card(mine, "own", DATA)
    (mine / "own.onnx").write_bytes(b"another file")
    confirm(load_card("own"), sha256(b"another file").hexdigest(), len(b"another file"))
    check = looked_at()["own"]
    assert (check.state, check.found) == ("ok", "0.0 MB, confirmed by you, not a published file")


def test_a_persons_wrong_card_stops_nothing(mine: Path) -> None:
    (mine / "torn.toml").write_text("name =", encoding="utf-8")
    check = looked_at()["torn"]
    assert (check.state, check.needed) == ("broken", False)


def test_a_card_that_its_family_cannot_read_is_told_before_a_run_finds_out(mine: Path) -> None:
    card = write_card(mine, "own", DATA, family="arcface")
    card.write_text(
        card.read_text("utf-8") + '\n[decode]\ntemplate = "arcface_112_v2"\ntempalte = ""\n', encoding="utf-8"
    )
    (mine / "own.onnx").write_bytes(DATA)
    check = looked_at()["own"]
    assert (check.state, check.needed) == ("broken", False)
    assert "tempalte" in check.found
