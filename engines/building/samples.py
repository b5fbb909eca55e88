"""Reads samples of what a network will see from a folder, to find out what whole numbers must cover; knows no face.

A network of one picture is shown pictures: each is laid into its input as detectors do, aspect kept, top left. Any
other
network (a swapper, which is also told an identity) is shown ``.npz`` files, each with all its inputs by their names on
the card.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto

from engines.card import ModelCard
from engines.conform import check_call
from engines.contract import TensorSpec
from engines.cpu import CpuDevice
from engines.errors import EngineError, ModelError
from engines.fp16.check import run
from engines.int8 import MOST_SAMPLES, Inputs

PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
ARRAYS = ".npz"


def read_samples(
    folder: Path, card: ModelCard, style: ModelProto | None, on_read: Callable[[int, int], None]
) -> Iterator[Inputs]:
    """Read the samples of a folder.

    Args:
        folder: with pictures or ``.npz`` files; those in folders inside it do not count.
        card: every axis of its inputs fixed.
        style: gives the inputs of the network that the card has not, where it was cut.
        on_read: told after each sample how many were read, and how many there are.

    Yields:
        The inputs of the network for one run, in the order of the files' names; at most ``MOST_SAMPLES``.

    Raises:
        ModelError: the folder has none of the right kind, or one cannot be read.
    """
    one_picture = len(card.inputs) == 1 and card.inputs[0].colour != "none"
    endings = (*PICTURES, ARRAYS) if one_picture else (ARRAYS,)
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in endings)[:MOST_SAMPLES]
    if not files:
        raise ModelError(
            f"{folder} has no samples for {card.name}: no file that ends with {', '.join(endings)}",
            "name a folder of pictures like those that the network will see"
            if one_picture
            else f"write .npz files with the arrays {', '.join(spec.name for spec in card.inputs)}",
        )
    device = CpuDevice()
    for number, path in enumerate(files):
        given = _arrays(path, card) if path.suffix.lower() == ARRAYS else _picture(path, card.inputs[0], device)
        yield given if style is None else {**given, **run(style, given)}
        on_read(number + 1, len(files))


def _arrays(path: Path, card: ModelCard) -> dict[str, NDArray[np.generic]]:
    hint = f"write it again, or take it out of {path.parent}"
    try:
        with np.load(path, allow_pickle=False) as file:
            given = {spec.name: np.ascontiguousarray(file[spec.name]) for spec in card.inputs}
        check_call(card, tuple(given.values()))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise ModelError(f"sample {path} cannot be read: {error}", hint) from error
    except EngineError as error:
        raise ModelError(f"sample {path}: {error.message}", hint) from error
    return given


def _picture(path: Path, spec: TensorSpec, device: CpuDevice) -> dict[str, NDArray[np.generic]]:
    try:
        data = np.frombuffer(path.read_bytes(), np.uint8)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}", "check its permissions") from error
    try:
        picture = cv2.imdecode(data, cv2.IMREAD_COLOR) if data.size else None
    except cv2.error as error:
        raise ModelError(f"{path} is too large to be read: {error.err}", f"take it out of {path.parent}") from error
    if picture is None:
        raise ModelError(f"{path} is no picture", f"take it out of {path.parent}")
    width, height = spec.size
    k = max(picture.shape[1] / width, picture.shape[0] / height)
    out = np.empty(spec.shape, np.float32)
    one = TensorSpec(spec.name, (1, *spec.shape[1:]), spec.dtype, spec.layout, spec.colour, spec.mean, spec.scale)
    for tile in out:
        device.crop(picture, np.array([[k, 0.0, 0.0], [0.0, k, 0.0]]), one, tile[None])
    return {spec.name: out}
