"""One plan for all sizes of a network, each engine set to one of them when it is opened; what is outside is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the tests build networks with onnx, which is in the extra dev")

from engines.card import ModelCard
from engines.contract import TensorSpec
from engines.cuda.device import CudaDevice
from engines.errors import EngineError
from engines.fp16.check import run
from engines.graph import prepare
from engines.plan import Plan, built_plans, find_plan, keep, plan_path
from engines.sizes import Sizes, profile_of, with_size
from engines.tensorrt.engine import TensorRtEngine
from engines.tensorrt.open import open_planned
from engines.trial import trial_inputs
from tests.cuda.fake_driver import FakeDriver
from tests.freenets import SIZES, STRIDE, free_detector
from tests.kernels.host import HostKernels
from tests.trt.fake_tensorrt import VERSION, plan_of
from tests.trt.plans import GPU, MODEL_SHA256, gpu, note, trt_on

pytestmark = pytest.mark.trt_api
FREE = free_detector()
CARD = FREE.card
PATH = Path("unread.onnx")


def built(size: tuple[int, int] | None = None, card: ModelCard = CARD) -> Plan:
    """Keep a plan of all sizes, or of one."""
    planned = with_size(card, size)
    model = prepare(FREE.model, planned).model.SerializeToString()
    rows = -1 if size is None else size[0] * size[1] // STRIDE**2
    said = replace(planned, outputs=(replace(card.outputs[0], shape=(rows, 4)),))
    return keep(planned, plan_of(model), b"", note(said, sizes=card.sizes if size is None else None))


@pytest.fixture
def driver(kernels: HostKernels, monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    made = gpu(0, kernels)
    monkeypatch.setattr("engines.tensorrt.open.load", lambda: trt_on(made, profile=profile_of(CARD)))
    monkeypatch.setattr("engines.tensorrt.open.fingerprint", lambda *_: MODEL_SHA256)
    return made


def opened(driver: FakeDriver, size: tuple[int, int] | None = None, card: ModelCard = CARD) -> TensorRtEngine:
    return open_planned(card, PATH, device=CudaDevice(driver), size=size)


@pytest.mark.parametrize("size", [*SIZES.corners, (128, 32), (64, 128)])
def test_one_plan_is_run_at_any_of_its_sizes_and_then_nothing_is_free(
    driver: FakeDriver, size: tuple[int, int]
) -> None:
    built()
    engine = opened(driver, size)
    assert engine.inputs[0].size == size
    assert engine.outputs[0].shape == (size[0] * size[1] // STRIDE**2, 4)
    for seed in range(2):
        (given,) = trial_inputs(with_size(CARD, size), seed)
        np.testing.assert_allclose(engine.run(given)[0], run(FREE.model, {"picture": given})["rows"], atol=1e-5)
    (other,) = trial_inputs(with_size(CARD, (32, 64)), 0)
    with pytest.raises(EngineError, match="must be a C-contiguous float32"):
        engine.run(other)


def test_where_nobody_says_a_size_it_is_the_best_one(driver: FakeDriver) -> None:
    built()
    assert opened(driver).inputs[0].size == SIZES.best


@pytest.mark.parametrize("size", [(160, 64), (96, 24)])
def test_a_size_outside_the_range_is_refused_in_words(driver: FakeDriver, size: tuple[int, int]) -> None:
    built()
    width, height = size
    said = f"the plan of test_free takes pictures of 64x32 to 128x128, not of {width}x{height}"
    with pytest.raises(EngineError, match=said) as caught:
        opened(driver, size)
    assert caught.value.hint == f"doppelcam models build test_free --size {width}x{height}"
    del caught
    assert not [line for line in driver.allocations() if "test_free" in line[1]]


def test_a_plan_that_takes_less_than_its_note_says_is_refused_by_tensorrt() -> None:
    plan, driver = built(), gpu()
    narrow = profile_of(replace(CARD, sizes=Sizes(SIZES.least, SIZES.best, SIZES.best)))
    trt = trt_on(driver, profile=narrow)
    with pytest.raises(EngineError, match=r"does not take 'picture' as \(1, 3, 128, 128\) .*profile mismatch"):
        TensorRtEngine(with_size(CARD, SIZES.most), plan.path, driver, trt=cast(Any, trt))
    assert driver.allocations() == ()
    TensorRtEngine(with_size(CARD, SIZES.best), plan.path, driver, trt=cast(Any, trt))


def test_an_output_whose_shape_stays_open_is_refused() -> None:
    plan, driver = built(), gpu()
    trt = trt_on(driver, "free output", profile=profile_of(CARD))
    with pytest.raises(EngineError, match="does not know the shape of 'rows'"):
        TensorRtEngine(with_size(CARD, SIZES.best), plan.path, driver, trt=cast(Any, trt))
    assert driver.allocations() == ()


def test_a_card_of_no_size_is_not_opened() -> None:
    plan, driver = built(), gpu()
    trt = trt_on(driver, profile=profile_of(CARD))
    with pytest.raises(EngineError, match="leaves an axis free"):
        TensorRtEngine(CARD, plan.path, driver, trt=cast(Any, trt))


def test_a_plan_of_just_that_size_comes_first_and_one_of_another_size_last(driver: FakeDriver) -> None:
    def runs(size: tuple[int, int]) -> tuple[tuple[int, int], str]:
        engine = opened(driver, size)
        return engine.inputs[0].size, engine.runtime

    built((96, 96))
    assert runs((128, 64))[0] == (96, 96), "better than none: a picture may lie in a part of the input"
    free = built()
    assert runs((128, 64))[0] == (128, 64)
    assert runs((160, 64))[0] == (96, 96)
    built((160, 64))
    assert runs((160, 64))[0] == (160, 64)
    single = built((128, 64))
    note_of = single.path.with_suffix(".json")
    note_of.write_text(note_of.read_text().replace(VERSION, "10.13.3.9"))
    assert runs((128, 64))[0] == (128, 64), "where that plan will not do, the next one does"
    free.path.unlink()
    assert runs((128, 64))[0] == (96, 96)


def test_a_plan_of_another_network_of_that_name_is_passed_over(driver: FakeDriver) -> None:
    other = replace(CARD, inputs=(replace(CARD.inputs[0], name="image", shape=(1, 3, 64, 96)),), sizes=None)
    keep(other, plan_of(b"another"), b"", note(other))
    with pytest.raises(EngineError, match="no plan of test_free in fp16 has been built"):
        opened(driver)
    built()
    assert opened(driver).inputs[0].size == SIZES.best


def test_the_range_is_part_of_where_a_plan_lies_and_of_its_note() -> None:
    plan = built()
    assert plan.path.name == "test_free.1x3x32-128x64-128.fp16.plan"
    assert plan.path == plan_path(CARD)
    assert plan_path(with_size(CARD, SIZES.best)).name == "test_free.1x3x64x96.fp16.plan"
    assert built_plans("test_free") == (plan,)
    assert built_plans("test_free")[0].sidecar.sizes == SIZES

    def found(card: ModelCard) -> Plan | str:
        return find_plan(card, MODEL_SHA256, GPU, VERSION)

    assert found(CARD) == plan
    assert "no plan of test_free" in str(found(with_size(CARD, SIZES.best)))
    assert "no plan of test_free" in str(found(replace(CARD, sizes=replace(SIZES, most=(128, 256)))))
    other_best = replace(CARD, sizes=replace(SIZES, best=(64, 64)))
    assert plan_path(other_best) == plan.path
    assert found(other_best) == (
        "the plan of test_free was built for pictures of 64x32 to 128x128, best 96x64, "
        "the card says 64x32 to 128x128, best 64x64"
    )


def test_a_plan_of_one_size_under_the_name_of_a_range_is_refused() -> None:
    model = prepare(FREE.model, CARD).model.SerializeToString()
    keep(CARD, plan_of(model), b"", note(CARD))
    told = find_plan(CARD, MODEL_SHA256, GPU, VERSION)
    assert str(told).startswith("the plan of test_free was built for pictures of one size, the card says 64x32 to")


def test_a_network_of_no_picture_has_no_size_to_be_chosen(driver: FakeDriver) -> None:
    vector = replace(
        CARD, inputs=(TensorSpec("vector", (1, 512)),), outputs=(TensorSpec("made", (1, 512)),), sizes=None
    )
    with pytest.raises(EngineError, match="no plan of test_free in fp16 has been built"):
        opened(driver, (640, 384), vector)
