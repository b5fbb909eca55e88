from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra train is not installed")
pytest.importorskip("onnx", reason="the extra train is not installed")
pytest.importorskip("onnxscript", reason="the extra train is not installed")

from engines.card import decode_as, load_card
from engines.errors import ModelError
from engines.modular import cards
from engines.modular.checkpoint import untrained
from engines.modular.export import Exported, export, write
from engines.registry import open_engine
from engines.store import records
from realtime.people.recognise import RecogniserRule
from realtime.swappers.latent import LatentSwapperRule
from tests.modularnets import CONFIG, SIZES, Modular


@pytest.fixture
def exported(modular: Modular) -> Exported:
    return modular.exported


@pytest.fixture
def folder(exported: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The export, where the program looks for a user's own models."""
    monkeypatch.setenv("DOPPELCAM_MODELS", str(tmp_path))
    write(exported.files, tmp_path)
    return tmp_path


@pytest.fixture
def accepted(folder: Path) -> None:
    """The licence of the checkpoint, which says nothing, is accepted."""
    records.accept(load_card("modular_gated_encoder").licence)


def test_every_module_is_compared_at_both_batches(exported: Exported) -> None:
    compared = [(one.module, one.batch) for one in exported.differences]
    modules = ["encoder", "fusion gated", "generator", *(f"swapper {size}" for size in SIZES)]
    assert compared == [(module, batch) for module in modules for batch in (1, 2)]
    assert all(one.greatest <= one.allowed for one in exported.differences)


def test_each_model_lies_beside_a_card_that_is_true_to_it(folder: Path) -> None:
    names = {"modular_gated_encoder", *(f"modular_gated_{size}" for size in SIZES)}
    assert {path.name for path in folder.iterdir()} == {f"{name}.{end}" for name in names for end in ("onnx", "toml")}
    for name in names:
        card = load_card(name, folder)
        content = (folder / card.file).read_bytes()
        assert (card.size_bytes, card.sha256) == (len(content), hashlib.sha256(content).hexdigest())


@pytest.mark.parametrize("size", SIZES)
def test_the_program_opens_and_runs_a_swapper(size: int, accepted: None) -> None:
    card = load_card(f"modular_gated_{size}")
    rule = decode_as(card, LatentSwapperRule)
    assert (card.family, rule.template) == ("latent", "arcface_128")
    assert (rule.latent.recogniser, rule.latent.kind) == ("modular_gated_encoder", "unit")
    target = np.random.default_rng(0).uniform(-1, 1, (1, 3, size, size)).astype(np.float32)
    engine = open_engine(card)
    picture, mask = engine.run(target, np.eye(1, 512, dtype=np.float32))
    engine.close()
    pixels = picture / card.outputs[0].scale[0] + card.outputs[0].mean[0]
    assert (picture.shape, mask.shape) == ((1, 3, size, size), (1, 1, size, size))
    assert 0 <= pixels.min() < pixels.max() <= 255
    assert pixels.std() > 5


def test_the_card_of_an_encoder_is_one_of_a_recogniser(folder: Path) -> None:
    card = load_card("modular_gated_encoder")
    assert (card.family, decode_as(card, RecogniserRule).template) == ("arcface", "arcface_112_v2")


def test_cards_pin_what_a_pixel_becomes(folder: Path) -> None:
    swapper, encoder = load_card(f"modular_gated_{SIZES[0]}"), load_card("modular_gated_encoder")
    for spec in (swapper.inputs[0], encoder.inputs[0]):
        assert spec.colour == "RGB"
        assert [(200 - m) * s for m, s in zip(spec.mean, spec.scale, strict=True)] == pytest.approx([0.5686275] * 3)
    made = swapper.outputs[0]
    assert [1 / s + m for m, s in zip(made.mean, made.scale, strict=True)] == pytest.approx([255] * 3)


def test_a_checkpoint_decides_the_weights(accepted: None, modular: Modular) -> None:
    face = np.random.default_rng(1).uniform(-1, 1, (1, 3, 112, 112)).astype(np.float32)
    engine = open_engine(load_card("modular_gated_encoder"))
    (embedding,) = engine.run(face)
    engine.close()
    mine, random = (
        part.encoder(torch.from_numpy(face)).detach().numpy() for part in (modular.pipeline, untrained(CONFIG))
    )
    peak = np.abs(mine).max()
    assert np.abs(embedding - mine).max() < 1e-4 * peak
    assert np.abs(embedding - random).max() > 0.1 * peak


@pytest.mark.parametrize("words", ["checkpoint \U0001f600.pt", 'checkpoint "a\\b".pt'])
def test_whatever_a_checkpoint_is_called_its_card_can_be_read(folder: Path, words: str) -> None:
    (folder / "odd.toml").write_text(cards.encoder_card("odd", b"", cards.Origin(True, words)), encoding="utf-8")
    assert load_card("odd", folder).licence.origin == words


def test_only_weights_that_nobody_trained_are_free_of_the_licence_of_their_checkpoint(folder: Path) -> None:
    trained = load_card("modular_gated_encoder", folder).licence
    assert (trained.origin, trained.commercial_use) == ("checkpoint mine.pt", False)
    (folder / "random.toml").write_text(cards.encoder_card("random", b"", cards.Origin(False, "random numbers")))
    assert load_card("random", folder).licence.commercial_use


def test_what_does_not_compute_the_same_is_never_written(exported: Exported, monkeypatch: pytest.MonkeyPatch) -> None:
    other = exported.files["modular_gated_encoder.onnx"]
    monkeypatch.setattr("engines.modular.export.to_onnx", lambda module, inputs, outputs: other)
    with pytest.raises(ModelError, match="encoder: ONNX Runtime differs"):
        export(CONFIG, SIZES, None, lambda words: None)


def test_the_disk_filling_up_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.onnx").write_bytes(b"old")
    original = Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        if "b.onnx" in path.name:
            original(path, content[:1])
            raise OSError(28, "No space left on device")
        return original(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ModelError, match=r"b\.onnx.* full"):
        write({"a.onnx": b"new", "b.onnx": b"new"}, tmp_path)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.onnx", b"old")]


@pytest.mark.parametrize("failing", [0, 1])
def test_a_file_is_whole_or_not_there_when_renaming_fails(
    failing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    renamed: list[Path] = []
    original = Path.replace

    def replace(part: Path, path: Path) -> Path:
        if len(renamed) == failing:
            raise PermissionError(13, "Permission denied")
        renamed.append(path)
        return original(part, path)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(ModelError, match="cannot be written"):
        write({"m.onnx": b"model", "m.toml": b"card"}, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"][:failing]  # never a card without its model


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ModelError, match=f"file{os.sep * 2}deeper" if os.sep == "\\" else "file/deeper"):
        write({"m.onnx": b""}, tmp_path / "file" / "deeper")
