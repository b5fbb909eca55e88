"""From a pipeline to files that the program can use: ONNX models, proven equal to PyTorch, and their cards.

Everything is made and compared in memory first; only then do files get their names, and a card comes after its model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from engines.modular import cards
from engines.modular.checkpoint import restore, untrained
from engines.modular.encoder import FACE, IDENTITY
from engines.modular.graph import to_onnx
from engines.modular.parity import Difference, compare
from engines.modular.swapper import CODE, PipelineConfig
from engines.store import disk

_SAMPLES = 2  # the greatest batch that is compared
_SEED = 1

Say = Callable[[str], None]


@dataclass(slots=True)
class Exported:
    """What an export gave.

    Attributes:
        files: name -> content, in the order in which they are written.
        differences: of every module at every batch.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)


def export(config: PipelineConfig, sizes: Sequence[int], weights: Path | None, say: Say) -> Exported:
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
    origin = cards.Origin(weights is not None, f"checkpoint {weights.name}" if weights else "random numbers: untrained")
    swapper, numbers = pipeline.swapper, torch.Generator().manual_seed(_SEED)
    done = Exported()
    base = f"modular_{config.fusion}"
    encoder = f"{base}_encoder"
    face = {"face": _picture(FACE, numbers)}
    source, code = (torch.randn(_SAMPLES, n, generator=numbers) for n in (IDENTITY, CODE))
    source = torch.nn.functional.normalize(source)
    attributes = torch.randn(_SAMPLES, swapper.generator.attributes, generator=numbers)

    model = _proven("encoder", pipeline.encoder, face, ["embedding"], done, say)
    _add(done, encoder, model, cards.encoder_card(encoder, model, origin))
    _proven(f"fusion {config.fusion}", swapper.fusion, {"source": source, "target": attributes}, ["code"], done, say)
    for size in sizes:
        target, results, name = _picture(size, numbers), ["output", "mask"], f"{base}_{size}"
        _proven(f"generator {size}", swapper.generator, {"target": target, "code": code}, results, done, say)
        model = _proven(f"swapper {size}", swapper, {"target": target, "source": source}, results, done, say)
        _add(done, name, model, cards.swapper_card(name, model, origin, size, encoder))
    return done


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


def _proven(
    name: str, module: nn.Module, inputs: Mapping[str, Tensor], outputs: Sequence[str], done: Exported, say: Say
) -> bytes:
    """Export a module and note how far the result is from it."""
    say(f"{name}: exporting and comparing with PyTorch")
    model = to_onnx(module, inputs, outputs)
    done.differences += compare(name, module, model, inputs)
    return model


def _add(done: Exported, name: str, model: bytes, card: str) -> None:
    done.files[f"{name}.onnx"] = model
    done.files[f"{name}.toml"] = card.encode()


def _picture(size: int, numbers: torch.Generator) -> Tensor:
    """Noise in the range of a normalised picture: every value that a pixel can have."""
    return torch.rand(_SAMPLES, 3, size, size, generator=numbers) * 2 - 1
