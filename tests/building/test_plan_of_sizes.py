"""A network of free size is built once for a range of sizes, or pinned to one of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import onnx
import pytest

from engines.building import BuildSettings, Outcome, build
from engines.building.settings import fixed
from engines.card import ModelCard, load_card
from engines.cuda.driver import Gpu
from engines.errors import ModelError
from engines.gpu_report import plans
from engines.plan import find_plan
from realtime.commands.build import summary
from tests import cards
from tests.building.stand import REAL, asked_of_builder
from tests.freenets import SIZES, free_detector


@pytest.fixture
def card(mine: Path) -> ModelCard:
    return load_card(cards.put(mine, free_detector()))


def made(card: ModelCard, settings: BuildSettings | None = None) -> Outcome:
    return build(card, settings or BuildSettings(), command=REAL)


def test_it_is_built_for_the_range_of_its_card_and_then_found(card: ModelCard) -> None:
    assert card.sizes == SIZES
    first = made(card)
    assert first.plan.path.name == "test_free.1x3x32-128x64-128.fp16.plan"
    assert asked_of_builder(first.plan)["profile"] == {"picture": [[1, 3, 32, 64], [1, 3, 64, 96], [1, 3, 128, 128]]}
    note = first.plan.sidecar
    assert note.sizes == SIZES
    assert note.shapes == {"picture": (1, 3, -1, -1), "rows": (-1, 4)}
    assert int(note.settings["islands"]) == 8 + 4, "the norm, and what works out the size of a layer"
    again = made(card)
    assert not again.is_new
    assert again.plan == first.plan
    gpu = Gpu(note.gpu, note.capability, 1, note.driver, note.uuid)
    assert find_plan(fixed(card, BuildSettings()), note.model_sha256, gpu, note.tensorrt) == first.plan


def test_a_size_pins_it_and_lies_beside_the_range(card: ModelCard) -> None:
    free, pinned = made(card), made(card, BuildSettings(size=(96, 64)))
    assert pinned.is_new
    assert pinned.plan.path.name == "test_free.1x3x64x96.fp16.plan"
    assert "profile" not in asked_of_builder(pinned.plan)
    assert pinned.plan.sidecar.sizes is None
    assert pinned.plan.sidecar.shapes == {"picture": (1, 3, 64, 96), "rows": (96, 4)}
    assert free.plan.path.is_file()


def test_another_range_on_the_card_is_another_plan(card: ModelCard, mine: Path) -> None:
    made(card)
    other = replace(card, sizes=replace(SIZES, best=(64, 64)))
    outcome = made(other)
    assert outcome.is_new
    assert "was built for pictures of 64x32 to 128x128, best 96x64, the card says" in outcome.reasons[0]


def test_a_card_of_free_size_without_a_range_needs_a_size_as_before(card: ModelCard) -> None:
    plain = replace(card, sizes=None)
    with pytest.raises(ModelError, match="the size of picture is not fixed"):
        made(plain)
    assert made(plain, BuildSettings(size=(64, 64))).plan.sidecar.shapes["picture"] == (1, 3, 64, 64)
    square = replace(plain, decode={"side": 96})
    assert made(square).plan.sidecar.shapes["picture"] == (1, 3, 96, 96)


def test_whole_numbers_are_found_out_at_the_best_size(mine: Path, tmp_path: Path) -> None:
    smooth = free_detector("test_smooth", plain=True)
    card = load_card(cards.put(mine, smooth))
    folder = tmp_path / "pictures"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(8):
        cv2.imwrite(str(folder / f"{number}.png"), rng.integers(0, 256, (48, 64, 3), np.uint8))
    plan = made(card, BuildSettings("int8", calibration=folder)).plan
    assert plan.sidecar.sizes == SIZES
    assert plan.sidecar.settings["whole_number_layers"] == 1
    assert onnx.load(mine / "test_smooth.onnx").graph.input[0].name in asked_of_builder(plan)["profile"]


def test_a_person_is_told_which_sizes_it_serves(card: ModelCard) -> None:
    outcome = made(card)
    told = [[str(cell) for cell in column.cells] for column in summary(outcome).columns]
    assert dict(zip(*told, strict=True))["pictures"] == "64x32 to 128x128"
    (line,) = [finding for finding in plans() if finding.name == "plan of test_free"]
    assert "fp16, pictures of 64x32 to 128x128, for RTX 4090" in line.found.reason
