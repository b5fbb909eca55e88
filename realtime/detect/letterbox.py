"""Lays whole pictures into the input of a network; knows shapes and scales, no network and no faces."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np

from engines.contract import Device, TensorSpec
from realtime import geometry
from realtime.types import F32, F64, U8, Size

MOST_SIZES = 4
"""Sizes of a free input that are kept: a run has two, and photos may have had others before it."""


def fixed_size(spec: TensorSpec) -> Size | None:
    """Say how large an input is.

    Args:
        spec: of the input, a picture.

    Returns:
        Width and height in pixels; ``None`` where they are free.
    """
    size = Size(*spec.size)
    return size if min(size) > 0 else None


class Letterbox:
    """Scales pictures into an input tensor: aspect kept, in the top left corner, black beside and below.

    Used by one thread: it keeps a tensor for each size of the input, and makes one only when a size is new.
    """

    def __init__(self, spec: TensorSpec, multiple_px: int, device: Device) -> None:
        """Get ready for pictures of any size.

        Args:
            spec: of the input, a picture; where its width and height are free, each picture gets an input of its own
                aspect, which saves a network on 16:9 pictures almost half of a square input.
            multiple_px: both sides of a free input are multiples of this: the largest stride of the network.
            device: that scales the pictures.
        """
        self._spec, self._multiple, self._device = spec, multiple_px, device
        self._made: dict[Size, tuple[TensorSpec, F32]] = {}

    def size_for(self, picture: Size, side_px: int) -> Size:
        """Say how large the input for a picture is.

        Args:
            picture: its size.
            side_px: longer side of the input where it is free.

        Returns:
            Width and height in input pixels.
        """
        if fixed := fixed_size(self._spec):
            return fixed
        k = side_px / max(picture)
        return Size(*(max(1, ceil(round(length * k, 6) / self._multiple)) * self._multiple for length in picture))

    def fill(self, pixels: U8, side_px: int) -> tuple[F32, F64]:
        """Lay a picture into the input.

        Args:
            pixels: (H, W, 3) uint8 BGR. Only read.
            side_px: longer side of the picture in the input, less where a fixed input is smaller.

        Returns:
            The normalised tensor, which belongs to this object and is overwritten by a later call, and
            ``frame_from_input``, (2, 3).
        """
        picture = Size(pixels.shape[1], pixels.shape[0])
        size = self.size_for(picture, side_px)
        spec, tensor = self._tensor_of(size)
        k = max(picture.w / min(size.w, side_px), picture.h / min(size.h, side_px))
        frame_from_input: F64 = np.array([[k, 0.0, 0.0], [0.0, k, 0.0]])
        self._device.crop(pixels, geometry.between_centres(frame_from_input), spec, tensor)
        return tensor, frame_from_input

    def _tensor_of(self, size: Size) -> tuple[TensorSpec, F32]:
        if size not in self._made:
            if len(self._made) == MOST_SIZES:
                self._made.clear()
            shape = (1, size.h, size.w, 3) if self._spec.layout == "NHWC" else (1, 3, size.h, size.w)
            self._made[size] = replace(self._spec, shape=shape), np.zeros(shape, np.float32)
        return self._made[size]
