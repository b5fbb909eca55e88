"""Makes the vector that tells a swapper the identity out of what a recogniser says; knows conventions, no faces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import ConfigDict, with_config

from engines import store
from engines.emap import read_emap
from engines.errors import ModelError
from realtime.models import Models
from realtime.people.embedding import Embedding, embedding_of
from realtime.people.vectorcache import VectorCache
from realtime.types import F32

Kind = Literal["unit", "emap", "crossface"]
Norm = Literal["latent", "embedding", "none"]

NORMS: dict[Kind, tuple[Norm, ...]] = {
    "unit": ("latent",),
    "emap": ("latent", "embedding"),
    "crossface": ("latent", "none"),
}
"""Which lengths each kind is used with."""


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True)
class LatentRule:
    """How a swapper of the family "latent" wants the identity; e is the recogniser's vector.

    Attributes:
        recogniser: card of the network that makes e.
        kind: "unit" is e itself (hyperswap). "emap" is e times the matrix in the swapper's own file, see
            :func:`engines.emap.read_emap` (inswapper and its kin). "crossface" is what a small network makes of the raw
            e: it translates into the space of the recogniser that the swapper was trained with (ghost, simswap,
            hififace).
        norm: length of the result. "latent": 1. "embedding", of an emap: it is divided by the length of e only. Both
            are in use for the same models, the first by insightface and the second by FaceFusion. "none", of a
            crossface: as the network gives it.
        converter: card of the network of a "crossface"; empty for the others.

    Raises:
        ValueError: the parts do not fit together.
    """

    recogniser: str
    kind: Kind
    norm: Norm = "latent"
    converter: str = ""

    def __post_init__(self) -> None:
        if self.norm not in NORMS[self.kind]:
            raise ValueError(f"norm of the kind {self.kind!r} is one of: {', '.join(NORMS[self.kind])}")
        if bool(self.converter) != (self.kind == "crossface"):
            raise ValueError("converter belongs to the kind 'crossface', and to no other")


class Latents:
    """Turns embeddings into what one swapper takes. Used by one thread; opens what it needs when it is needed.

    Args:
        swapper: card of the swapper.
        rule: the card's.
        models: opens the converter.
        cache: may know the answers.
    """

    def __init__(self, swapper: str, rule: LatentRule, models: Models, cache: VectorCache) -> None:
        self._swapper, self._rule, self._models, self._cache = swapper, rule, models, cache
        self._emap: F32 | None = None

    def of_source(self, source: Embedding) -> F32:
        """The latent of a source face, from the cache where it is known: then nothing is opened.

        Args:
            source: made by the rule's recogniser.

        Returns:
            (1, n) float32, the caller's own.

        Raises:
            ModelError: a model file is missing or wrong.
            EngineError: the converter failed.
        """
        rule = self._rule
        if rule.kind == "unit":
            return self.of(source)
        weights = self._models.fingerprint(rule.converter or self._swapper)
        key = ("latent", weights, repr((rule.kind, rule.norm)), source.raw.tobytes())
        return self._cache.recall(key, lambda: self.of(source))

    def of(self, embedding: Embedding) -> F32:
        """The latent of any face; see :meth:`of_source`.

        Raises:
            ModelError: see there; or the recogniser is not the one that the swapper was trained with.
            EngineError: see there.
        """
        rule = self._rule
        vector = embedding.direction
        if rule.kind == "emap":  # (e . emap) / |e|
            matrix = self._matrix()
            if len(vector) != len(matrix):
                raise ModelError(
                    f"{rule.recogniser} gives {len(vector)} numbers, the matrix of {self._swapper} takes {len(matrix)}",
                    f"correct the recogniser on the card of {self._swapper}",
                )
            vector = vector @ matrix
        elif rule.kind == "crossface":
            vector = self._models.open(rule.converter).run(embedding.raw[None])[0].ravel().astype(np.float32)
        checked = embedding_of(vector, rule.converter or self._swapper)
        return (checked.direction if rule.norm == "latent" else vector)[None].copy()

    def _matrix(self) -> F32:
        if self._emap is None:
            card = self._models.card(self._swapper)
            key = ("emap", self._models.fingerprint(self._swapper))
            self._emap = self._cache.recall(key, lambda: read_emap(store.find(card)))
        return self._emap
