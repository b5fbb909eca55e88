"""Networks that do something plain to a crop, with the contract of any swapper: what comes out is known exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import numpy_helper

from engines.contract import TensorSpec
from tests.cards import Net, net
from tests.facenets import Graph


def identity(_: Graph, x: str) -> str:
    """The crop, unchanged."""
    return x


def invert(g: Graph, x: str) -> str:
    """The negative."""
    return g.add("Sub", g.constant(np.ones(1, np.float32)), x)


def posterise(g: Graph, x: str) -> str:
    """Four levels a channel."""
    return g.scalar(g.add("Floor", g.scalar(x, "Mul", 3.999)), "Mul", 1 / 3)


def black(g: Graph, x: str) -> str:
    return g.scalar(x, "Mul", 0.0)


def grey(g: Graph, x: str) -> str:
    """The same value everywhere."""
    return g.scalar(g.scalar(x, "Mul", 0.0), "Add", 0.5)


def one_colour(g: Graph, x: str) -> str:
    """Each channel of an NCHW picture its own mean, which no least and greatest value tells."""
    return g.add("Add", g.scalar(x, "Mul", 0.0), g.add("ReduceMean", x, axes=[2, 3], keepdims=1))


def not_a_number(g: Graph, x: str) -> str:
    return g.add("Add", x, g.add("Sqrt", g.scalar(g.scalar(x, "Mul", 0.0), "Sub", 1.0)))


def infinite(g: Graph, x: str) -> str:
    """One pixel in the middle of nowhere is infinite: where a channel is brightest."""
    return g.add("Div", x, g.add("Sub", x, g.add("ReduceMax", x, keepdims=1)))


def broken_when_dark(g: Graph, x: str) -> str:
    """The negative, but no numbers at all where the mean of the crop is under a fifth of white."""
    mean = g.add("ReduceMean", x, keepdims=1)
    spoilt = g.scalar(g.add("Sqrt", g.scalar(mean, "Sub", 0.2)), "Mul", 0.0)
    return g.add("Add", invert(g, x), spoilt)


Effect = Callable[[Graph, str], str]
BROKEN: tuple[Effect, ...] = (black, grey, not_a_number, infinite)


def with_effect(of: Net, effect: Effect, name: str = "", mask: float = 1.0) -> Net:
    """A network with the inputs, outputs and card of another that only does something plain to the crop.

    Args:
        of: whose contract it has.
        effect: what becomes of the crop, 0..1 in the layout and colour order of the input.
        name: of the card; empty for that of ``of``.
        mask: value of the outputs that are no pictures.
    """
    card, g = of.card, Graph(np.random.default_rng(0))
    target = next(spec for spec in card.inputs if spec.name == card.decode["target"])
    made = next(spec for spec in card.outputs if spec.name == card.decode["picture"])
    shown = g.add("Add", g.add("Div", target.name, _row(g, target, target.scale)), _row(g, target, target.mean))
    x = g.scalar(effect(g, g.scalar(shown, "Div", 255.0)), "Mul", 255.0)
    g.add("Mul", g.add("Sub", x, _row(g, made, made.mean)), _row(g, made, made.scale), out=made.name)
    for spec in card.outputs:
        if spec is not made:
            g.add("Expand", _one(g, mask), _shape_of(g, target, spec), out=spec.name)
    last = next((w for w in of.model.graph.initializer if w.name == "emap"), None)
    model = g.model(card.inputs, card.outputs, last)
    return net(name or card.name, card.family, model, card.inputs, card.outputs, card.decode)


def _row(g: Graph, spec: TensorSpec, values: tuple[float, ...]) -> str:
    """Three numbers laid along the channels of a picture."""
    shape = (1, 3, 1, 1) if spec.layout == "NCHW" else (1, 1, 1, 3)
    return g.constant(np.array(values, np.float32).reshape(shape))


def _one(g: Graph, value: float) -> str:
    return g.constant(np.full((1, 1, 1, 1), value, np.float32))


def _shape_of(g: Graph, target: TensorSpec, spec: TensorSpec) -> str:
    """Shape of a mask output for the batch that the target has in this run."""
    first = g.add("Slice", g.add("Shape", target.name), *(g.constant(np.array([n], np.int64)) for n in (0, 1)))
    return g.add("Concat", first, g.constant(np.array(spec.shape[1:], np.int64)), axis=0)


def emap_in(built: Net) -> NDArray[Any]:
    """The last initialiser, where inswapper keeps its matrix."""
    return numpy_helper.to_array(built.model.graph.initializer[-1])
