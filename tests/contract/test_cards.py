"""Every model card is complete, true to its file, and its preprocessing is pinned to hand-computed values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from engines import store
from engines.card import FOLDER, decode_as, load_card
from engines.conform import fits
from engines.contract import TensorSpec
from engines.cpu import CpuDevice
from engines.errors import ModelError
from engines.registry import open_engine, probe
from realtime.families import FAMILIES, NO_USE, role_of, rule_of
from tests.card_law import pictures

NAMES = sorted(path.stem for path in FOLDER.glob("*.toml"))
HERE = [name for name in NAMES if store.locate(load_card(name))]  # the embedded ones, and what this machine has besides
SERVED = [(name, runtime) for name in HERE for runtime in load_card(name).runtimes]
TFLITE = [name for name in HERE if load_card(name).file.endswith(".tflite")]
IN = [(name, spec.name) for name in NAMES for spec in pictures(load_card(name).inputs)]
OUT = [(name, spec.name) for name in NAMES for spec in pictures(load_card(name).outputs)]
Values = tuple[float, float, float]


def by_name(value: Values, *names: str) -> dict[str, Values]:
    return dict.fromkeys(names, value)


# What a pixel of blue 10, green 60, red 200 is in a model's eyes, worked out by hand in the order of its channels.
BLUE_GREEN_RED = (10, 60, 200)
UNIT = 0.784314, 0.235294, 0.039216  # 200 / 255, 60 / 255, 10 / 255
UNIT_BGR = 0.039216, 0.235294, 0.784314
SIGNED = 0.568627, -0.529412, -0.921569  # 200 / 127.5 - 1, ...
SCRFD = 0.566406, -0.527344, -0.917969  # (200 - 127.5) / 128, ...
IMAGENET = 1.307047, -0.985294, -1.630153  # (200 / 255 - 0.485) / 0.229, (... - 0.456) / 0.224, (... - 0.406) / 0.225
RAW, RAW_BGR = (200, 60, 10), (10, 60, 200)

# In each picture that goes in; where there are several, by the tensor's name. A new card fails here until somebody has
# done the sum.
INPUTS: dict[str, Values | dict[str, Values]] = {
    **by_name(UNIT, "face_landmark", "inswapper_128", "inswapper_128_fp16", "reswapper_128", "reswapper_256"),
    **by_name(UNIT, "instyleswapper_a_256", "instyleswapper_b_256", "instyleswapper_c_256", "simswap_unofficial_512"),
    **by_name(UNIT, "visomaster_xseg", "visomaster_occluder", "2dfan4", "peppa_wutz", "yoloface_8n"),
    **by_name(UNIT_BGR, "xseg_1", "xseg_2", "xseg_3", "dfl_xseg"),
    **by_name(SIGNED, "face_detection_short_range", "hyperswap_1a_256", "hyperswap_1b_256", "hyperswap_1c_256"),
    **by_name(SIGNED, "ghost_1_256", "ghost_2_256", "ghost_3_256", "hififace_unofficial_256"),
    **by_name(SIGNED, "w600k_r50", "w600k_mbf", "glintr100", "ghost_arcface"),
    **by_name(SIGNED, "gfpgan_1.2", "gfpgan_1.3", "gfpgan_1.4", "codeformer", "codeformer_fp16", "vqfr_v2_fp16"),
    **by_name(SIGNED, "gpen_bfr_256", "gpen_bfr_512", "gpen_bfr_1024", "gpen_bfr_2048"),
    **by_name(SIGNED, "restoreformer_plus_plus", "restoreformer_plus_plus_fp16"),
    **by_name(IMAGENET, "simswap_256", "simswap_arcface", "bisenet_resnet_18", "bisenet_resnet_34", "fairface"),
    **by_name(SCRFD, "scrfd_500m", "scrfd_2.5g", "scrfd_10g"),
    "yunet": RAW_BGR,
    "2d106det": RAW,
    "uniface_256": {"target": SIGNED, "source": UNIT},
    "blendswap_256": {"target": UNIT, "source": UNIT},
}
# In each picture that comes out: that of the input, but for SimSwap, which takes one convention and gives another.
OUTPUTS = {**INPUTS, "simswap_256": UNIT, "uniface_256": SIGNED, "blendswap_256": UNIT}


def shape_of(spec: TensorSpec) -> tuple[int, ...]:
    """A shape that the tensor can have: detectors with free sizes take multiples of 32."""
    return tuple(96 if n < 0 else n for n in spec.shape)


def test_the_embedded_models_are_here() -> None:
    assert {"face_detection_short_range", "face_landmark"} <= set(HERE)
    assert TFLITE


@pytest.mark.parametrize("name", HERE)
def test_the_file_has_the_size_and_hash_of_the_card(name: str) -> None:
    store.find(load_card(name))


@pytest.mark.parametrize(("name", "runtime"), SERVED)
def test_every_runtime_that_can_serve_it_runs_the_tensors_of_the_card(name: str, runtime: str) -> None:
    card = load_card(name)
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
    if not (found := probe("runtime", runtime)).ok:
        pytest.skip(found.reason)
    rng = np.random.default_rng(0)
    tensors = [rng.random(shape_of(spec), np.float32).astype(spec.dtype) for spec in card.inputs]
    for one, other in zip(open_engine(card).run(*tensors), open_engine(card, runtime).run(*tensors), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", TFLITE)
def test_the_model_file_itself_reports_the_tensors_of_the_card(name: str) -> None:
    card = load_card(name)
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=str(store.find(card)))
    for specs, details in (
        (card.inputs, interpreter.get_input_details()),
        (card.outputs, interpreter.get_output_details()),
    ):
        said = {(spec.name, spec.shape, spec.dtype) for spec in specs}
        assert said == {(d["name"], tuple(d["shape"].tolist()), np.dtype(d["dtype"]).name) for d in details}


def values_of(table: dict[str, Values | dict[str, Values]], name: str, tensor: str) -> Values:
    found = table[name]
    return found[tensor] if isinstance(found, dict) else found


def small(spec: TensorSpec) -> TensorSpec:
    """The same convention at 96x96."""
    return replace(spec, shape=(1, 96, 96, 3) if spec.layout == "NHWC" else (1, 3, 96, 96))


@pytest.mark.parametrize(("name", "tensor"), IN)
def test_a_picture_goes_in_as_the_sum_by_hand_says(name: str, tensor: str) -> None:
    spec = small(next(spec for spec in load_card(name).inputs if spec.name == tensor))
    out = np.full(spec.shape, np.nan, np.float32)
    CpuDevice().crop(np.full((120, 120, 3), BLUE_GREEN_RED, np.uint8), np.eye(2, 3), spec, out)
    channels_last = out[0] if spec.layout == "NHWC" else np.moveaxis(out[0], 0, -1)
    expected = np.broadcast_to(values_of(INPUTS, name, tensor), channels_last.shape)
    np.testing.assert_allclose(channels_last, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("name", "tensor"), OUT)
def test_a_picture_comes_out_as_the_sum_by_hand_says(name: str, tensor: str) -> None:
    spec = small(next(spec for spec in load_card(name).outputs if spec.name == tensor))
    values = np.array(values_of(OUTPUTS, name, tensor), np.float32)
    channels_last = np.broadcast_to(values, (1, 96, 96, 3))
    made = np.ascontiguousarray(channels_last if spec.layout == "NHWC" else np.moveaxis(channels_last, -1, 1))
    patch = np.zeros((96, 96, 4), np.uint8)
    CpuDevice().develop(made, spec, np.ones(3, np.float32), np.zeros(3, np.float32), patch)
    np.testing.assert_array_equal(patch[..., :3], np.broadcast_to(BLUE_GREEN_RED, (96, 96, 3)))
    assert not patch[..., 3].any()


@pytest.mark.parametrize("wrong", [{"colour": "BGR"}, {"mean": (127.5,) * 3}, {"scale": (1 / 127.5,) * 3}])
def test_another_colour_mean_or_scale_gives_other_values(wrong: dict[str, Any]) -> None:
    spec = replace(small(load_card("inswapper_128").inputs[0]), **wrong)
    out = np.zeros(spec.shape, np.float32)
    CpuDevice().crop(np.full((120, 120, 3), BLUE_GREEN_RED, np.uint8), np.eye(2, 3), spec, out)
    assert not np.allclose(out[0, :, 50, 50], UNIT, atol=1e-3)


@pytest.mark.parametrize("family", [*FAMILIES, "yolo"])
def test_a_family_says_what_it_does_and_its_class_exists(family: str) -> None:
    assert role_of(family)
    assert (rule_of(family) is None) == (family in ("converter", "yolo"))


def test_a_family_without_a_use_says_so() -> None:
    without = {load_card(name).family for name in NAMES} - set(FAMILIES)
    assert without == {"landmarks", "classifier", "yolo"}
    assert all(role_of(family) == NO_USE for family in without)


@dataclass(frozen=True)
class NeverOnACard:
    missing: int


def test_a_family_that_wants_other_keys_is_refused_with_the_key() -> None:
    with pytest.raises(ModelError, match=r"\[decode\] of model card 'face_landmark': missing"):
        decode_as(load_card("face_landmark"), NeverOnACard)
