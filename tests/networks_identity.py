"""A recogniser that tells real people apart by their colours, for tests without weights; knows nothing of a face."""

from __future__ import annotations

import numpy as np

from engines.contract import TensorSpec
from tests.cards import SIGNED, Net, net, picture
from tests.facenets import LATENT, Graph

CELL = 14
"""Pixels each way that one average is of."""


def colourist(name: str = "test_colourist", *, seed: int = 0) -> Net:
    """A recogniser with the contract of ArcFace: the coarse picture without its mean, spread over 512 numbers.

    The cosine of two vectors is that of the two coarse pictures: near 1 for one person in one light, also when the
    head turns a little and the mouth moves, and much lower for people with another skin, hair and light.
    """
    g = Graph(np.random.default_rng(seed))
    inputs, outputs = (picture("input.1", 112, SIGNED),), (TensorSpec("683", (1, LATENT)),)
    coarse = g.add("Flatten", g.add("AveragePool", "input.1", kernel_shape=[CELL, CELL], strides=[CELL, CELL]))
    centred = g.add("Sub", coarse, g.add("ReduceMean", coarse, axes=[1], keepdims=1))
    cells = 3 * (112 // CELL) ** 2
    axes = np.linalg.qr(g.rng.normal(size=(LATENT, cells)))[0].T  # orthonormal: keeps every cosine
    g.add("MatMul", centred, g.constant((4 * axes).astype(np.float32)), out="683")
    return net(name, "arcface", g.model(inputs, outputs), inputs, outputs, {"template": "arcface_112_v2"})
