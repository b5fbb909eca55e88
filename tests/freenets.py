"""A small network of the kind of detectors: a picture of any size goes in, a row for each cell comes out; finds none.

It has what makes such networks hard to compile: a norm that is spelt out, and a layer that is enlarged to the size of
another one, which it works out while it runs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from onnx import TensorProto, helper

from engines.contract import TensorSpec
from engines.sizes import Sizes
from tests.cards import Net, net, picture
from tests.facenets import Graph
from tests.halfnets import SPELLINGS

SIZES = Sizes((64, 32), (96, 64), (128, 128))
STRIDE = 8


def free_detector(name: str = "test_free", spelling: str = "pow", *, stiff: bool = False, plain: bool = False) -> Net:
    """The network and its card; a stiff one works at ``SIZES.best`` alone, a plain one has no norm."""
    g = Graph(np.random.default_rng(7))
    kernel = g.constant(g.rng.normal(0, 0.2, (4, 3, STRIDE, STRIDE)).astype(np.float32))
    seen = g.add("Conv", "picture", kernel, strides=[STRIDE, STRIDE])
    normed = seen if plain else SPELLINGS[spelling][0](g, seen)
    small = g.add("MaxPool", normed, kernel_shape=[2, 2], strides=[2, 2])
    large = g.add("Resize", small, "", "", _twice(g, small, stiff=stiff), mode="nearest")
    rows = g.add("Transpose", g.add("Add", normed, large), perm=[0, 2, 3, 1])
    g.add("Reshape", rows, g.constant(np.array([-1, 4], np.int64)), out="rows")
    spec = replace(picture("picture", 32), shape=(1, 3, -1, -1))
    outputs = (TensorSpec("rows", (-1, 4)),)
    built = net(name, "test", g.model((spec,), outputs), (spec,), outputs, {})
    model = built.model
    del model.graph.input[:]
    model.graph.input.append(helper.make_tensor_value_info("picture", TensorProto.FLOAT, [1, 3, "h", "w"]))
    return Net(replace(built.card, sizes=SIZES), model)


def _twice(g: Graph, small: str, *, stiff: bool) -> str:
    """Twice the size of a layer, by way of floating-point numbers as some exporters write it."""
    if stiff:
        width, height = SIZES.best
        return g.constant(np.array([1, 4, height // STRIDE, width // STRIDE], np.int64))
    starts, ends = (g.constant(np.array([n], np.int64)) for n in (2, 4))
    single = g.add("Cast", g.add("Slice", g.add("Shape", small), starts, ends), to=TensorProto.FLOAT)
    doubled = g.add("Cast", g.add("Floor", g.scalar(single, "Mul", 2.0)), to=TensorProto.INT64)
    return g.add("Concat", g.constant(np.array([1, 4], np.int64)), doubled, axis=0)
