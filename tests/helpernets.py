"""Small networks with the contracts of recognisers, converters, masks and enhancers; random weights."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from engines.contract import TensorSpec
from tests.cards import SIGNED, Net, net, picture
from tests.facenets import IMAGENET, LATENT, Graph


@cache
def arcface(name: str = "test_arcface", *, seed: int = 0) -> Net:
    """A recogniser like w600k_r50: 112x112 RGB -1..1 to 512 numbers that are not of unit length."""
    g = Graph(np.random.default_rng(seed))
    inputs, outputs = (picture("input.1", 112, SIGNED),), (TensorSpec("683", (1, LATENT)),)
    x = "input.1"
    for src, dst in ((3, 8), (8, 16), (16, 32), (32, 32)):
        x = g.leaky(g.conv(x, src, dst, stride=2))
    weight = g.constant(g.rng.normal(0, 0.1, (32 * 7 * 7, LATENT)).astype(np.float32))
    g.add("Gemm", g.add("Flatten", x), weight, g.constant(np.zeros(LATENT, np.float32)), out="683")
    return net(name, "arcface", g.model(inputs, outputs), inputs, outputs, {"template": "arcface_112_v2"})


@cache
def converter(name: str = "test_crossface", *, seed: int = 0) -> Net:
    """A crossface converter: 512 numbers of one recogniser to 512 of another."""
    g = Graph(np.random.default_rng(seed))
    inputs, outputs = (TensorSpec("input", (1, LATENT)),), (TensorSpec("output", (1, LATENT)),)
    hidden = g.add("Relu", g.gemm("input", LATENT, LATENT))
    weight = g.constant(g.rng.normal(0, 0.06, (LATENT, LATENT)).astype(np.float32))
    g.add("MatMul", hidden, weight, out="output")
    return net(name, "converter", g.model(inputs, outputs), inputs, outputs, {})


def xseg(name: str = "test_xseg", *, seed: int = 0) -> Net:
    """An occlusion mask like XSeg: 256x256 NHWC BGR 0..1 to one channel 0..1."""
    g = Graph(np.random.default_rng(seed))
    inputs = (picture("input", 256, layout="NHWC", colour="BGR"),)
    outputs = (TensorSpec("output", (1, 256, 256, 1)),)
    x = g.add("Transpose", "input", perm=[0, 3, 1, 2])
    x = g.leaky(g.conv(x, 3, 8, stride=2))
    x = g.leaky(g.conv(x, 8, 16, stride=2))
    x = g.doubled(g.leaky(g.conv(g.doubled(x), 16, 8)))
    g.add("Transpose", g.add("Sigmoid", g.conv(x, 8, 1, gain=4.0)), out="output", perm=[0, 2, 3, 1])
    decode = {"target": "input", "mask": "output"}
    return net(name, "occlusion", g.model(inputs, outputs), inputs, outputs, decode)


def bisenet(name: str = "test_bisenet", *, seed: int = 0) -> Net:
    """A face parser: 512x512 RGB by ImageNet to the logits of 19 regions."""
    g = Graph(np.random.default_rng(seed))
    inputs = (TensorSpec("input", (1, 3, 512, 512), "float32", "NCHW", "RGB", *IMAGENET),)
    outputs = (TensorSpec("output", (1, 19, 512, 512)),)
    x = g.leaky(g.conv("input", 3, 8, stride=2))
    x = g.leaky(g.conv(x, 8, 16, stride=2))
    x = g.conv(x, 16, 19)
    scales = g.constant(np.array([1, 1, 4, 4], np.float32))
    g.add("Resize", x, "", scales, out="output", mode="linear", coordinate_transformation_mode="half_pixel")
    decode = {"target": "input", "logits": "output", "face_classes": (1, 2, 3, 4, 5, 10, 11, 12, 13)}
    return net(name, "regions", g.model(inputs, outputs), inputs, outputs, decode)


def enhancer(name: str = "test_enhancer", *, side: int = 512, weight: bool = False, seed: int = 0) -> Net:
    """An enhancer like GFPGAN; with ``weight`` like CodeFormer, whose second input is a float64."""
    g = Graph(np.random.default_rng(seed))
    inputs: tuple[TensorSpec, ...] = (picture("input", side, SIGNED),)
    outputs = (picture("output", side, SIGNED),)
    x = g.conv(g.leaky(g.conv("input", 3, 8)), 8, 3, gain=0.3)
    if weight:
        inputs = (*inputs, TensorSpec("weight", (1,), "float64"))
        x = g.add("Mul", x, g.add("Cast", "weight", to=onnx.TensorProto.FLOAT))
    g.add("Tanh", g.add("Add", "input", x), out="output")
    decode = {"template": "ffhq_512", "target": "input", "picture": "output", "weight": "weight" if weight else ""}
    return net(name, "enhancer", g.model(inputs, outputs), inputs, outputs, decode)


def vector_stub(name: str, value: NDArray[np.floating], side: int = 112) -> Net:
    """A recogniser that gives the same vector whatever it sees."""
    g = Graph(np.random.default_rng(0))
    inputs = (picture("input", side, SIGNED),)
    outputs = (TensorSpec("output", (1, value.size)),)
    seen = g.scalar(g.add("ReduceMean", g.add("Flatten", "input"), axes=[1], keepdims=1), "Mul", 0.0)
    last = numpy_helper.from_array(value.reshape(1, -1).astype(np.float32), "value")
    g.add("Add", seen, "value", out="output")
    return net(name, "arcface", g.model(inputs, outputs, last), inputs, outputs, {"template": "arcface_112_v2"})
