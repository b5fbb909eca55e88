"""Networks that show what half precision does: norms in every spelling, and inswapper's whole topology, narrow."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from engines.contract import TensorSpec
from engines.fp16.check import rounded, run
from engines.graph.view import typed
from tests.cards import UNIT, Net, net, picture
from tests.facenets import LATENT, Graph, emap_of, generator

Feeds = dict[str, NDArray[Any]]


class InswapperGraph(Graph):
    """Spells a normalisation as inswapper does: eight nodes, with a reciprocal and a product in place of a division."""

    def adain(self, x: str, latent: str, width: int) -> str:
        normed = inswapper_norm(self, x)
        scale = self.unsqueezed(self.gemm(latent, LATENT, width, 1.0))
        return self.add("Add", self.add("Mul", normed, scale), self.unsqueezed(self.gemm(latent, LATENT, width)))


@cache
def inswapper_like(side: int = 128, blocks: int = 6, seed: int = 0) -> Net:
    """Inswapper's topology, all twelve norms, at an eighth of its width."""
    g = InswapperGraph(np.random.default_rng(seed))
    inputs = picture("target", side, UNIT), TensorSpec("source", (1, LATENT))
    outputs = (picture("output", side, UNIT),)
    generator(g, "target", "source", "output", signed=False, blocks=blocks)
    model = g.model(inputs, outputs, numpy_helper.from_array(emap_of(seed), "emap"))
    return net("test_inswapper_like", "latent", model, inputs, outputs, {"target": "target"})


def mean(g: Graph, x: str) -> str:
    return g.add("ReduceMean", x, axes=[2, 3], keepdims=1)


def inswapper_norm(g: Graph, x: str) -> str:
    centred = g.add("Sub", x, mean(g, x))
    power = mean(g, g.add("Mul", centred, centred))
    spread = g.add("Sqrt", g.scalar(power, "Add", 1e-8))
    return g.add("Mul", centred, g.add("Div", g.constant(np.ones(1, np.float32)), spread))


def simswap_norm(g: Graph, x: str) -> str:
    centred = g.add("Sub", x, mean(g, x))
    power = mean(g, g.add("Mul", centred, centred))
    return g.add("Div", centred, g.add("Sqrt", g.scalar(power, "Add", 1e-8)))


def pow_norm(g: Graph, x: str) -> str:
    centred = g.add("Sub", x, mean(g, x))
    power = mean(g, g.scalar(centred, "Pow", 2))
    return g.add("Mul", centred, g.add("Reciprocal", g.add("Sqrt", g.scalar(power, "Add", 1e-8))))


def moments_norm(g: Graph, x: str) -> str:
    """The mean of the squares less the square of the mean."""
    middle = mean(g, x)
    power = g.add("Sub", mean(g, g.add("Mul", x, x)), g.add("Mul", middle, middle))
    spread = g.add("Sqrt", g.scalar(power, "Add", 1e-8))
    return g.add("Div", g.add("Sub", x, middle), spread)


def demodulation(g: Graph, x: str) -> str:
    """What StyleGAN does to its weights, here to a tensor: divided by its length."""
    length = g.add("ReduceSum", g.add("Mul", x, x), g.constant(np.array([2, 3], np.int64)), keepdims=1)
    return g.add("Mul", x, g.add("Reciprocal", g.add("Sqrt", g.scalar(length, "Add", 1e-8))))


SPELLINGS = {
    "inswapper": (inswapper_norm, 8),
    "simswap": (simswap_norm, 7),
    "pow": (pow_norm, 8),
    "moments": (moments_norm, 9),
    "demodulation": (demodulation, 6),
}
"""Name -> what writes a norm, and how many nodes that is."""


def norm_net(spelling: str, channels: int = 4, side: int = 16) -> onnx.ModelProto:
    """A norm between two light nodes that need no island."""
    g = Graph(np.random.default_rng(0))
    normed = SPELLINGS[spelling][0](g, g.add("Relu", "x"))
    g.add("Relu", normed, out="y")
    return of(g, {"x": (1, channels, side, side)}, ["y"])


def of(g: Graph, inputs: dict[str, tuple[int, ...]], outputs: list[str], opset: int = 17) -> onnx.ModelProto:
    """A graph as a model with inferred types; all its inputs and outputs are float32."""
    declared = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(g.nodes, "network", declared, results, g.weights)
    return typed(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8))


def emulated(model: onnx.ModelProto, feeds: Feeds) -> Feeds:
    return run(rounded(model), feeds)


def by_reference(model: onnx.ModelProto, feeds: Feeds) -> Feeds:
    """Run by onnx's own evaluator, which really computes in half precision."""
    kinds = {v.name: helper.tensor_dtype_to_np_dtype(v.type.tensor_type.elem_type) for v in model.graph.input}
    given = {name: feeds[name].astype(kind) for name, kind in kinds.items()}
    with np.errstate(all="ignore"):  # overflow and division by zero are what some tests look for
        results = ReferenceEvaluator(model).run(None, given)
    return dict(zip((value.name for value in model.graph.output), results, strict=True))
