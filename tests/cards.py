"""Puts a network that a test has built, and its card, into a folder as a user would; knows files, not networks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import onnx

from engines.card import Licence, ModelCard
from engines.contract import TensorSpec

LICENCE = Licence("test", "the tests", True, "built by the tests")
UNIT = (0.0, 1 / 255)
"""Mean and scale of a picture that goes in or comes out as 0..1."""
SIGNED = (127.5, 1 / 127.5)
"""The same for -1..1."""


@dataclass(frozen=True, slots=True)
class Net:
    """A network and what its card says; the card has no hash until the file is written.

    Attributes:
        card: of the network.
        model: as ONNX.
    """

    card: ModelCard
    model: onnx.ModelProto


def picture(
    name: str,
    side: int,
    mean_scale: tuple[float, float] = UNIT,
    *,
    layout: str = "NCHW",
    colour: str = "RGB",
    batch: int = 1,
) -> TensorSpec:
    """A square picture that is an input or an output; ``batch`` -1 for a free axis."""
    shape = (batch, 3, side, side) if layout == "NCHW" else (batch, side, side, 3)
    mean, scale = mean_scale
    return TensorSpec(name, shape, "float32", layout, colour, (mean,) * 3, (scale,) * 3)  # type: ignore[arg-type]  # plain words here


def net(
    name: str,
    family: str,
    model: onnx.ModelProto,
    inputs: tuple[TensorSpec, ...],
    outputs: tuple[TensorSpec, ...],
    decode: Mapping[str, Any],
) -> Net:
    """A network with the card of a family."""
    file = f"{name}.onnx"
    return Net(ModelCard(name, file, 0, "", family, ("onnxrt",), LICENCE, inputs, outputs, decode=decode), model)


def put(folder: Path, built: Net, **decode: Any) -> str:
    """Write a network and its card into a folder, which ``DOPPELCAM_MODELS`` may name.

    Args:
        folder: that exists.
        built: the network.
        decode: what the card's ``[decode]`` shall say besides, or instead.

    Returns:
        Name of the card.
    """
    data = built.model.SerializeToString()
    (folder / built.card.file).write_bytes(data)
    known = replace(built.card, size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    write_card(folder, replace(known, decode={**known.decode, **decode}))
    return known.name


def write_card(folder: Path, card: ModelCard) -> Path:
    """Write a card as the TOML file that a person would write."""
    path = folder / f"{card.name}.toml"
    path.write_text("\n".join(_lines(asdict(card), "")) + "\n", encoding="utf-8")
    return path


def _lines(table: Mapping[str, Any], name: str) -> list[str]:
    """A table as TOML: its plain values, then its tables, then its arrays of tables."""
    table = {key: value for key, value in table.items() if value is not None}
    plain = {key: value for key, value in table.items() if not _holds_tables(value)}
    lines = [f"{key} = {json.dumps(value)}" for key, value in plain.items()]
    for key, value in table.items():
        if isinstance(value, Mapping):
            lines += ["", f"[{name}{key}]", *_lines(value, f"{name}{key}.")]
        elif key not in plain:
            for entry in value:
                lines += ["", f"[[{name}{key}]]", *_lines(entry, f"{name}{key}.")]
    return lines


def _holds_tables(value: object) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list | tuple) and any(isinstance(entry, Mapping) for entry in value)
    )
