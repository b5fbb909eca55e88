"""Prepares the ONNX file of a card for a fixed engine: cleaned, of fixed shapes, what is seldom new apart.

Needs the package onnx; knows cards and graphs, no runtime but the one that folds constants, and not what a net is for.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, numpy_helper

from engines.card import ModelCard
from engines.emap import SHAPE
from engines.graph.clean import conformed, demand_plain, folded, read, widen
from engines.graph.cut import cut
from engines.graph.view import opset_of, weight_bytes
from engines.sizes import served, with_size

__all__ = ["Facts", "Prepared", "prepare"]


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found and done, for a person and for the note beside a plan.

    Attributes:
        opset: of the standard operators.
        nodes_before: as published.
        nodes: that run for every frame.
        bytes_before: of the weights as published.
        bytes: of the weights that are read for every frame, in single precision.
        widened: whether the file was in half precision, and was taken for its weights only.
        moved_nodes: that run once for each identity.
        moved_bytes: of their weights.
        frontier_bytes: of what they hand over.
    """

    opset: int
    nodes_before: int
    nodes: int
    bytes_before: int
    bytes: int
    widened: bool
    moved_nodes: int = 0
    moved_bytes: int = 0
    frontier_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Prepared:
    """A network that is ready to be converted and built.

    Attributes:
        model: what runs for every frame; float32, tensors named as on the card; every shape fixed, or following from
            a size within the card's ``sizes``.
        style_model: what is computed once for each identity, from the inputs of the card other than its target to
            ``frontier``; None where nothing is gained by it, and ``model`` takes all inputs itself.
        frontier: inputs of ``model`` that ``style_model`` gives, in its order; empty without one.
        emap: (512, 512) float32, the identity matrix that the file carries unused behind its weights and that every
            cleaning loses, see :mod:`engines.emap`; None where there is none.
        facts: what was done.
        at_best: ``model`` at the best of the sizes that it is to serve: what a tensor is next to another (a mean to a
            picture) shows only there. None where ``model`` is of one size.
    """

    model: ModelProto
    style_model: ModelProto | None
    frontier: tuple[str, ...]
    emap: NDArray[np.float32] | None
    facts: Facts
    at_best: ModelProto | None = None


def prepare(source: Path | ModelProto, card: ModelCard) -> Prepared:
    """Prepare a network.

    Args:
        source: the verified file, or what was read from it; only read.
        card: every axis of its inputs fixed, or free within its ``sizes``; its pictures k * k in one run for a face in
            k * k tiles, whatever number the file declares. Its ``[decode]`` names the target where there are several
            inputs.

    Returns:
        The network; together with its ``style_model`` it computes what the file does.

    Raises:
        ModelError: the file cannot be read, or is a network that no fixed engine can be made of.
        EngineError: the file has other tensors than the card.
    """
    published = read(source) if isinstance(source, Path) else source
    demand_plain(card.name, published)
    emap = _unused_matrix(published)  # before anything is cleaned
    sizes = served(card)  # at each of them it is refused where it bears no other size than it was exported for
    fixed = [_plain(with_size(card, size), published)[0] for size in (sizes.corners if sizes else ())]
    whole, widened = _plain(card, published)
    parts = cut(whole, str(card.decode.get("target", card.inputs[0].name))) if len(card.inputs) > 1 else None
    model = parts.frame if parts else whole
    facts = Facts(
        opset_of(model),
        len(published.graph.node),
        len(model.graph.node),
        weight_bytes(published),
        weight_bytes(model),
        widened,
        *((parts.moved_nodes, parts.moved_bytes, parts.frontier_bytes) if parts else ()),
    )
    style, frontier = (parts.style, parts.frontier) if parts else (None, ())
    return Prepared(model, style, frontier, emap, facts, fixed[1] if fixed else None)


def _plain(card: ModelCard, published: ModelProto) -> tuple[ModelProto, bool]:
    """Clean a network; says besides whether it was in half precision."""
    whole = conformed(card, published)
    widened = widen(whole)
    return folded(card, whole), widened


def _unused_matrix(model: ModelProto) -> NDArray[np.float32] | None:
    weights = model.graph.initializer
    if not weights or tuple(weights[-1].dims) != SHAPE:
        return None
    if any(weights[-1].name in node.input for node in model.graph.node):
        return None
    return np.array(numpy_helper.to_array(weights[-1]), np.float32, order="C")
