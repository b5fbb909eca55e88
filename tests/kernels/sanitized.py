"""Runs every kernel over pictures and faces that lie partly outside; a program of its own, for sanitizers to watch.

Arrays are taken from malloc with nothing around them, so a byte beside one is seen.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.contract import TensorSpec
from engines.cuda import blocks
from tests.kernels.host import SANITIZE, HostKernels

SIDE = 20
PLACES = [(1.7, 0.3, -9.0, -7.0), (0.4, 2.0, 55.0, 33.0), (0.12, 0.0, 20.0, 12.0), (3.0, -1.0, -500.0, 4.0)]


def at(array: NDArray[Any]) -> np.uint64:
    return np.uint64(array.ctypes.data)


def main(folder: Path, sources: Path) -> None:
    """Run them all."""
    kernels = HostKernels(folder, sources, SANITIZE)
    for dtype, layout, tiles in (("float32", "NCHW", 1), ("float16", "NHWC", 2)):
        shape = (tiles**2, 3, SIDE, SIDE) if layout == "NCHW" else (tiles**2, SIDE, SIDE, 3)
        spec = TensorSpec("x", shape, dtype, layout, "RGB", (0.0,) * 3, (1 / 255,) * 3)  # type: ignore[arg-type]
        for place in PLACES:
            one_face(kernels, spec, place)
    mesh(kernels)
    print("done")


def one_face(kernels: HostKernels, spec: TensorSpec, place: tuple[float, ...]) -> None:
    """Cut, measure and paste."""
    scale, angle, x, y = place
    c, s = scale * np.cos(angle), scale * np.sin(angle)
    transform, side, end = np.array([[c, -s, x], [s, c, y]]), SIDE * blocks.tiles_of(spec), blocks.suffix(spec)
    picture = np.random.default_rng(0).integers(0, 256, (37, 61, 3), np.uint8)
    crop, out = np.zeros(1, blocks.CROP), np.zeros(spec.shape, spec.dtype)
    blocks.write_crop(crop, transform, (61, 37), 61 * 3)
    kernels.launch("crop.cu", f"crop_{end}", (2, 1, 1), (64, 1, 1),
                   (at(picture), at(crop), at(out), *blocks.crop_arguments(spec)))  # fmt: skip
    out = np.random.default_rng(1).uniform(0, 1, spec.shape).astype(spec.dtype)
    extents, measured = np.zeros(3, blocks.EXTENT), np.zeros(1, blocks.MEASURED)
    weight = np.ones((-(-SIDE // 4),) * 2, np.float32)
    kernels.launch("measure.cu", f"extent_{end}", (3, 1, 1), (256, 1, 1),
                   (at(out), at(extents), *blocks.layout_arguments(spec)))  # fmt: skip
    kernels.launch(
        "measure.cu", f"measure_{end}", (1, 1, 1), (256, 1, 1),
        (at(out), at(out), at(extents), np.int32(3), at(weight), at(measured), *blocks.worth_arguments(spec),
         *blocks.layout_arguments(spec)),
    )  # fmt: skip
    opacity = np.zeros((side, side), np.uint8)
    opacity[1:-1, 1:-1] = 255
    paste = np.zeros(1, blocks.PASTE)
    placed = blocks.place(opacity, transform, (61, 37))
    blocks.write_paste(paste, placed, np.ones(3, np.float32), np.zeros(3, np.float32), 61 * 3, (8, 0))
    kernels.launch(
        "paste.cu", f"paste_{end}", (2, 1, 1), (64, 1, 1),
        (at(picture), at(paste), at(out), at(opacity), at(measured), *blocks.layout_arguments(spec)),
    )  # fmt: skip


def mesh(kernels: HostKernels) -> None:
    """Draw triangles that reach beyond the rectangle, and mark a picture."""
    random = np.random.default_rng(2)
    picture, width, height = random.integers(0, 256, (37, 61, 3), np.uint8), 40, 30
    points = random.uniform(-20, 60, (12, 3)).astype(np.float32)
    triangles = random.integers(0, 12, (30, 3)).astype(np.int32)
    attributes = random.uniform(-2, 3, (12, 8)).astype(np.float32)
    texture, opacity = random.integers(0, 256, (9, 9, 3), np.uint8), random.uniform(0, 1, (5, 5, 2)).astype(np.float32)
    block = np.zeros(1, blocks.MESH)
    for name, value in zip(blocks.MESH.names or (), (21, 7, width, height, 61 * 3, 30, 9, 5), strict=True):
        block[name] = value
    original, nearest = np.zeros((height, width, 3), np.uint8), np.zeros((height, width), np.uint64)
    planes = np.zeros((30, 8, 3), np.float32)
    for kernel, arguments in (
        ("mesh_begin", (picture, block, original, nearest)),
        ("mesh_rasterise", (points, triangles, block, nearest)),
        ("mesh_planes", (points, attributes, triangles, block, planes)),
        ("mesh_paint", (picture, original, nearest, planes, texture, opacity, block)),
    ):
        kernels.launch("mesh.cu", kernel, (3, 1, 1), (32, 1, 1), tuple(map(at, arguments)))
    mark, cells = np.zeros(1, blocks.MARK), np.ones((4, 7), np.float32)
    mark["width"], mark["height"], mark["pitch"], mark["columns"], mark["rows"] = 61, 37, 61 * 3, 7, 4
    kernels.launch("mark.cu", "mark", (3, 1, 1), (32, 1, 1), (at(picture), at(mark), at(cells)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
