"""Random inputs of the kind a model gets, and how far two answers are apart; knows cards, no runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.card import ModelCard
from engines.contract import TensorSpec

FREE_PX = 128
"""Size of an axis that the card leaves free, but for the first, which is the number of pictures: a multiple of every
stride in use."""


def trial_inputs(card: ModelCard, seed: int) -> list[NDArray[Any]]:
    """Make inputs that are the same each time.

    Args:
        card: of the model.
        seed: of the random numbers.

    Returns:
        One array for each input: for a picture random pixels, normalised as the card says; else numbers from a normal
        distribution, or zeros for whole numbers.
    """
    rng = np.random.default_rng(seed)
    return [_trial(spec, rng) for spec in card.inputs]


def apart(one: NDArray[Any], other: NDArray[Any]) -> float:
    """Say how far two answers are apart.

    Args:
        one: what is right.
        other: what is asked about, of the same shape.

    Returns:
        The largest difference over the largest value of the first; infinite where either is not finite.
    """
    a, b = one.astype(np.float64), other.astype(np.float64)
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return float("inf")
    worst, largest = float(np.abs(a - b).max(initial=0)), float(np.abs(a).max(initial=0))
    return worst / largest if largest > 0 else worst


def _trial(spec: TensorSpec, rng: np.random.Generator) -> NDArray[Any]:
    shape = tuple((FREE_PX if axis else 1) if n < 0 else n for axis, n in enumerate(spec.shape))
    if spec.colour == "none":
        whole = np.issubdtype(np.dtype(spec.dtype), np.integer) or spec.dtype == "bool"
        return np.zeros(shape, spec.dtype) if whole else rng.standard_normal(shape).astype(spec.dtype)
    rule = (1, 3, 1, 1) if spec.layout == "NCHW" else (1, 1, 1, 3)
    mean, scale = (np.reshape(values, rule) for values in (spec.mean, spec.scale))
    return ((rng.integers(0, 256, shape) - mean) * scale).astype(spec.dtype)
