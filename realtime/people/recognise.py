"""Turns a face into the vector that tells who it is; knows one network and one face, not who is whom."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from pydantic import ConfigDict, with_config

from engines.card import ModelCard, decode_as
from engines.contract import Device, Engine
from realtime.align import TEMPLATES, picture_from_crop
from realtime.errors import ModelError
from realtime.identity import Portrait
from realtime.models import Models
from realtime.people.embedding import Embedding, embedding_of
from realtime.people.vectorcache import VectorCache
from realtime.types import F32, U8

FAMILY = "arcface"


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True)
class RecogniserRule:
    """What a card of the family "arcface" says.

    Attributes:
        template: alignment of the crop, in ``align.TEMPLATES``.
    """

    template: str


class Recogniser:
    """A network of the family "arcface". Used by one thread at a time.

    Args:
        card: its card.
        engine: that has loaded it.
        device: that cuts the crops out.

    Raises:
        ModelError: the card is not one of a recogniser, or names a template that does not exist.
    """

    def __init__(self, card: ModelCard, engine: Engine, device: Device) -> None:
        self._rule = _rule_of(card)
        self._name, self._engine, self._device = card.name, engine, device
        self._input = card.inputs[0]
        self._side = self._input.size[0]
        self._tensor = np.zeros(self._input.shape, np.float32)

    def embed(self, pixels: U8, points5: F32) -> Embedding:
        """Recognise one face.

        Args:
            pixels: (H, W, 3) uint8 BGR. Only read.
            points5: (5, 2) in its pixels.

        Returns:
            Who it is; the caller's own.

        Raises:
            EngineError: the runtime failed, or the network gave values that are no numbers, or only zeros.
        """
        transform = picture_from_crop(points5, self._rule.template, self._side)
        self._device.crop(pixels, transform, self._input, self._tensor)
        return embedding_of(self._engine.run(self._tensor)[0].ravel(), self._name)


def open_recogniser(name: str, models: Models, device: Device) -> Recogniser:
    """Open a recogniser by the name of its card.

    Raises:
        ModelError: there is no such card, it is not one of a recogniser, or its file is missing.
        EngineError: no runtime can serve it.
    """
    card = models.card(name)
    _rule_of(card)  # before 170 MB are loaded
    return Recogniser(card, models.open(name), device)


def embedding_of_photo(portrait: Portrait, name: str, models: Models, device: Device, cache: VectorCache) -> Embedding:
    """Recognise the face in a photo; the network is opened only when the cache does not know the photo.

    Args:
        portrait: the photo.
        name: card of the recogniser.
        models: opens it.
        device: cuts the crop out.
        cache: may know the answer. The key is all that it depends on: the picture, where the face is in it, the
            weights, and the card's tensors and template.

    Raises:
        ModelError: see :func:`open_recogniser`.
        EngineError: likewise, or the network failed.
    """
    card = models.card(name)
    pixels = np.ascontiguousarray(portrait.pixels)
    key = (
        "embedding",
        models.fingerprint(name),
        repr((card.inputs, _rule_of(card), pixels.shape)),
        hashlib.sha256(pixels.data).digest(),
        portrait.points5.tobytes(),
    )

    def recognise() -> F32:
        return open_recogniser(name, models, device).embed(portrait.pixels, portrait.points5).raw

    return embedding_of(cache.recall(key, recognise), name)


def _rule_of(card: ModelCard) -> RecogniserRule:
    if card.family != FAMILY:
        raise ModelError(
            f"model {card.name} recognises nobody: its card says family {card.family!r}",
            "see `doppelcam models list` for those that do",
        )
    rule = decode_as(card, RecogniserRule)
    if rule.template not in TEMPLATES:
        raise ModelError(
            f"model card {card.name!r}: template is {rule.template!r}", f"use one of: {', '.join(TEMPLATES)}"
        )
    return rule
