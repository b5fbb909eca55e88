"""Small swapper networks with the contract and the topology of each family; random weights, so they make no faces.

The topology of inswapper and SimSwap: convolutions down to a quarter of the side, residual blocks whose instance
normalisation is scaled and shifted by a Gemm of the identity vector, bilinear enlargement, convolutions to a picture.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from engines.contract import TensorSpec
from tests.cards import SIGNED, UNIT, Net, net, picture

WIDTH = 16
"""Channels of the first layer: an eighth of inswapper's."""
LATENT = 512
IMAGENET = tuple(255 * m for m in (0.485, 0.456, 0.406)), tuple(1 / (255 * s) for s in (0.229, 0.224, 0.225))


@dataclass(slots=True)
class Graph:
    """A graph in the making; the latest tensor is the input of the next node."""

    rng: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)

    def constant(self, values: NDArray[np.generic], name: str = "") -> str:
        name = name or f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def add(self, op: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        out = out or f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], **attributes))
        return out

    def conv(self, x: str, src: int, dst: int, kernel: int = 3, *, stride: int = 1, gain: float = 1.4) -> str:
        values = self.rng.normal(0, gain / np.sqrt(src * kernel * kernel), (dst, src, kernel, kernel))
        weight, bias = self.constant(values.astype(np.float32)), self.constant(np.zeros(dst, np.float32))
        return self.add("Conv", x, weight, bias, strides=[stride, stride], pads=[kernel // 2] * 4)

    def leaky(self, x: str) -> str:
        return self.add("LeakyRelu", x, alpha=0.2)

    def gemm(self, x: str, src: int, dst: int, mean: float = 0.0) -> str:
        weight = self.constant(self.rng.normal(0, 1 / np.sqrt(src), (dst, src)).astype(np.float32))
        return self.add("Gemm", x, weight, self.constant(np.full(dst, mean, np.float32)), transB=1)

    def scalar(self, x: str, op: str, value: float) -> str:
        return self.add(op, x, self.constant(np.array([value], np.float32)))

    def doubled(self, x: str) -> str:
        scales = self.constant(np.array([1, 1, 2, 2], np.float32))
        return self.add("Resize", x, "", scales, mode="linear", coordinate_transformation_mode="half_pixel")

    def unsqueezed(self, x: str) -> str:
        return self.add("Unsqueeze", x, self.constant(np.array([2, 3], np.int64)))

    def adain(self, x: str, latent: str, width: int) -> str:
        """Instance normalisation as SimSwap writes it, scaled and shifted by the identity."""
        centred = self.add("Sub", x, self.add("ReduceMean", x, axes=[2, 3], keepdims=1))
        power = self.add("ReduceMean", self.add("Mul", centred, centred), axes=[2, 3], keepdims=1)
        normed = self.add("Div", centred, self.add("Sqrt", self.scalar(power, "Add", 1e-8)))
        scale = self.unsqueezed(self.gemm(latent, LATENT, width, 1.0))
        shift = self.unsqueezed(self.gemm(latent, LATENT, width))
        return self.add("Add", self.add("Mul", normed, scale), shift)

    def style_block(self, x: str, latent: str, width: int) -> str:
        inner = self.add("Relu", self.adain(self.conv(x, width, width), latent, width))
        return self.add("Add", x, self.adain(self.conv(inner, width, width), latent, width))

    def model(
        self, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...], last: onnx.TensorProto | None = None
    ) -> onnx.ModelProto:
        """The whole network, with free batch axes for pictures where the specs say so."""
        weights = [*self.weights, *([] if last is None else [last])]
        graph = helper.make_graph(self.nodes, "network", declared(inputs), declared(outputs), weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        return model


def declared(specs: tuple[TensorSpec, ...]) -> list[onnx.ValueInfoProto]:
    """Tensors of a card as a graph declares them."""
    kinds = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}
    return [
        helper.make_tensor_value_info(spec.name, kinds[spec.dtype], ["n" if n < 0 else n for n in spec.shape])
        for spec in specs
    ]


def generator(
    g: Graph, x: str, latent: str, out: str, *, signed: bool, mask: str = "", blocks: int = 2, stem: int = 7
) -> None:
    """The body of a swapper: from a normalised crop and an identity to the named outputs."""
    w = WIDTH
    x = g.leaky(g.conv(x, 3, w, stem))
    x = g.leaky(g.conv(x, w, 2 * w, stride=2))
    x = g.leaky(g.conv(x, 2 * w, 4 * w, stride=2))
    for _ in range(blocks):
        x = g.style_block(x, latent, 4 * w)
    x = g.leaky(g.conv(g.doubled(x), 4 * w, 2 * w))
    x = g.leaky(g.conv(g.doubled(x), 2 * w, w))
    made = g.conv(x, w, 3, stem, gain=0.5)
    if signed:
        g.add("Tanh", made, out=out)
    else:  # inswapper: tanh, then from -1..1 to 0..1
        g.add("Mul", g.scalar(g.add("Tanh", made), "Add", 1.0), g.constant(np.array([0.5], np.float32)), out=out)
    if mask:
        g.add("Sigmoid", g.conv(x, w, 1, gain=2.0), out=mask)


@cache
def latent_swapper(
    name: str = "test_inswapper",
    *,
    side: int = 128,
    template: str = "arcface_128",
    signed: bool = False,
    kind: str = "emap",
    norm: str = "latent",
    mask: str = "",
    normalise: tuple[tuple[float, ...], tuple[float, ...]] | None = None,
    recogniser: str = "test_arcface",
    converter: str = "",
    seed: int = 0,
    batch: int = 1,
    boost: tuple[int, ...] = (1, 2, 4),
    blocks: int = 2,
) -> Net:
    """A swapper that takes the identity as a vector; inswapper_128 by default, its ``emap`` the last initialiser.

    Args:
        name: of the card.
        side: of its crop.
        template: alignment.
        signed: whether its pictures are -1..1 instead of 0..1.
        kind: of ``[decode.latent]``, as the next.
        norm: length of the vector.
        mask: name of a mask output, for hyperswap and hififace.
        normalise: means and scales of the target where they are not those of its output (SimSwap).
        recogniser: card of the recogniser.
        converter: card of the converter.
        seed: of the weights.
        batch: of the pictures; -1 for a free one.
        boost: of ``[decode]``.
        blocks: residual blocks.
    """
    g = Graph(np.random.default_rng(seed))
    levels = SIGNED if signed else UNIT
    target = picture("target", side, levels, batch=batch)
    if normalise:
        target = TensorSpec("target", target.shape, "float32", "NCHW", "RGB", *normalise)
    source = TensorSpec("source", (1, LATENT))
    outputs: tuple[TensorSpec, ...] = (picture("output", side, levels, batch=batch),)
    if mask:
        outputs = (*outputs, TensorSpec(mask, (batch, 1, side, side)))
    generator(g, "target", "source", "output", signed=signed, mask=mask, blocks=blocks)
    emap = numpy_helper.from_array(emap_of(seed), "emap") if kind == "emap" else None
    decode = {
        "template": template, "target": "target", "source": "source", "picture": "output", "mask": mask,
        "boost": boost,
        "latent": {"recogniser": recogniser, "kind": kind, "norm": norm, "converter": converter},
    }  # fmt: skip
    return net(name, "latent", g.model((target, source), outputs, emap), (target, source), outputs, decode)


def emap_of(seed: int = 0) -> NDArray[np.float32]:
    """The matrix that a swapper of :func:`latent_swapper` carries."""
    return np.random.default_rng(seed + 1000).normal(0, 0.06, (LATENT, LATENT)).astype(np.float32)


@cache
def image_swapper(
    name: str = "test_uniface",
    *,
    side: int = 256,
    source_side: int = 256,
    source_template: str = "ffhq_512",
    signed: bool = True,
    batch: int = 1,
    seed: int = 0,
) -> Net:
    """A swapper that takes the identity as a picture: uniface_256 by default; blendswap_256 with 112 and unsigned."""
    g = Graph(np.random.default_rng(seed))
    norm = SIGNED if signed else UNIT
    inputs = picture("target", side, norm, batch=batch), picture("source", source_side, batch=batch)
    outputs = (picture("output", side, norm, batch=batch),)
    x = "source"
    for src, dst in ((3, WIDTH), (WIDTH, 2 * WIDTH), (2 * WIDTH, 4 * WIDTH)):
        x = g.leaky(g.conv(x, src, dst, stride=2))
    pooled = g.add("Flatten", g.add("GlobalAveragePool", x))
    latent = g.gemm(pooled, 4 * WIDTH, LATENT)
    generator(g, "target", latent, "output", signed=signed)
    decode = {
        "template": "ffhq_512", "target": "target", "source": "source", "picture": "output", "boost": (1, 2),
        "source_template": source_template,
    }  # fmt: skip
    return net(name, "image", g.model(inputs, outputs), inputs, outputs, decode)


@cache
def dfm_swapper(name: str = "test_dfm", *, side: int = 224, morph: bool = False, batch: int = 1, seed: int = 0) -> Net:
    """A DeepFaceLive model: NHWC and BGR, three outputs, the identity inside; ``morph``: of the AMP kind."""
    g = Graph(np.random.default_rng(seed))
    w = WIDTH
    face = picture("in_face:0", side, layout="NHWC", colour="BGR", batch=batch)
    inputs = (face, TensorSpec("morph_value:0", (1,))) if morph else (face,)
    shape = (batch, side, side, 1)
    outputs = (
        TensorSpec("out_face_mask:0", shape),
        picture("out_celeb_face:0", side, layout="NHWC", colour="BGR", batch=batch),
        TensorSpec("out_celeb_face_mask:0", shape),
    )
    x = g.add("Transpose", "in_face:0", perm=[0, 3, 1, 2])
    x = g.leaky(g.conv(x, 3, w, 5, stride=2))
    x = g.leaky(g.conv(x, w, 2 * w, 5, stride=2))
    code = g.leaky(g.conv(x, 2 * w, 2 * w))
    if morph:  # two inner codes, blended by the morph value
        own, shown = g.conv(code, 2 * w, 2 * w), g.conv(code, 2 * w, 2 * w)
        share = g.add("Reshape", "morph_value:0", g.constant(np.array([1, 1, 1, 1], np.int64)))
        rest = g.add("Sub", g.constant(np.ones((1, 1, 1, 1), np.float32)), share)
        code = g.add("Add", g.add("Mul", own, rest), g.add("Mul", shown, share))
    for out, source, channels in zip((spec.name for spec in outputs), (x, code, code), (1, 3, 1), strict=True):
        y = g.leaky(g.add("DepthToSpace", g.conv(source, 2 * w, 4 * w), blocksize=2, mode="DCR"))
        y = g.add("DepthToSpace", g.conv(y, w, 4 * channels, gain=0.6), blocksize=2, mode="DCR")
        g.add("Transpose", g.add("Sigmoid", y), out=out, perm=[0, 2, 3, 1])
    decode = {
        "template": "dfl_whole_face", "target": "in_face:0", "picture": "out_celeb_face:0",
        "mask": "out_face_mask:0", "celeb_mask": "out_celeb_face_mask:0",
        "morph": "morph_value:0" if morph else "", "boost": (1,),
    }  # fmt: skip
    return net(name, "dfm", g.model(inputs, outputs), inputs, outputs, decode)


def inswapper(batch: int = 1, norm: str = "latent") -> Net:
    return latent_swapper(batch=batch, norm=norm)


def hyperswap(batch: int = 1) -> Net:
    return latent_swapper("test_hyperswap", side=256, signed=True, kind="unit", mask="mask", batch=batch, boost=(1, 2))


def ghost(batch: int = 1) -> Net:
    return _crossface("test_ghost", "arcface_112_v1", "none", batch)


def simswap(batch: int = 1) -> Net:
    return latent_swapper(
        "test_simswap", side=256, template="arcface_112_v1", kind="crossface", converter="test_crossface",
        normalise=IMAGENET, batch=batch, boost=(1, 2),
    )  # fmt: skip


def hififace(batch: int = 1) -> Net:
    return _crossface("test_hififace", "mtcnn_512", "latent", batch, "mask")


def blendswap(batch: int = 1) -> Net:
    return image_swapper("test_blendswap", source_side=112, source_template="arcface_112_v2", signed=False, batch=batch)


def amp(batch: int = 1) -> Net:
    return dfm_swapper("test_amp", morph=True, batch=batch)


def _crossface(name: str, template: str, norm: str, batch: int, mask: str = "") -> Net:
    return latent_swapper(
        name, side=256, template=template, signed=True, kind="crossface", norm=norm, converter="test_crossface",
        mask=mask, batch=batch, boost=(1, 2),
    )  # fmt: skip


EVERY: dict[str, Callable[[int], Net]] = {
    "inswapper": inswapper,
    "hyperswap": hyperswap,
    "ghost": ghost,
    "simswap": simswap,
    "hififace": hififace,
    "uniface": lambda batch: image_swapper(batch=batch),
    "blendswap": blendswap,
    "dfm": lambda batch: dfm_swapper(batch=batch),
    "amp": amp,
}
"""Every kind of swapper there is, by the name of the best known one; each takes the batch of its pictures, -1 for a
free one. They need ``test_arcface`` and ``test_crossface`` of ``helpernets`` beside them."""
