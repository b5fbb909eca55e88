"""Every shipped card is taken by the code of its family, with a network of its tensors behind it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engines.card import FOLDER, ModelCard, decode_as, load_card
from engines.contract import TensorSpec
from engines.cpu import CpuDevice
from engines.errors import ModelError
from realtime.cropnet import CropNetwork, CropRule
from realtime.families import rule_of
from realtime.opacity.networks import NetworkMask
from realtime.people.recognise import Recogniser
from realtime.types import F32, U8
from tests.card_law import CROP_TO_CROP
from tests.faces import face_of

CARDS = {path.stem: load_card(path.stem, FOLDER) for path in FOLDER.glob("*.toml")}
POINTS = np.array([(85, 95), (155, 95), (120, 140), (92, 180), (148, 180)], np.float32)
PHOTO = np.random.default_rng(0).integers(0, 256, (240, 240, 3), np.uint8)


class Network:
    """An engine with the tensors of a card: it gives noise, and refuses what the card does not describe."""

    def __init__(self, card: ModelCard, batch: int) -> None:
        self.runtime = "none"
        self.inputs = (batched(card.inputs[0], batch), *card.inputs[1:])  # the crop; whose face it gets stays one
        self.outputs = tuple(batched(spec, batch) for spec in card.outputs)

    def run(self, *tensors: np.ndarray[Any, Any]) -> tuple[F32, ...]:
        assert [(tensor.shape, tensor.dtype) for tensor in tensors] == [
            (spec.shape, np.dtype(spec.dtype)) for spec in self.inputs
        ]
        rng = np.random.default_rng(1)
        return tuple(rng.random(spec.shape, np.float32) for spec in self.outputs)

    def close(self) -> None:
        pass


def batched(spec: TensorSpec, batch: int) -> TensorSpec:
    """The same tensor with so many tiles of a crop."""
    return replace(spec, shape=(batch, *spec.shape[1:]))


def of_families(*families: str) -> list[str]:
    return sorted(name for name, card in CARDS.items() if card.family in families)


@pytest.mark.parametrize("name", of_families(*CROP_TO_CROP))
def test_a_crop_goes_through_it_at_each_size_that_it_allows(name: str) -> None:
    card = CARDS[name]
    kind = rule_of(card.family)
    assert kind is not None
    rule: CropRule = decode_as(card, kind)
    others = {spec.name: np.full(spec.shape, 0.5, spec.dtype) for spec in card.inputs if spec.name != rule.target}
    assert set(others) == set(rule.others)
    for boost in rule.boost if max(rule.boost) * card.inputs[0].shape[3] <= 1024 else rule.boost[:1]:
        network = CropNetwork(card, Network(card, boost * boost), CpuDevice(), rule, boost)
        network.run(PHOTO, network.picture_from_crop(POINTS), others)
        seen: list[U8] = []
        opacity = np.zeros((network.side, network.side), np.uint8)
        network.paint(1, PHOTO, network.picture_from_crop(POINTS), opacity, retouch=seen.append)
        assert seen[0].shape == (network.side, network.side, 4)
        assert seen[0][..., :3].std() > 10
        assert (network.mask is None) == (not rule.masks)
    with pytest.raises(ModelError, match="times its own size"):
        CropNetwork(card, Network(card, 1), CpuDevice(), rule, 7)


@pytest.mark.parametrize("name", of_families("occlusion", "regions"))
def test_a_mask_comes_out_of_it(name: str) -> None:
    card = CARDS[name]
    mask = NetworkMask(card.family, card, Network(card, 1), CpuDevice(), 256, 1)
    face = face_of(np.random.default_rng(2).uniform(60, 180, (468, 3)).astype(np.float32))
    assert mask.shown(PHOTO, face, np.eye(2, 3), 0.0).shape == (256, 256)


@pytest.mark.parametrize("name", of_families("arcface"))
def test_a_face_is_recognised_by_it(name: str) -> None:
    card = CARDS[name]
    assert np.asarray(Recogniser(card, Network(card, 1), CpuDevice()).embed(PHOTO, POINTS).raw).shape == (512,)
