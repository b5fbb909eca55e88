from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engines import registry, store
from engines.batch import batch_of, open_batched, with_batch
from engines.card import ModelCard, load_card
from engines.contract import Engine
from engines.errors import EngineError, ModelError
from engines.onnxrt import OnnxRuntimeEngine

pytest.importorskip("onnx", reason="the tests build networks with onnx, which is in the extra dev")

from tests import networks


def opened(path: Path, card: ModelCard, pictures: int) -> Engine:
    return open_batched(card, pictures, lambda asked: OnnxRuntimeEngine(asked, path))


def test_a_card_for_several_pictures_changes_pictures_and_what_follows_from_them() -> None:
    card = networks.write_swapper(Path("/dev/null") if sys.platform != "win32" else Path("NUL"))[1]
    wide = with_batch(card, 4)
    assert [spec.shape for spec in wide.inputs] == [(4, 3, 8, 8), (1, 4)]
    assert [spec.shape for spec in wide.outputs] == [(4, 3, 8, 8)]
    assert (batch_of(card), batch_of(wide)) == (1, 4)
    assert with_batch(wide, 1) == card
    assert batch_of(with_batch(wide, -1)) == -1


def test_outputs_that_do_not_count_pictures_stay_as_they_are() -> None:
    card = load_card("scrfd_500m")
    assert with_batch(card, 2).outputs == card.outputs


@pytest.mark.parametrize("declared", [1, "n"])
def test_tiles_in_one_run_give_what_they_give_one_by_one(tmp_path: Path, declared: int | str) -> None:
    path, card = networks.write_swapper(tmp_path / "swapper.onnx", batch=declared)
    before = path.read_bytes()
    engine = opened(path, card, 4)
    rng = np.random.default_rng(9)
    tiles, source = rng.random((4, 3, 8, 8), np.float32), rng.random((1, 4), np.float32)
    together = engine.run(tiles, source)[0].copy()
    single = OnnxRuntimeEngine(card, path)
    for number in range(4):
        np.testing.assert_allclose(
            together[number : number + 1], single.run(tiles[number : number + 1], source)[0], atol=1e-6
        )
    assert path.read_bytes() == before
    with pytest.raises(EngineError, match=r"'target' must be a C-contiguous float32 \(4, 3, 8, 8\)"):
        engine.run(tiles[:1], source)


def test_a_card_for_any_number_serves_a_certain_one(tmp_path: Path) -> None:
    path, card = networks.write_swapper(tmp_path / "swapper.onnx", batch="n")
    engine = opened(path, with_batch(card, -1), 3)
    assert engine.inputs[0].shape == (3, 3, 8, 8)
    assert engine.run(np.zeros((3, 3, 8, 8), np.float32), np.zeros((1, 4), np.float32))[0].shape == (3, 3, 8, 8)


@pytest.mark.parametrize(
    ("kind", "said"),
    [("stiff", "(ONNX Runtime cannot run|the file has)"), ("mixing", "'output' of picture 1 is .*% apart")],
)
def test_a_graph_that_cannot_take_several_is_refused_with_the_reason(tmp_path: Path, kind: str, said: str) -> None:
    path, card = networks.write_swapper(tmp_path / "swapper.onnx", kind)
    with pytest.raises(EngineError, match=f"model swapper cannot take 3 pictures in one run: .*{said}") as caught:
        opened(path, card, 3)
    assert caught.value.hint == "take them one after another (batch 1)"


def test_what_was_opened_is_closed_when_the_proof_fails(tmp_path: Path) -> None:
    path, card = networks.write_swapper(tmp_path / "swapper.onnx", "mixing")
    made: list[OnnxRuntimeEngine] = []

    def make(asked: ModelCard) -> Engine:
        made.append(OnnxRuntimeEngine(asked, path))
        return made[-1]

    with pytest.raises(EngineError, match="apart"):
        open_batched(card, 2, make)
    assert len(made) == 2
    for engine in made:
        with pytest.raises(EngineError, match="closed"):
            engine.run()


def test_without_the_package_onnx_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, card = networks.write_swapper(tmp_path / "swapper.onnx")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(EngineError, match="declares a single picture, and the package onnx"):
        opened(path, card, 2)


def test_the_door_opens_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, card = networks.write_swapper(tmp_path / "swapper.onnx")
    monkeypatch.setattr(store, "find", lambda _: path)
    engine = registry.open_engine(card, threads=1, batch=4)
    assert engine.inputs[0].shape == (4, 3, 8, 8)
    assert registry.open_engine(replace(card)).inputs[0].shape == (1, 3, 8, 8)


def test_whatever_stops_the_opening_the_engines_opened_so_far_are_closed(tmp_path: Path) -> None:
    path, card = networks.write_swapper(tmp_path / "swapper.onnx")
    made: list[OnnxRuntimeEngine] = []

    def make(asked: ModelCard) -> Engine:
        if made:
            raise ModelError("the file is gone", "bring it back")
        made.append(OnnxRuntimeEngine(asked, path))
        return made[0]

    with pytest.raises(ModelError, match="gone"):
        open_batched(card, 4, make)
    with pytest.raises(EngineError, match="closed"):
        made[0].run()
