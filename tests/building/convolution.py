"""A network of one convolution that takes a picture, and its card."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from engines.card import ModelCard, load_card
from engines.contract import TensorSpec
from tests.own_models import write_card

SIDE = 16


def one_picture_card(folder: Path) -> ModelCard:
    """Write the network into a model folder."""
    rng = np.random.default_rng(1)
    weight = numpy_helper.from_array(rng.standard_normal((4, 3, 3, 3)).astype(np.float32), "weight")
    graph = helper.make_graph(
        [helper.make_node("Conv", ["in", "weight"], ["out"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])],
        "convolution",
        [helper.make_tensor_value_info("in", TensorProto.FLOAT, [1, 3, SIDE, SIDE])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, 4, SIDE, SIDE])],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(folder / "conv.onnx"))
    write_card(folder, "conv", (folder / "conv.onnx").read_bytes(), side=SIDE)
    card = load_card("conv")
    picture = TensorSpec("in", (1, 3, SIDE, SIDE), "float32", "NCHW", "RGB", (127.5,) * 3, (1 / 127.5,) * 3)
    return replace(card, inputs=(picture,), outputs=(TensorSpec("out", (1, 4, SIDE, SIDE)),))
