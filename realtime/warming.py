"""Does once what runs do, so that the kernels of all of them get compiled; knows no kernel, and needs no model.

Not a list of kernels, which would grow stale: a kernel is compiled for the kind of arrays that it meets, and what meets
it is what a run hands to it.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from engines.card import Licence, ModelCard
from engines.contract import Device, Layout, TensorSpec
from realtime import app, config
from realtime.cropnet import CropNetwork, CropRule
from realtime.errors import EngineError
from realtime.meter import Meter
from realtime.opacity import Opacity
from realtime.opacity.obstacles import Obstacles
from realtime.sources import SourceSpec, SourceWish, open_source
from realtime.swappers import OBSTACLES, Look
from realtime.swappers.crop import CropSwapper
from realtime.types import U8, Face, Size

PICTURES = 30
"""Of the demo: enough to look for a face, find it, follow it and look for more."""
SIDE = 128
"""Of the crops of the network that is stood in for, in pixels."""
KINDS: tuple[tuple[Layout, int], ...] = (("NCHW", 1), ("NCHW", 2), ("NHWC", 1), ("NHWC", 2))
"""Layouts of a network's tensors, each with one tile and with several: the kinds of arrays that kernels tell apart."""


class Echo:
    """Stands in for a network: the face that it makes is the one that it is shown."""

    runtime = "none"

    def __init__(self, card: ModelCard) -> None:
        self.inputs, self.outputs = card.inputs, card.outputs

    def run(self, *tensors: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """See :class:`engines.contract.Engine`."""
        return tensors

    def close(self) -> None:
        """See :class:`engines.contract.Engine`."""


def warm_up() -> None:
    """Swap the face of the demo as a plain start does, and as a network would.

    Raises:
        EngineError: no face was found or swapped, so that nothing is ready.
        LiveError: what a plain start needs is missing.
    """
    settings = config.resolve([config.default_layer()])
    source = open_source(SourceSpec("demo"), SourceWish(size=Size(640, 480), paced=False))
    swapped = False
    with app.open_networks(settings) as networks:
        pipeline = app.build_pipeline(settings, networks, app.load_faces(settings, networks), Meter())
        quality = app.build_budget(settings).best
        for _ in range(PICTURES):
            if (frame := source.read()) is None:
                break
            before = frame.pixels.copy()
            pipeline.process(frame, quality, frame.t_capture_s)
            if pipeline.faces and not swapped:
                swapped = all(swap_crop(networks.device, before.copy(), pipeline.faces[0], *kind) for kind in KINDS)
    source.close()
    if not swapped:
        raise EngineError("no face was swapped in the demo", "run `doppelcam doctor`")


def swap_crop(device: Device, pixels: U8, face: Face, layout: Layout, boost: int) -> bool:
    """Swap a face as a network of this layout would, at ``boost`` times its side; see :class:`Swapper`."""
    shape = (1, 3, SIDE, SIDE) if layout == "NCHW" else (1, SIDE, SIDE, 3)
    target, picture = (
        TensorSpec(name, shape, "float32", layout, "RGB", (127.5,) * 3, (1 / 127.5,) * 3)
        for name in ("target", "picture")
    )
    licence = Licence("none", "", commercial_use=True, origin="")
    card = ModelCard("stand-in", "none", 0, "", "latent", (), licence, (target,), (picture,))
    rule = CropRule(template="arcface_128", target="target", picture="picture", boost=(boost,))
    network, meter = CropNetwork(card, Echo(card), device, rule, boost), Meter()
    opacity = Opacity(rule.template, network.side, meter, parts=[Obstacles(device, network.side)])
    return CropSwapper(network, {}, opacity, Look(), meter).swap(pixels, face, 0.0, (OBSTACLES,))
