"""Where plans lie, and why one is refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx", reason="the tests build networks with onnx, which is in the extra dev")

from engines.batch import with_batch
from engines.card import ModelCard
from engines.cuda.driver import Gpu
from engines.errors import EngineError, ModelError
from engines.plan import Plan, find_plan, header_fault, keep, open_plan, plan_path
from engines.sidecar import FORMAT
from tests.trt.fake_tensorrt import VERSION, plan_of
from tests.trt.plans import GPU, MODEL_SHA256, note, swapper

pytestmark = pytest.mark.trt_api
CARD = swapper().card
NETWORK = b"a network"


def kept(card: ModelCard = CARD, **other: Any) -> Plan:
    return keep(card, plan_of(NETWORK), b"", note(card, **other))


def found(card: ModelCard = CARD, sha256: str = MODEL_SHA256, gpu: Gpu = GPU, trt: str = VERSION) -> Plan | str:
    return find_plan(card, sha256, gpu, trt)


def test_a_plan_that_was_kept_is_found_and_read(models: Path) -> None:
    assert found() == f"no plan of {CARD.name} in fp16 has been built"
    plan = kept()
    assert found() == plan == open_plan(plan.path)
    assert plan.path == models / "plans" / f"{CARD.name}.1x3x32x32.fp16.plan"
    assert plan.read() == plan_of(NETWORK)
    assert not list(plan.path.parent.glob("*.part"))


def test_each_size_number_of_pictures_and_precision_has_a_plan_of_its_own() -> None:
    plan = kept()
    four = with_batch(CARD, 4)
    assert "no plan" in str(found(four))
    other = kept(four)
    exact = kept(precision="fp32")
    assert len({plan.path, other.path, exact.path}) == 3
    assert (found(), found(four)) == (plan, other)
    assert find_plan(CARD, MODEL_SHA256, GPU, VERSION, "fp32") == exact


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"sha256": "f" * 64}, "was built from another file: sha256 .*, not ffffffffffff"),
        ({"trt": "10.13.3.9"}, "was built by TensorRT 11.4.0.106, this is 10.13.3.9"),
        ({"gpu": replace(GPU, capability=(9, 0))}, "was built for compute capability 8.6, this GPU has 9.0"),
        ({"gpu": replace(GPU, name="Other GPU")}, "was built for Fake GPU, this is Other GPU"),
        ({"gpu": replace(GPU, driver="12.8")}, "was built with a driver for CUDA 13.0, this one is older: CUDA 12.8"),
        (
            {"card": replace(CARD, outputs=(replace(CARD.outputs[0], shape=(1, 3, 64, 64)),))},
            r"has 'output' as \(1, 3, 32, 32\), the card says \(1, 3, 64, 64\)",
        ),
    ],
)
def test_a_plan_for_something_else_is_refused_in_words(asked: dict[str, Any], says: str) -> None:
    kept()
    assert isinstance(found(), Plan)
    reason = found(**asked)
    assert isinstance(reason, str)
    assert re.search(f"^the plan of {CARD.name} {says}$", reason)


@pytest.mark.parametrize("gpu", [replace(GPU, uuid="GPU-another"), replace(GPU, driver="13.1")])
def test_another_card_of_the_same_name_and_a_newer_driver_will_do(gpu: Gpu) -> None:
    kept()
    assert isinstance(found(gpu=gpu), Plan)


def test_style_inputs_take_the_place_of_the_other_inputs() -> None:
    shapes = {"target": (1, 3, 32, 32), "style": (1, 64), "output": (1, 3, 32, 32)}
    kept(shapes=shapes)
    assert "has 'source' as None" in str(found())
    kept(shapes=shapes, style_inputs=("style",))
    assert isinstance(found(), Plan)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "has no note of this program beside it, and a plan from elsewhere is never run"),
        ("", "is damaged"),
        ("[" * 100_000, "is damaged"),
        ("[]", "is damaged"),
        (json.dumps({"format": FORMAT, "model": "x"}), "is damaged: Field required"),
        (json.dumps({"format": FORMAT + 1}), "was built by a version of this program that prepared networks otherwise"),
    ],
)
def test_a_plan_without_a_good_note_is_never_run(text: str | None, says: str) -> None:
    plan = kept()
    beside = plan.path.with_suffix(".json")
    if text is None:
        beside.unlink()
    else:
        beside.write_text(text)
    assert says in str(found())
    with pytest.raises(EngineError, match=says.partition(":")[0]):
        open_plan(plan.path)


def test_a_note_with_a_key_that_nobody_knows_is_damaged() -> None:
    plan = kept()
    beside = plan.path.with_suffix(".json")
    beside.write_text(json.dumps({**json.loads(beside.read_text()), "more": 1}))
    assert "is damaged" in str(found())


def test_a_plan_that_has_changed_is_not_read() -> None:
    plan = kept()
    plan.path.write_bytes(plan_of(b"another network"))
    with pytest.raises(EngineError, match="is not what this program built") as caught:
        plan.read()
    assert caught.value.hint == f"doppelcam models build {CARD.name}"
    plan.path.unlink()
    with pytest.raises(EngineError, match="cannot be read"):
        plan.read()
    with pytest.raises(EngineError, match="is not there"):
        open_plan(plan.path)


def test_the_small_network_of_the_style_is_proved_too() -> None:
    plan = keep(CARD, plan_of(NETWORK), b"a small one", note(CARD, ("style",)))
    assert plan.read_style() == b"a small one"
    plan.style_path.write_bytes(b"another")
    with pytest.raises(EngineError, match="is not what this program built"):
        plan.read_style()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is no plan of TensorRT"),
        (b"ftrt", "is no plan of TensorRT"),
        (b"vtrt" + plan_of(NETWORK)[4:], "is no plan of TensorRT"),
        (plan_of(NETWORK, "10.13.3.9"), "was built by TensorRT 10.13.3, this is 11.4.0.106"),
        (plan_of(NETWORK), ""),
    ],
)
def test_the_first_bytes_are_looked_at_before_tensorrt_sees_them(data: bytes, says: str) -> None:
    assert header_fault(data, VERSION) == says
    plan = keep(CARD, data, b"", note(CARD))
    if says:
        with pytest.raises(EngineError, match=says):
            plan.read()
    else:
        assert plan.read() == data


def test_a_folder_that_cannot_be_written_is_an_error_for_people(models: Path) -> None:
    models.write_text("a file where the folder should be")
    with pytest.raises(ModelError, match="cannot be written"):
        kept()


def test_where_a_plan_lies_can_be_asked_before_there_is_one() -> None:
    assert not plan_path(CARD).exists()
    assert plan_path(CARD) == kept().path
