"""Which sizes of a picture one engine serves where a network leaves them free; knows cards and shapes, no runtime.

A runtime that compiles a network wants to know between which sizes its pictures will be, and which it will mostly see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pydantic import ConfigDict, with_config

from engines.contract import TensorSpec

if TYPE_CHECKING:
    from engines.card import ModelCard

Profile = Mapping[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]
"""Name of an input of free size -> its least, best and largest shape; empty where every axis is fixed."""


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True)
class Sizes:
    """A range of sizes, each width and height in pixels.

    Attributes:
        least: both sides at least so long.
        best: the size that is served fastest.
        most: both sides at most so long.
    """

    least: tuple[int, int]
    best: tuple[int, int]
    most: tuple[int, int]

    def __str__(self) -> str:
        """Say it, for people."""
        return f"{words(self.least)} to {words(self.most)}"

    @property
    def corners(self) -> tuple[tuple[int, int], ...]:
        """The three sizes in their order."""
        return self.least, self.best, self.most

    def fault(self, size: tuple[int, int]) -> str:
        """Say in words that a size does not lie in the range; empty where it does."""
        if all(low <= n <= high for low, n, high in zip(self.least, size, self.most, strict=True)):
            return ""
        return f"takes pictures of {self}, not of {words(size)}"


def is_free(spec: TensorSpec) -> bool:
    """Say whether a tensor is a picture of any size."""
    return spec.colour != "none" and min(spec.size) < 0


def words(size: tuple[int, int]) -> str:
    """Say a size, e.g. "640x384"."""
    return f"{size[0]}x{size[1]}"


def served(card: ModelCard) -> Sizes | None:
    """Say which sizes one engine of a card serves; None where its inputs are of one size, or it states no range."""
    return card.sizes if any(is_free(spec) for spec in card.inputs) else None


def with_size(card: ModelCard, size: tuple[int, int] | None) -> ModelCard:
    """Write a card for pictures of one size.

    Args:
        card: of the model.
        size: width and height in pixels, for every side that the card leaves free; None changes nothing.

    Returns:
        The card; of its pictures no side is free.
    """
    if size is None:
        return card
    return replace(card, inputs=tuple(_sized(spec, size) for spec in card.inputs))


def profile_of(card: ModelCard) -> Profile:
    """List the shapes between which the inputs of a card are."""
    if (sizes := served(card)) is None:
        return {}
    least, best, most = ([spec.shape for spec in with_size(card, size).inputs] for size in sizes.corners)
    shapes = zip(card.inputs, least, best, most, strict=True)
    return {spec.name: (low, mid, high) for spec, low, mid, high in shapes if is_free(spec)}


def _sized(spec: TensorSpec, size: tuple[int, int]) -> TensorSpec:
    if not is_free(spec):
        return spec
    width, height = (asked if has < 0 else has for has, asked in zip(spec.size, size, strict=True))
    batch, channels = spec.shape[0], 3
    shape = (batch, height, width, channels) if spec.layout == "NHWC" else (batch, channels, height, width)
    return replace(spec, shape=shape)
