"""Which weights a file should hold is told without reading it wherever its size tells."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from engines import store
from engines.card import Copy
from engines.errors import ModelError
from engines.store import proof
from realtime.models import Models
from tests.helpernets import arcface

ONE, OTHER = "1" * 64, "2" * 64


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"x" * 1000)
    monkeypatch.setenv("DOPPELCAM_MODELS", str(tmp_path))
    return path


@pytest.mark.parametrize(
    ("card_size", "copy_size", "expected"),
    [
        (1000, None, ONE),
        (1000, 999, ONE),
        (999, 1000, OTHER),
        (0, None, ONE),
        (1000, 1000, "read"),
        (1000, 0, "read"),
        (999, 998, "read"),
    ],
)
def test_the_file_is_read_only_when_its_size_does_not_tell(
    card_size: int, copy_size: int | None, expected: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    original = proof.digest

    def digest(path: Path) -> str:
        read.append(path)
        return original(path)

    monkeypatch.setattr(proof, "digest", digest)
    copies = () if copy_size is None else (Copy(copy_size, OTHER),)
    card = replace(arcface().card, sha256=ONE, size_bytes=card_size, copies=copies)
    found = store.fingerprint(file, card)
    assert found == (hashlib.sha256(b"x" * 1000).hexdigest() if expected == "read" else expected)
    assert bool(read) == (expected == "read")


def test_a_model_that_is_not_here_is_told_with_the_way_to_it(file: Path) -> None:
    with Models() as models, pytest.raises(ModelError, match=r"w600k_r50\.onnx is in none of") as error:
        models.fingerprint("w600k_r50")
    assert error.value.hint
