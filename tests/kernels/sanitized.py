"""Runs the kernels over faces that lie partly outside and meshes of wild points; a program of its own, for sanitizers.

Arrays are taken from malloc with nothing around them, so a byte beside one is seen.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.kernels import runs
from tests.kernels.host import SANITIZE, HostKernels
from tests.kernels.material import RGB01, SPECS, noise, similarity, sized

SIDE = 20
PLACES = [(1.7, 0.3, -9.0, -7.0), (0.4, 2.0, 55.0, 33.0), (0.06, 0.0, 20.0, 12.0), (3.0, -1.0, -500.0, 4.0)]
FAR = [1e9, -1e30, np.inf, np.nan]


def faces(kernels: HostKernels) -> None:
    """Cut, measure and paste."""
    for kind, dtype, tiles in (("NCHW RGB", "float32", 1), ("NHWC BGR", "float16", 2), ("NHWC BGR", "float32", 3)):
        spec = replace(sized(SPECS[kind], tiles, SIDE), dtype=dtype)
        output = np.random.default_rng(1).uniform(0, 1, spec.shape).astype(spec.dtype)
        opacity = np.zeros((SIDE * tiles,) * 2, np.uint8)
        opacity[1:-1, 1:-1] = 255
        for place in PLACES:
            picture = noise(0, 37, 61)
            runs.crop(kernels, picture, similarity(*place), spec)
            runs.paste(kernels, picture, output, spec, similarity(*place), opacity)
    runs.crop(kernels, noise(0, 37, 61), similarity(1e30, 0.1, 1e30, 0), sized(RGB01, side=SIDE))


def meshes(kernels: HostKernels) -> None:
    """Draw triangles that reach beyond the rectangle."""
    random = np.random.default_rng(2)
    points = random.uniform(-20, 60, (12, 3)).astype(np.float32)
    points[: len(FAR), 0] = FAR
    triangles = random.integers(0, 12, (60, 3)).astype(np.int32)
    attributes = random.uniform(-2, 3, (12, 8)).astype(np.float32)
    opacity = random.uniform(0, 1, (5, 5, 2)).astype(np.float32)
    runs.draw(kernels, noise(0, 37, 61), (21, 7, 40, 30), points, attributes, triangles, noise(1, 9, 9), opacity)


def marks(kernels: HostKernels) -> None:
    """Mark a picture."""
    runs.mark(kernels, noise(0, 37, 61), np.ones((4, 7), np.float32))


def main(folder: Path, sources: Path, *what: str) -> None:
    """Run what is named."""
    kernels = HostKernels(folder, sources, SANITIZE)
    for run in (faces, meshes, marks):
        if run.__name__ in what:
            run(kernels)
    print("done")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
