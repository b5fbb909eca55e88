"""A small modular swapper and its export, made once for all tests: an export takes seconds for each of its modules."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import torch

from engines.modular.checkpoint import restore, untrained
from engines.modular.export import Exported, export
from engines.modular.swapper import Pipeline, PipelineConfig

CONFIG = PipelineConfig(8, 1, "gated")
SIZES = (64, 128)


class Modular(NamedTuple):
    """What came out of a checkpoint, in PyTorch and as files."""

    pipeline: Pipeline
    exported: Exported


def used() -> Pipeline:
    """A pipeline whose normalisations have seen something, so that folding them is no matter of ones and zeros."""
    pipeline = untrained(CONFIG)
    numbers = torch.Generator().manual_seed(7)
    for name, values in pipeline.named_buffers():
        if "running" in name:
            values.copy_(torch.rand(values.shape, generator=numbers) + 0.5)
    return pipeline.requires_grad_(False)


def export_checkpoint(folder: Path) -> Modular:
    """Save that pipeline as ``mine.pt``, and export it for ``SIZES``."""
    checkpoint = folder / "mine.pt"
    torch.save(used().state_dict(), checkpoint)
    exported = export(CONFIG, SIZES, checkpoint, lambda words: None)
    return Modular(restore(CONFIG, checkpoint).requires_grad_(False), exported)
