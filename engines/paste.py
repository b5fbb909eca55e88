"""Lays an upright patch over a picture; knows transforms and opacity, not what is shown."""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from engines import patch as kernels

FINE = 0.5
"""Pixels of the picture for one of the patch, each way, from which the patch is halved: a bilinear sample sees two
neighbours and would skip the others."""

_INVERSE = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP


class Paster:
    """Pastes patches. Used by one thread: it keeps scratch between calls.

    OpenCV warps, a kernel blends: 0.45 and 0.09 ms for a face of 430 pixels. Tried and not faster: one kernel for both;
    one that walks along the cells of the patch and fills in between; bands of 32 to 128 rows, which leave out corners
    beside a face that leans and keep to the cache, and lose as much to calls.
    """

    def __init__(self) -> None:
        self._laid = np.empty(0, np.uint8)
        self._halves: dict[tuple[int, int], NDArray[np.uint8]] = {}

    def paste(
        self, picture: NDArray[np.uint8], patch: NDArray[np.uint8], picture_from_patch: NDArray[np.float64]
    ) -> None:
        """See :meth:`engines.cpu.CpuDevice.paste`."""
        while _area(picture_from_patch) <= FINE * FINE and min(patch.shape[:2]) >= 4:
            patch, picture_from_patch = self._half(patch, picture_from_patch)
        left, top, right, bottom = _reached(kernels.extent(patch[..., 3]), picture_from_patch, picture.shape)
        if left >= right or top >= bottom:
            return
        part_from_patch = picture_from_patch - ((0, 0, left), (0, 0, top))
        patch_from_part = cv2.invertAffineTransform(part_from_patch)
        width, height = right - left, bottom - top
        if self._laid.size < width * height * 4:
            self._laid = np.empty(width * height * 6, np.uint8)  # half as much again, for a face that comes nearer
        laid = self._laid[: width * height * 4].reshape(height, width, 4)
        cv2.warpAffine(patch, patch_from_part, (width, height), dst=laid, flags=_INVERSE)
        rows = picture.reshape(picture.shape[0], -1, copy=False)
        kernels.lay_over(rows, left, top, laid.reshape(height, -1))

    def _half(
        self, patch: NDArray[np.uint8], picture_from_patch: NDArray[np.float64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
        """Average the pixels of a patch four by four; the last row and column of an odd number are dropped."""
        size = patch.shape[1] // 2, patch.shape[0] // 2
        if size not in self._halves:
            self._halves[size] = np.empty((size[1], size[0], 4), np.uint8)
        half = self._halves[size]
        cv2.resize(patch[: size[1] * 2, : size[0] * 2], size, dst=half, interpolation=cv2.INTER_AREA)
        half[[0, -1], :, 3] = half[:, [0, -1], 3] = 0
        linear, shift = picture_from_patch[:, :2], picture_from_patch[:, 2]
        return half, np.column_stack([linear * 2, shift + linear @ (0.5, 0.5)])


def _reached(
    box: tuple[int, int, int, int], picture_from_patch: NDArray[np.float64], shape: tuple[int, ...]
) -> tuple[int, int, int, int]:
    """Part of a picture that a box of a patch can change: left, top, right, bottom, the last two just outside."""
    left, top, right, bottom = box
    (a, b, c), (d, e, f) = picture_from_patch.tolist()
    corners = [(x, y) for x in (left - 1, right) for y in (top - 1, bottom)]
    across, down = [a * x + b * y + c for x, y in corners], [d * x + e * y + f for x, y in corners]
    return (
        max(0, math.floor(min(across))),
        max(0, math.floor(min(down))),
        min(shape[1], math.ceil(max(across)) + 1),
        min(shape[0], math.ceil(max(down)) + 1),
    )


def _area(picture_from_patch: NDArray[np.float64]) -> float:
    """Pixels of a picture for one of a patch."""
    (a, b, _), (c, d, _) = picture_from_patch.tolist()
    return abs(float(a * d - b * c))
