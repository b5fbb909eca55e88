"""Every model card is complete, true to its file, and its preprocessing is pinned to hand-computed values."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from engines import store
from engines.card import FOLDER, ModelCard, decode_as, load_card
from engines.conform import fits
from engines.contract import TensorSpec
from engines.cpu import CpuDevice
from engines.errors import ModelError
from engines.registry import RUNTIMES, open_engine, probe
from realtime.detect.ssd import SsdDecode
from realtime.detect.whole import GridDecode
from realtime.landmarks import MeshDecode

NAMES = sorted(path.stem for path in FOLDER.glob("*.toml"))
SERVED = [(name, runtime) for name in NAMES for runtime in load_card(name).runtimes]
FAMILIES = {"ssd": SsdDecode, "mesh": MeshDecode, "scrfd": GridDecode, "yunet": GridDecode}

# What a pixel of blue 10, green 60, red 200 becomes in the first picture input of each card, worked out by hand in the
# order of the model's channels: a new card fails here until somebody has done the sum.
BLUE_GREEN_RED = (10, 60, 200)
GOLDEN = {
    "face_detection_short_range": (200 / 127.5 - 1, 60 / 127.5 - 1, 10 / 127.5 - 1),
    "face_landmark": (200 / 255, 60 / 255, 10 / 255),
    "scrfd_500m": (72.5 / 128, -67.5 / 128, -117.5 / 128),
    "scrfd_2.5g": (72.5 / 128, -67.5 / 128, -117.5 / 128),
    "scrfd_10g": (72.5 / 128, -67.5 / 128, -117.5 / 128),
    "yunet": (10, 60, 200),
}


def shape_of(spec: TensorSpec) -> tuple[int, ...]:
    """A shape that the tensor can have: detectors with free sizes take multiples of 32."""
    return tuple(96 if n < 0 else n for n in spec.shape)


def file_of(card: ModelCard) -> None:
    try:
        store.find(card)
    except ModelError as error:
        if "is in none of" in error.message:
            pytest.skip(error.message)
        raise


@pytest.mark.parametrize("name", NAMES)
def test_a_card_is_named_like_its_file_and_says_who_can_serve_it(name: str) -> None:
    card = load_card(name)
    assert card.name == name
    assert card.runtimes
    assert set(card.runtimes) <= set(RUNTIMES)
    assert len(card.sha256) == 64
    assert all(len(spec.mean) == len(spec.scale) == (0 if spec.colour == "none" else 3) for spec in card.inputs)


@pytest.mark.parametrize("name", NAMES)
def test_the_decoder_of_its_family_can_read_it(name: str) -> None:
    card = load_card(name)
    assert decode_as(card, FAMILIES[card.family])


@pytest.mark.parametrize("name", NAMES)
def test_the_file_has_the_size_and_hash_of_the_card(name: str) -> None:
    file_of(load_card(name))


@pytest.mark.parametrize(("name", "runtime"), SERVED)
def test_every_runtime_that_can_serve_it_runs_the_tensors_of_the_card(name: str, runtime: str) -> None:
    card = load_card(name)
    file_of(card)
    if not (found := probe("runtime", runtime)).ok:
        pytest.skip(found.reason)
    engine = open_engine(card, runtime)
    assert engine.runtime.startswith(f"{runtime} ")
    assert (engine.inputs, engine.outputs) == (card.inputs, card.outputs)
    outputs = engine.run(*(np.zeros(shape_of(spec), spec.dtype) for spec in card.inputs))
    assert all(fits(out.shape, spec.shape) for out, spec in zip(outputs, card.outputs, strict=True))
    assert [out.dtype.name for out in outputs] == [spec.dtype for spec in card.outputs]
    assert all(np.isfinite(out).all() for out in outputs)
    engine.close()


@pytest.mark.parametrize(("name", "runtime"), SERVED)
def test_every_runtime_computes_what_the_first_one_computes(name: str, runtime: str) -> None:
    card = load_card(name)
    file_of(card)
    if not (found := probe("runtime", runtime)).ok:
        pytest.skip(found.reason)
    rng = np.random.default_rng(0)
    tensors = [rng.random(shape_of(spec), np.float32).astype(spec.dtype) for spec in card.inputs]
    for one, other in zip(open_engine(card).run(*tensors), open_engine(card, runtime).run(*tensors), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_the_model_file_itself_reports_the_tensors_of_the_card(name: str) -> None:
    card = load_card(name)
    if card.runtimes[0] != "litert":
        pytest.skip("only TFLite files are read here")
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=str(store.find(card)))
    for specs, details in (
        (card.inputs, interpreter.get_input_details()),
        (card.outputs, interpreter.get_output_details()),
    ):
        said = {(spec.name, spec.shape, spec.dtype) for spec in specs}
        assert said == {(d["name"], tuple(d["shape"].tolist()), np.dtype(d["dtype"]).name) for d in details}


@pytest.mark.parametrize("name", NAMES)
def test_colour_mean_and_scale_are_those_worked_out_by_hand(name: str) -> None:
    spec = load_card(name).inputs[0]
    picture = np.full((700, 700, 3), BLUE_GREEN_RED, np.uint8)
    spec = replace(spec, shape=shape_of(spec))
    out = np.full(spec.shape, np.nan, np.float32)
    CpuDevice().crop(picture, np.eye(2, 3), spec, out)
    channels_last = out[0] if spec.layout == "NHWC" else np.moveaxis(out[0], 0, -1)
    np.testing.assert_allclose(channels_last, np.broadcast_to(GOLDEN[name], channels_last.shape), rtol=0, atol=1e-6)


@dataclass(frozen=True)
class NeverOnACard:
    missing: int


def test_a_family_that_wants_other_keys_is_refused_with_the_key() -> None:
    with pytest.raises(ModelError, match=r"\[decode\] of model card 'face_landmark': missing"):
        decode_as(load_card("face_landmark"), NeverOnACard)
