"""The model cards of an export, as TOML; knows what the program wants to read on a card, and nothing of networks."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from engines.modular.encoder import FACE, IDENTITY

_SIGNED = f"""layout = "NCHW"
colour = "RGB"
mean = {[127.5] * 3}
scale = {[1 / 127.5] * 3}  # 0..255 is -1..1"""
_UNIT = f"""layout = "NCHW"
colour = "RGB"
mean = {[0.0] * 3}
scale = {[1 / 255] * 3}  # 0..255 is 0..1"""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the weights come from.

    Attributes:
        trained: they were; otherwise they are random numbers.
        words: for people, e.g. the name of the checkpoint.
    """

    trained: bool
    words: str


def encoder_card(name: str, model: bytes, origin: Origin) -> str:
    """Write the card of an exported identity encoder.

    Args:
        name: of the card; its file is ``<name>.onnx``.
        model: the file's bytes.
        origin: of its weights.

    Returns:
        TOML.
    """
    return f"""# Identity encoder: a 112x112 face -> {IDENTITY} numbers, not of unit length.
{_head(name, model, "arcface", origin)}
[[inputs]]
name = "face"
shape = [1, 3, {FACE}, {FACE}]
{_SIGNED}

[[outputs]]
name = "embedding"
shape = [1, {IDENTITY}]

[decode]
template = "arcface_112_v2"
"""


def swapper_card(name: str, model: bytes, origin: Origin, size: int, encoder: str) -> str:
    """Write the card of an exported swapper.

    Args:
        name: of the card; its file is ``<name>.onnx``.
        model: the file's bytes.
        origin: of its weights.
        size: side of the crop in pixels.
        encoder: name of the card of the encoder that it was trained with.

    Returns:
        TOML.
    """
    return f"""# Swapper: a {size}x{size} crop and an identity -> the crop with that identity, and where it is meant.
{_head(name, model, "latent", origin)}
[[inputs]]
name = "target"
shape = [1, 3, {size}, {size}]
{_SIGNED}

[[inputs]]
name = "source"
shape = [1, {IDENTITY}]

[[outputs]]
name = "output"
shape = [1, 3, {size}, {size}]
{_UNIT}

[[outputs]]
name = "mask"                # 0..1
shape = [1, 1, {size}, {size}]

[decode]
template = "arcface_128"
target = "target"
source = "source"
picture = "output"
mask = "mask"
boost = [1]

[decode.latent]
recogniser = {_quoted(encoder)}
kind = "unit"                # its embedding over its norm
"""


def _head(name: str, model: bytes, family: str, origin: Origin) -> str:
    """What every card says of a file; a licence that nobody stated allows nothing."""
    if origin.trained:
        licence, holder, free = "as the checkpoint", "whoever trained the checkpoint", "false"
        free += "       # nobody said; write true where you know that it may be"
    else:
        licence, holder, free = "Apache-2.0", "The doppelcam authors", "true"
    return f"""name = {_quoted(name)}
file = {_quoted(name + ".onnx")}
size_bytes = {len(model)}
sha256 = "{hashlib.sha256(model).hexdigest()}"
family = "{family}"
runtimes = ["onnxrt", "openvino"]

[licence]
name = "{licence}"
holder = "{holder}"
commercial_use = {free}
origin = {_quoted(origin.words)}
"""


def _quoted(text: str) -> str:
    """Write a text as TOML does, whose escapes are those of JSON but for halves of a character."""
    return json.dumps(text, ensure_ascii=False)
