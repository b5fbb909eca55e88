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
from engines.modular import parity
from engines.modular.checkpoint import untrained
from engines.modular.export import Exported, export, write
from engines.modular.swapper import PipelineConfig
from engines.registry import open_engine
from realtime.people.recognise import RecogniserRule
from realtime.swappers.latent import LatentSwapperRule

SIZES = (128, 256)


@pytest.fixture(scope="module")
def exported() -> Exported:
    return export(PipelineConfig(8, 1, "gated"), SIZES, None, lambda words: None)


@pytest.fixture
def folder(exported: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The export, where the program looks for a user's own models."""
    monkeypatch.setenv("DOPPELCAM_MODELS", str(tmp_path))
    write(exported.files, tmp_path)
    return tmp_path


def test_every_module_is_compared_at_both_batches(exported: Exported) -> None:
    compared = [(one.module, one.batch) for one in exported.differences]
    modules = ["encoder", "fusion gated", "generator", "swapper 128", "swapper 256"]
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
def test_the_program_opens_and_runs_a_swapper(size: int, folder: Path) -> None:
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


def test_the_program_opens_and_runs_an_encoder(folder: Path) -> None:
    card = load_card("modular_gated_encoder")
    assert (card.family, decode_as(card, RecogniserRule).template) == ("arcface", "arcface_112_v2")
    engine = open_engine(card)
    (embedding,) = engine.run(np.zeros((1, 3, 112, 112), np.float32))
    engine.close()
    assert embedding.shape == (1, 512)
    assert np.linalg.norm(embedding) > 0


def test_cards_pin_what_a_pixel_becomes(folder: Path) -> None:
    swapper, encoder = load_card("modular_gated_128"), load_card("modular_gated_encoder")
    for spec in (swapper.inputs[0], encoder.inputs[0]):
        assert spec.colour == "RGB"
        assert [(200 - m) * s for m, s in zip(spec.mean, spec.scale, strict=True)] == pytest.approx([0.5686275] * 3)
    made = swapper.outputs[0]
    assert [1 / s + m for m, s in zip(made.mean, made.scale, strict=True)] == pytest.approx([255] * 3)


def test_a_checkpoint_decides_the_weights_and_the_licence(tmp_path: Path) -> None:
    pipeline = untrained(PipelineConfig(8, 1))
    torch.nn.init.zeros_(pipeline.encoder.embed.weight)
    torch.nn.init.ones_(pipeline.encoder.embed.bias)
    torch.save(pipeline.state_dict(), tmp_path / "mine.pt")
    write(export(pipeline.config, (), tmp_path / "mine.pt", lambda words: None).files, tmp_path)
    card = load_card("modular_linear_encoder", tmp_path)
    assert card.licence.origin == "checkpoint mine.pt"
    assert not card.licence.commercial_use
    from engines.onnxrt import OnnxRuntimeEngine

    (embedding,) = OnnxRuntimeEngine(card, tmp_path / card.file).run(np.zeros((1, 3, 112, 112), np.float32))
    np.testing.assert_array_equal(embedding, np.ones((1, 512)))


def test_what_does_not_compute_the_same_is_never_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parity, "TOLERANCE", 0.0)
    with pytest.raises(ModelError, match="encoder: ONNX Runtime differs"):
        export(PipelineConfig(8, 1), (128,), None, lambda words: None)


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
