"""Arithmetic of the vectors that tell who somebody is; knows no network and no face."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from realtime.errors import EngineError
from realtime.types import F32


@dataclass(frozen=True, slots=True)
class Embedding:
    """What a recogniser says of one person. The direction tells who it is; the length, how good the picture was.

    Attributes:
        direction: (n,) float32 of unit length.
        length: of the vector as the network gave it, > 0.
    """

    direction: F32
    length: float

    @property
    def raw(self) -> F32:
        """(n,) float32 as a network gives it, not of unit length."""
        return self.direction * np.float32(self.length)


def embedding_of(vector: F32, whose: str) -> Embedding:
    """Take a recogniser's vector apart.

    Args:
        vector: (n,) as the network gave it.
        whose: network that gave it, for the error.

    Raises:
        EngineError: the vector says nothing: it has values that are no numbers, or is 0.
    """
    length = float(np.linalg.norm(vector.astype(np.float64)))
    if not np.isfinite(length) or length < np.finfo(np.float32).tiny:
        what = "values that are no numbers" if not np.isfinite(length) else "nothing but zeros"
        raise EngineError(f"{whose} made {what}", "use the float32 edition of the model, or another provider")
    return Embedding((vector / length).astype(np.float32), length)


def mean_of(embeddings: Sequence[Embedding]) -> Embedding:
    """Average what is known of one person.

    Args:
        embeddings: one or more of them. Each direction counts the same, however long its vector is, because the length
            is about the picture. The mean has the mean length: networks that convert vectors expect one of that size.

    Raises:
        EngineError: the directions cancel out.
    """
    direction = np.mean([one.direction for one in embeddings], axis=0)
    length = float(np.mean([one.length for one in embeddings]))
    return Embedding(embedding_of(direction, "the mean of these photos").direction, length)


def mixed(source: Embedding, target: Embedding, likeness: float) -> Embedding:
    """Go part of the way from the person in view to the source.

    ``source * (1 - t) + target * t`` of the directions, with ``t = 1 - likeness``; the length likewise. FaceFusion's
    weight w in 0..1 gives ``t = 0.35 - 0.7 * w`` in the same formula: its default 0.5 is likeness 1 here, its 0 is
    likeness 0.65. What it does above 0.5, to go away from the person in view beyond the source, is left out here; in
    turn this goes all the way to the person in view. It also mixes after its conversion, not before it.

    Args:
        source: whose face is shown.
        target: the person in view.
        likeness: of the result to the source, 0..1.

    Raises:
        EngineError: the two cancel out.
    """
    t = np.float32(1 - likeness)
    direction = source.direction * (1 - t) + target.direction * t
    length = source.length * (1 - float(t)) + target.length * float(t)
    return Embedding(embedding_of(direction, "the mix of two faces").direction, length)


def least_alike(embeddings: Sequence[Embedding]) -> float:
    """The least cosine between any two of them, -1..1; 1 where there is only one."""
    directions = np.stack([one.direction for one in embeddings])
    return float((directions @ directions.T).min()) if len(embeddings) > 1 else 1.0
