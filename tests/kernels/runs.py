"""Launches each kernel on arrays of the host, in the order and with the arguments of the CUDA device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.contract import TONE_STEP, TensorSpec
from engines.cuda import blocks
from realtime.types import F32, F64, U8
from tests.kernels.host import HostKernels

SMALL = (64, 1, 1)
"""Threads of a block, and few blocks: the strides of the kernels are walked."""
THREADS = (256, 1, 1)
EXTENTS = 5
NO_GAIN, NO_OFFSET = np.ones(3, np.float32), np.zeros(3, np.float32)
Tone = tuple[F32, F32]


def at(array: NDArray[Any]) -> np.uint64:
    """Address of an array."""
    return np.uint64(array.ctypes.data)


def crop(kernels: HostKernels, picture: U8, picture_from_crop: F64, spec: TensorSpec) -> NDArray[Any]:
    """Cut a crop; all tiles at once."""
    out = np.full(spec.shape, 7, spec.dtype)
    block = np.zeros(1, blocks.CROP)
    blocks.write_crop(block, picture_from_crop, picture.shape[1::-1], picture.strides[0])
    arguments = (at(picture), at(block), at(out), *blocks.crop_arguments(spec))
    kernels.launch("crop.cu", f"crop_{blocks.suffix(spec)}", (3, 1, 1), SMALL, arguments)
    return out


def measure(
    kernels: HostKernels, target: NDArray[Any], output: NDArray[Any], given: TensorSpec, made: TensorSpec, weight: F32
) -> NDArray[Any]:
    """Measure tone and range; a ``blocks.MEASURED``."""
    result, extents = np.zeros(1, blocks.MEASURED), np.zeros(EXTENTS, blocks.EXTENT)
    end, layout = blocks.suffix(made), blocks.layout_arguments(made)
    kernels.launch("measure.cu", f"extent_{end}", (EXTENTS, 1, 1), THREADS, (at(output), at(extents), *layout))
    given_worth = blocks.worth_arguments(given)
    addresses = (at(target), at(output), at(extents), np.int32(EXTENTS), at(weight), at(result))
    kernels.launch("measure.cu", f"measure_{end}", (1, 1, 1), THREADS, (*addresses, *given_worth, *layout))
    return result


def paste(
    kernels: HostKernels,
    picture: U8,
    output: NDArray[Any],
    spec: TensorSpec,
    picture_from_patch: F64,
    opacity: U8,
    tone: Tone = (NO_GAIN, NO_OFFSET),
    least: tuple[float, float] = (8, 0),
) -> bool:
    """Measure and paste; whether it was painted."""
    weight = np.ones((-(-spec.size[1] // TONE_STEP), -(-spec.size[0] // TONE_STEP)), np.float32)
    result = measure(kernels, output, output, spec, spec, weight)
    block = np.zeros(1, blocks.PASTE)
    placed = blocks.place(opacity, picture_from_patch, picture.shape[1::-1])
    blocks.write_paste(block, placed, *tone, picture.strides[0], least)
    addresses = (at(picture), at(block), at(output), at(opacity), at(result))
    kernels.launch(
        "paste.cu", f"paste_{blocks.suffix(spec)}", (4, 1, 1), SMALL, (*addresses, *blocks.layout_arguments(spec))
    )
    return bool(result["painted"][0])


def draw(
    kernels: HostKernels,
    picture: U8,
    box: Sequence[int],
    mesh: F32,
    attributes: F32,
    triangles: NDArray[np.int32],
    texture: U8,
    opacity: F32,
) -> None:
    """Draw a mesh whose points count from the corner of ``box``: left, top, width, height."""
    _, _, width, height = box
    block = np.zeros(1, blocks.MESH)
    values = (*box, picture.strides[0], len(triangles), len(texture), len(opacity))
    for name, value in zip(blocks.MESH.names or (), values, strict=True):
        block[name] = value
    original, nearest = np.zeros((height, width, 3), np.uint8), np.zeros((height, width), np.uint64)
    planes = np.zeros((len(triangles), 8, 3), np.float32)
    for name, threads, arguments in (
        ("mesh_begin", 64, (picture, block, original, nearest)),
        ("mesh_rasterise", 4, (mesh, triangles, block, nearest)),
        ("mesh_planes", 64, (mesh, attributes, triangles, block, planes)),
        ("mesh_paint", 64, (picture, original, nearest, planes, texture, opacity, block)),
    ):
        kernels.launch("mesh.cu", name, (7, 1, 1), (threads, 1, 1), tuple(map(at, arguments)))


def mark(kernels: HostKernels, picture: U8, cells: F32) -> None:
    """Add a pattern of light."""
    block = np.zeros(1, blocks.MARK)
    block["height"], block["width"] = picture.shape[:2]
    block["pitch"], (block["rows"], block["columns"]) = picture.strides[0], cells.shape
    kernels.launch("mark.cu", "mark", (5, 1, 1), SMALL, (at(picture), at(block), at(cells)))
