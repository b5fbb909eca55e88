"""The numbers that kernels read, packed as ``kernels/params.h`` declares them; knows layouts, no device and no face."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from engines import patch as patches
from engines.contract import TensorSpec
from engines.paste import FINE

MOST_LEVEL = 9
"""How often a patch may be halved: one of 1024 pixels then has two. As in ``kernels/paste.cu``."""
Block = NDArray[Any]
"""An array of one element of a dtype below, over memory of whoever made it."""


def _dtype(**fields: tuple[str, int]) -> np.dtype[Any]:
    return np.dtype([(name, kind, (count,)) if count > 1 else (name, kind) for name, (kind, count) in fields.items()])


CROP = _dtype(picture_from_crop=("f4", 6), width=("i4", 1), height=("i4", 1), pitch=("i4", 1), spare=("i4", 3))
PASTE = _dtype(
    patch_from_picture=("f4", 6),
    gain=("f4", 3),
    offset=("f4", 3),
    left=("i4", 1),
    top=("i4", 1),
    right=("i4", 1),
    bottom=("i4", 1),
    pitch=("i4", 1),
    level=("i4", 1),
    least_range=("f4", 1),
    least_deviation=("f4", 1),
    spare=("i4", 4),
)
MEASURED = _dtype(
    before=("f4", 6),  # mean and deviation, (2, 3)
    after=("f4", 6),
    low=("f4", 1),
    high=("f4", 1),
    painted=("i4", 1),
    spare=("i4", 1),
)
EXTENT = _dtype(low=("f4", 1), high=("f4", 1), broken=("i4", 1), spare=("i4", 1))
MESH = _dtype(
    left=("i4", 1),
    top=("i4", 1),
    width=("i4", 1),
    height=("i4", 1),
    pitch=("i4", 1),
    triangles=("i4", 1),
    texture_side=("i4", 1),
    opacity_side=("i4", 1),
)
MARK = _dtype(width=("i4", 1), height=("i4", 1), pitch=("i4", 1), columns=("i4", 1), rows=("i4", 1), spare=("i4", 3))


class Rectangle(NamedTuple):
    """A part of a picture in pixels; right and bottom are just outside."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def empty(self) -> bool:
        """Whether there is nothing in it."""
        return self.left >= self.right or self.top >= self.bottom

    def joined(self, other: Rectangle) -> Rectangle:
        """The least rectangle around both."""
        if self.empty or other.empty:
            return other if self.empty else self
        return Rectangle(*map(min, self[:2], other[:2]), *map(max, self[2:], other[2:]))


NOWHERE = Rectangle(0, 0, 0, 0)


class Placed(NamedTuple):
    """Where a patch is painted, as ``engines.paste.Paster`` works it out.

    Attributes:
        rectangle: of the picture, that can change.
        level: how many times the patch is halved first.
        picture_from_patch: (2, 3) at that level.
    """

    rectangle: Rectangle
    level: int
    picture_from_patch: NDArray[np.float64]


def place(opacity: NDArray[np.uint8], picture_from_patch: NDArray[np.float64], size: tuple[int, int]) -> Placed:
    """Find out what a patch can change.

    Args:
        opacity: (side, side) uint8.
        picture_from_patch: (2, 3) between centres of pixels.
        size: of the picture, width and height.
    """
    level, side = 0, min(opacity.shape)
    while abs(np.linalg.det(picture_from_patch[:, :2])) <= FINE * FINE and side >= 4 and level < MOST_LEVEL:
        linear, shift = picture_from_patch[:, :2], picture_from_patch[:, 2]
        picture_from_patch = np.column_stack([linear * 2, shift + linear @ (0.5, 0.5)])
        level, side = level + 1, side // 2
    left, top, right, bottom = patches.extent(opacity)
    if right == 0:
        return Placed(NOWHERE, level, picture_from_patch)
    span = 1 << level
    box = (left // span - 1, top // span - 1, -(-right // span), -(-bottom // span))
    corners = np.array([(x, y, 1) for x in box[::2] for y in box[1::2]]) @ picture_from_patch.T
    (least_x, least_y), (most_x, most_y) = corners.min(axis=0), corners.max(axis=0)
    rectangle = Rectangle(
        max(0, math.floor(least_x)),
        max(0, math.floor(least_y)),
        min(size[0], math.ceil(most_x) + 1),
        min(size[1], math.ceil(most_y) + 1),
    )
    return Placed(NOWHERE if rectangle.empty else rectangle, level, picture_from_patch)


def write_crop(block: Block, picture_from_crop: NDArray[np.float64], size: tuple[int, int], pitch: int) -> None:
    """Fill a ``CROP``; ``size`` is width and height of the picture."""
    block["picture_from_crop"] = picture_from_crop.ravel()
    block["width"], block["height"], block["pitch"] = *size, pitch


def write_paste(
    block: Block,
    placed: Placed,
    gain: NDArray[np.float32],
    offset: NDArray[np.float32],
    pitch: int,
    least: tuple[float, float],
) -> None:
    """Fill a ``PASTE``; ``least`` are range and deviation of a picture."""
    block["patch_from_picture"] = cv2.invertAffineTransform(placed.picture_from_patch).ravel()
    block["gain"], block["offset"] = gain, offset
    for name, value in zip(("left", "top", "right", "bottom"), placed.rectangle, strict=True):
        block[name] = value
    block["pitch"], block["level"] = pitch, placed.level
    block["least_range"], block["least_deviation"] = least


def crop_arguments(spec: TensorSpec) -> tuple[Any, ...]:
    """What ``crop_f32`` and ``crop_f16`` take after the addresses: they follow from the card."""
    width, height = spec.size
    return (
        *_integers(tiles_of(spec), width, height, spec.layout == "NHWC", spec.colour == "RGB"),
        *_floats(spec.mean),
        *_floats(spec.scale),
    )


def layout_arguments(spec: TensorSpec) -> tuple[Any, ...]:
    """The ``LAYOUT_ARGUMENTS`` of a tensor that is a picture."""
    width, height = spec.size
    return (*_integers(tiles_of(spec), width, height), *worth_arguments(spec))


def worth_arguments(spec: TensorSpec) -> tuple[Any, ...]:
    """The part of them that says where channels lie and what their values are worth."""
    factor = [1 / scale for scale in spec.scale]
    return (
        *_integers(spec.layout == "NHWC", spec.colour == "RGB"),
        *_floats(factor),
        *_floats(spec.mean),
    )


def tiles_of(spec: TensorSpec) -> int:
    """Tiles along one side of a picture."""
    return round(spec.shape[0] ** 0.5)


def suffix(spec: TensorSpec) -> str:
    """What the name of a kernel for tensors of this type ends with."""
    return {"float32": "f32", "float16": "f16"}[spec.dtype]


def _integers(*values: int) -> tuple[np.int32, ...]:
    return tuple(np.int32(value) for value in values)


def _floats(values: Any) -> tuple[np.float32, ...]:
    return tuple(np.float32(value) for value in values)
