"""Weights from a checkpoint into a pipeline, or an error that says what does not fit; never runs what a file holds."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engines.errors import ModelError
from engines.modular.swapper import Pipeline, PipelineConfig

_SEED = 0  # of weights that nobody trained: the same files on every machine
_NAMED = 3  # how many wrong keys a message names
_FIT = "use the --width, --blocks and --fusion that it was trained with"
_SAVE = "save it with torch.save(pipeline.state_dict(), FILE), PyTorch 1.6 or later"


def untrained(config: PipelineConfig) -> Pipeline:
    """Build a pipeline with random weights, the same each time; the caller's random numbers stay as they are.

    Args:
        config: its shape.

    Returns:
        The pipeline, in evaluation mode.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED)
        return Pipeline(config).eval()


def restore(config: PipelineConfig, path: Path) -> Pipeline:
    """Build a pipeline with the weights of a checkpoint.

    Args:
        config: its shape.
        path: what ``torch.save(pipeline.state_dict(), path)`` wrote, on any device, in any float type.

    Returns:
        The pipeline, in evaluation mode, on the processor, float32.

    Raises:
        ModelError: the file cannot be read, holds more than tensors, or holds tensors of another pipeline.
    """
    pipeline = untrained(config)
    weights = _read(path)
    _compare(pipeline.state_dict(), weights, path)
    pipeline.load_state_dict(weights)
    return pipeline


def _read(path: Path) -> dict[str, Tensor]:
    """Read names and tensors, and nothing that could be code."""
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                raise ModelError(f"{path} is no checkpoint, or a damaged one", _SAVE)
            file.seek(0)
            found: Any = torch.load(file, map_location="cpu", weights_only=True)
    except OSError as error:
        raise ModelError(f"checkpoint {path} cannot be read: {error.strerror}", "check its name and place") from error
    except pickle.UnpicklingError as error:
        raise ModelError(f"checkpoint {path} holds more than tensors, which could be code to run", _SAVE) from error
    except RuntimeError as error:  # from the reader of the archive
        raise ModelError(f"{path} is no checkpoint, or a damaged one", _SAVE) from error
    if isinstance(found, Mapping):
        weights = {key: value for key, value in found.items() if isinstance(key, str) and isinstance(value, Tensor)}
        if len(weights) == len(found):
            return weights
    raise ModelError(f"checkpoint {path} holds no table of tensors", _SAVE)


def _compare(wanted: Mapping[str, Tensor], found: Mapping[str, Tensor], path: Path) -> None:
    """Raise ``ModelError`` where keys are missing, unknown or of another shape, or a weight is no number."""
    wrong = {
        "lacks": [key for key in wanted if key not in found],
        "has the unknown": [key for key in found if key not in wanted],
        "has another shape of": [key for key in wanted if key in found and wanted[key].shape != found[key].shape],
    }
    for what, keys in wrong.items():
        if keys:
            more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
            raise ModelError(f"checkpoint {path} {what} {', '.join(keys[:_NAMED])}{more}", _FIT)
    for key, weight in found.items():
        if not weight.isfinite().all():
            raise ModelError(f"checkpoint {path}: {key} holds values that are no numbers", "use an earlier checkpoint")
