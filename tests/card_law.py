"""What every model card must keep to beyond what ``engines.card`` demands; knows cards, opens no model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from engines.card import ModelCard, decode_as, load_card
from engines.contract import TensorSpec
from engines.errors import ModelError
from engines.registry import RUNTIMES
from realtime.align import TEMPLATES
from realtime.families import rule_of

CROP_TO_CROP = ("latent", "image", "dfm", "enhancer")
"""Families whose networks give back a crop of the size that they were given."""
TENSORS = ("target", "source", "morph", "weight", "picture", "mask", "celeb_mask", "logits")
"""Keys of ``[decode]`` that name a tensor of the card; an empty one names none."""


def faults(card: ModelCard, text: str) -> list[str]:
    """Everything that is wrong with a card.

    Args:
        card: the card.
        text: of its TOML file, for what is only said in comments.
    """
    return [
        *(f"runtime {name} does not exist" for name in card.runtimes if name not in RUNTIMES),
        *_decode(card),
        *_shapes(card),
        *_licence(card, text),
        *_files(card),
    ]


def clashes(cards: Sequence[ModelCard]) -> list[str]:
    """What cannot be told apart: one file name for two models, or one hash on two cards."""
    found = []
    for one, other in combinations(cards, 2):
        if one.file == other.file and one.sha256 != other.sha256:
            found.append(f"{one.name} and {other.name} are two models in a file named {one.file}")
        if shared := _hashes(one) & _hashes(other):
            found.append(f"{one.name} and {other.name} both have sha256 {', '.join(shared)}")
    return found


def pictures(specs: Sequence[TensorSpec]) -> list[TensorSpec]:
    """The tensors that are pictures."""
    return [spec for spec in specs if spec.colour != "none"]


def side_of(spec: TensorSpec) -> tuple[int, int]:
    """Height and width of a picture."""
    height, width = spec.shape[1:3] if spec.layout == "NHWC" else spec.shape[2:4]
    return height, width


def _decode(card: ModelCard) -> Iterator[str]:
    rule = rule_of(card.family)
    if rule is not None:
        try:
            decode_as(card, rule)
        except ModelError as error:
            yield error.message
    known = {spec.name for spec in (*card.inputs, *card.outputs)}
    for key in TENSORS:
        if (name := card.decode.get(key, "")) and name not in known:
            yield f"{key} names {name!r}, which is no tensor of the card"
    if card.family in CROP_TO_CROP:
        named = {card.decode.get(key) for key in TENSORS}
        yield from (f"nothing is said of input {spec.name!r}" for spec in card.inputs if spec.name not in named)
    for key in ("template", "source_template"):
        if key in card.decode and card.decode[key] not in TEMPLATES:
            yield f"{key} {card.decode[key]!r} does not exist"
    latent = card.decode.get("latent", {})
    for key, family in (("recogniser", "arcface"), ("converter", "converter")):
        if other := latent.get(key):
            try:
                if load_card(other).family != family:
                    yield f"{key} {other} is of another family than {family!r}"
            except ModelError as error:
                yield error.message


def _shapes(card: ModelCard) -> Iterator[str]:
    for spec in (*pictures(card.inputs), *pictures(card.outputs)):
        height, width = side_of(spec)
        if height != width:
            yield f"{spec.name} is {width}x{height}, not square"
    if card.family not in CROP_TO_CROP:
        return
    tensors = {spec.name: spec for spec in (*card.inputs, *card.outputs)}
    target, made = tensors.get(card.decode.get("target", "")), tensors.get(card.decode.get("picture", ""))
    if target is None or made is None or "none" in (target.colour, made.colour):
        yield "target and picture must be pictures"
        return
    side = side_of(target)
    if side_of(made) != side:
        yield f"a crop of {side} goes in, one of {side_of(made)} comes out"
    for key in ("mask", "celeb_mask"):
        mask = tensors.get(card.decode.get(key, ""))
        if mask is not None and (1, *side) not in (mask.shape[1:], (mask.shape[3], *mask.shape[1:3])):
            yield f"{key} has shape {mask.shape}, the crop {side}"


def _licence(card: ModelCard, text: str) -> Iterator[str]:
    section = text.partition("[licence]")[2].partition("\n[")[0]
    reasons = card.licence.terms or re.search(r"^# .", section, re.MULTILINE)
    if not card.licence.commercial_use and not reasons:
        yield "it may not earn money, and neither terms nor a comment below [licence] say why"
    if card.licence.commercial_use and re.search(r"non-?commercial|research|not stated", card.licence.name.lower()):
        yield f"{card.licence.name} does not allow commercial use"
    if card.licence.terms and not card.licence.terms.startswith("https://"):
        yield "terms is no https address"


def _files(card: ModelCard) -> Iterator[str]:
    if card.size_bytes < 0 or any(copy.size_bytes < 0 for copy in card.copies):
        yield "a size is negative"
    hashes = [card.sha256, *(copy.sha256 for copy in card.copies)]
    if len(set(hashes)) != len(hashes):
        yield "a copy has the hash of another"
    if any(copy.note == "" for copy in card.copies):
        yield "a copy does not say what is different about it"
    yield from (
        f"{url} is no address of a file" for url in card.mirrors if not re.match(r"https://[\w.-]+/.+\.\w+$", url)
    )


def _hashes(card: ModelCard) -> set[str]:
    return {sha for sha in (card.sha256, *(copy.sha256 for copy in card.copies)) if sha}
