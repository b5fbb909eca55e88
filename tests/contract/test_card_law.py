"""Every shipped card keeps the law of ``tests.card_law``, and the law can be broken."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engines.card import FOLDER, Copy, ModelCard, load_card
from engines.contract import TensorSpec
from tests.card_law import clashes, faults, pictures

NAMES = sorted(path.stem for path in FOLDER.glob("*.toml"))
CARDS = {name: load_card(name, FOLDER) for name in NAMES}
INSWAPPER, GHOST, GFPGAN = CARDS["inswapper_128"], CARDS["ghost_1_256"], CARDS["gfpgan_1.4"]


def text_of(card: ModelCard) -> str:
    return (FOLDER / f"{card.name}.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_card_is_without_fault(name: str) -> None:
    assert faults(CARDS[name], text_of(CARDS[name])) == []


def test_no_two_shipped_cards_can_be_confused() -> None:
    assert clashes(list(CARDS.values())) == []


def decode(card: ModelCard, **changes: Any) -> ModelCard:
    return replace(card, decode={**card.decode, **changes})


def latent(**changes: Any) -> ModelCard:
    return decode(GHOST, latent={**GHOST.decode["latent"], **changes})


def wide(spec: TensorSpec) -> TensorSpec:
    return replace(spec, shape=(1, 3, spec.shape[2], 2 * spec.shape[3]))


def half(spec: TensorSpec) -> TensorSpec:
    return replace(spec, shape=(1, 3, spec.shape[2] // 2, spec.shape[3] // 2))


MASKED = CARDS["hyperswap_1a_256"]
WRONG = [
    (replace(INSWAPPER, runtimes=("warp",)), "runtime warp"),
    (decode(INSWAPPER, template="arcface_64"), "template 'arcface_64'"),
    (decode(CARDS["uniface_256"], source_template="ffhq"), "source_template 'ffhq'"),
    (decode(INSWAPPER, target="crop"), "target names 'crop'"),
    (decode(INSWAPPER, colour="RGB"), "colour: Unexpected keyword"),
    (decode(GFPGAN, weight="w"), "weight names 'w'"),
    (replace(CARDS["codeformer"], decode={**CARDS["codeformer"].decode, "weight": ""}), "nothing is said of input"),
    (latent(recogniser="nobody"), "no model card 'nobody'"),
    (latent(recogniser="crossface_ghost"), "of another family than 'arcface'"),
    (latent(converter="w600k_r50"), "of another family than 'converter'"),
    (replace(INSWAPPER, outputs=tuple(half(spec) for spec in INSWAPPER.outputs)), "goes in"),
    (replace(INSWAPPER, inputs=(wide(INSWAPPER.inputs[0]), INSWAPPER.inputs[1])), "not square"),
    (replace(MASKED, outputs=(MASKED.outputs[0], replace(MASKED.outputs[1], shape=(1, 1, 64, 64)))), "mask has shape"),
    (replace(GFPGAN, licence=replace(GFPGAN.licence, name="non-commercial")), "does not allow commercial use"),
    (replace(GFPGAN, licence=replace(GFPGAN.licence, name="not stated")), "does not allow commercial use"),
    (replace(GFPGAN, licence=replace(GFPGAN.licence, commercial_use=False, terms="")), "neither terms nor a comment"),
    (replace(GFPGAN, licence=replace(GFPGAN.licence, terms="LICENSE")), "no https address"),
    (replace(GFPGAN, size_bytes=-1), "negative"),
    (replace(GFPGAN, copies=(Copy(1, GFPGAN.sha256, "the same"),)), "hash of another"),
    (replace(GFPGAN, copies=(Copy(1, "0" * 64),)), "does not say what is different"),
    (replace(GFPGAN, mirrors=("https://example.org/",)), "no address of a file"),
]


@pytest.mark.parametrize(("card", "fault"), WRONG, ids=[fault for _, fault in WRONG])
def test_each_fault_is_found(card: ModelCard, fault: str) -> None:
    assert any(fault in found for found in faults(card, text_of(card))), faults(card, text_of(card))


def test_two_models_in_one_file_and_one_hash_on_two_cards_are_found() -> None:
    other = replace(GFPGAN, name="other", sha256="0" * 64, copies=())
    assert clashes([GFPGAN, other]) == ["gfpgan_1.4 and other are two models in a file named gfpgan_1.4.onnx"]
    twin = replace(other, file="twin.onnx", copies=(Copy(0, GFPGAN.sha256, "the same"),))
    assert clashes([GFPGAN, twin]) == [f"gfpgan_1.4 and other both have sha256 {GFPGAN.sha256}"]


def test_every_model_but_the_embedded_ones_can_be_fetched() -> None:
    embedded = {"face_detection_short_range", "face_landmark"}
    assert [name for name, card in CARDS.items() if not card.mirrors and not card.pack] == sorted(embedded)
    assert all(pictures(card.inputs) or card.family in ("converter", "landmarks") for card in CARDS.values())
