"""From a pipeline to files that the program can use: ONNX models, proven equal to PyTorch, and their cards.

Everything is made and compared in memory first; only then do files get their names, and a card comes after its model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
from torch import Tensor, nn

from engines.modular import cards
from engines.modular.checkpoint import restore, untrained
from engines.modular.encoder import FACE, IDENTITY
from engines.modular.graph import to_onnx
from engines.modular.parity import Difference, compare
from engines.modular.swapper import CODE, Pipeline, PipelineConfig
from engines.store import disk

_SAMPLES = 2  # the greatest batch that is compared
_PART = 64  # side at which the generator is compared alone; as a part of the swappers it is at theirs
_SEED = 1


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export gave.

    Attributes:
        files: name -> content of models and cards, in the order in which they are to be written.
        differences: of every module at every batch.
    """

    files: Mapping[str, bytes]
    differences: Sequence[Difference]


@dataclass(frozen=True, slots=True)
class _Part:
    """A module, what it is compared on, and the names of what it returns."""

    name: str
    module: nn.Module
    inputs: Mapping[str, Tensor]
    outputs: Sequence[str]


def export(config: PipelineConfig, sizes: Sequence[int], weights: Path | None, say: Callable[[str], None]) -> Exported:
    """Export a pipeline: one encoder, and one swapper for each size.

    Args:
        config: of the pipeline.
        sizes: sides of the swappers' crops in pixels, multiples of 8.
        weights: a checkpoint, see :func:`engines.modular.checkpoint.restore`; random weights without one.
        say: is told what is being done, a few words each time.

    Returns:
        Models and cards, not yet written.

    Raises:
        ModelError: the checkpoint does not fit, or a module's export does not compute what the module does.
    """
    pipeline = untrained(config) if weights is None else restore(config, weights)
    models: dict[str, bytes] = {}
    differences: list[Difference] = []
    for part in _parts(pipeline, sizes):
        say(f"{part.name}: exporting and comparing with PyTorch")
        models[part.name] = to_onnx(part.module, part.inputs, part.outputs)
        differences += compare(part.name, part.module, models[part.name], part.inputs)

    origin = cards.Origin(weights is not None, f"checkpoint {weights.name}" if weights else "random numbers: untrained")
    encoder = f"modular_{config.fusion}_encoder"
    files = _files(encoder, models["encoder"], cards.encoder_card(encoder, models["encoder"], origin))
    for size in sizes:
        name, model = f"modular_{config.fusion}_{size}", models[f"swapper {size}"]
        files |= _files(name, model, cards.swapper_card(name, model, origin, size, encoder))
    return Exported(files, differences)


def write(files: Mapping[str, bytes], folder: Path) -> None:
    """Write files so that none is ever there by half: all under other names first, then all renamed.

    Args:
        files: name -> content, in the order in which they get their names.
        folder: made where it is not there.

    Raises:
        ModelError: the disk refuses; what was there under these names is as it was, or complete and new.
    """
    disk.make_folder(folder)
    parts = {folder / name: folder / f".{name}.part" for name in files}
    with ExitStack() as stack:
        for (path, part), content in zip(parts.items(), files.values(), strict=True):
            disk.need_room(part, len(content))
            stack.callback(part.unlink, missing_ok=True)
            with disk.plain_errors(path):
                part.write_bytes(content)
        for path, part in parts.items():
            disk.commit(part, path)


def _parts(pipeline: Pipeline, sizes: Sequence[int]) -> Iterator[_Part]:
    """List every module with seeded inputs in its range, from the smallest to the whole."""
    numbers = torch.Generator().manual_seed(_SEED)

    def picture(side: int) -> Tensor:
        return torch.rand(_SAMPLES, 3, side, side, generator=numbers) * 2 - 1

    def vector(length: int) -> Tensor:
        return torch.randn(_SAMPLES, length, generator=numbers)

    swapper, source = pipeline.swapper, F.normalize(vector(IDENTITY))
    attributes, drawn = vector(swapper.generator.attributes), ["output", "mask"]
    yield _Part("encoder", pipeline.encoder, {"face": picture(FACE)}, ["embedding"])
    fusion = {"source": source, "target": attributes}
    yield _Part(f"fusion {pipeline.config.fusion}", swapper.fusion, fusion, ["code"])
    yield _Part("generator", swapper.generator, {"target": picture(_PART), "code": vector(CODE)}, drawn)
    for size in sizes:
        yield _Part(f"swapper {size}", swapper, {"target": picture(size), "source": source}, drawn)


def _files(name: str, model: bytes, card: str) -> dict[str, bytes]:
    return {f"{name}.onnx": model, f"{name}.toml": card.encode()}
