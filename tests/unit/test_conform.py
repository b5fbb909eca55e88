from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from engines.card import Licence, ModelCard
from engines.conform import Found, check_file
from engines.contract import TensorSpec
from engines.errors import EngineError

CROP, VECTOR = (1, 3, 256, 256), (1, 512)
FILE_INPUTS: Found = {"onnx::Gemm_1": (VECTOR, "float32"), "input": (CROP, "float32")}
FILE_OUTPUTS: Found = {"781": (CROP, "float32"), "782": ((1, 1, 256, 256), "float32")}


def card(*, any_name: bool, outputs: Sequence[TensorSpec] = ()) -> ModelCard:
    specs = [TensorSpec("target", CROP, any_name=any_name), TensorSpec("source", VECTOR, any_name=any_name)]
    out = tuple(outputs) or (TensorSpec("output", CROP, any_name=any_name),)
    licence = Licence("test", "the tests", True, "built by the tests")
    return ModelCard("x", "x.onnx", 0, "", "latent", ("onnxrt",), licence, tuple(specs), out)


def test_a_conversion_with_other_names_is_understood_where_the_card_allows_it() -> None:
    assert check_file(card(any_name=True), FILE_INPUTS, FILE_OUTPUTS) == (("input", "onnx::Gemm_1"), ("781",))


def test_elsewhere_a_name_is_a_name() -> None:
    with pytest.raises(EngineError, match=r"the card says 'target' .* the file has only onnx::Gemm_1, input"):
        check_file(card(any_name=False), FILE_INPUTS, FILE_OUTPUTS)


def test_the_cards_own_name_goes_before_the_shape() -> None:
    file: Found = {**FILE_OUTPUTS, "output": (CROP, "float32")}
    assert check_file(card(any_name=True), FILE_INPUTS, file)[1] == ("output",)


def test_a_named_tensor_of_another_shape_is_not_replaced_by_one_that_fits() -> None:
    file: Found = {**FILE_OUTPUTS, "output": ((1, 3, 128, 128), "float32")}
    with pytest.raises(EngineError, match=r"the file has float32 \(1, 3, 128, 128\)"):
        check_file(card(any_name=True), FILE_INPUTS, file)


def test_two_that_fit_are_one_too_many() -> None:
    file: Found = {**FILE_OUTPUTS, "texture": (CROP, "float32")}
    with pytest.raises(EngineError, match="only 781, 782, texture"):
        check_file(card(any_name=True), FILE_INPUTS, file)


def test_what_another_tensor_is_called_is_never_taken() -> None:
    made = TensorSpec("output", CROP, any_name=True)
    two = card(any_name=True, outputs=(made, replace(made, name="781")))
    with pytest.raises(EngineError, match="the card says 'output'"):
        check_file(two, FILE_INPUTS, FILE_OUTPUTS)
