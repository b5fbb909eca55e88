"""Lays whole pictures into the input of a network; knows shapes and scales, no network and no faces."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np

from engines.contract import Device, TensorSpec
from realtime import geometry
from realtime.types import F32, F64, U8, Size


def fixed_size(spec: TensorSpec) -> Size | None:
    """Say how large an input is.

    Args:
        spec: of the input, a picture.

    Returns:
        Width and height in pixels; ``None`` where they are free.
    """
    height, width = spec.shape[1:3] if spec.layout == "NHWC" else spec.shape[2:]
    return Size(width, height) if width > 0 and height > 0 else None


class Letterbox:
    """Scales pictures into an input tensor: aspect kept, in the top left corner, black beside and below.

    Used by one thread: it keeps the tensor between calls, and makes a new one only when another size is needed.
    """

    def __init__(self, spec: TensorSpec, side_px: int, multiple_px: int, device: Device) -> None:
        """Get ready for pictures of any size.

        Args:
            spec: of the input, a picture; where its width and height are free, each picture gets an input of its own
                aspect, which saves a network on 16:9 pictures almost half of a square input.
            side_px: longer side of the input where it is free; a multiple of the next one.
            multiple_px: both sides of a free input are multiples of this: the largest stride of the network.
            device: that scales the pictures.
        """
        self._spec, self._side, self._multiple, self._device = spec, side_px, multiple_px, device
        self._tensor = np.zeros(0, np.float32)
        self._whole = spec
        self._size = Size(0, 0)

    @property
    def size(self) -> Size:
        """Width and height of the tensor that was filled last."""
        return self._size

    def size_for(self, picture: Size) -> Size:
        """Say how large the input for a picture is.

        Args:
            picture: its size.

        Returns:
            Width and height in input pixels.
        """
        if fixed := fixed_size(self._spec):
            return fixed
        k = self._side / max(picture)
        return Size(*(max(1, ceil(round(length * k, 6) / self._multiple)) * self._multiple for length in picture))

    def fill(self, pixels: U8) -> tuple[F32, F64]:
        """Lay a picture into the input.

        Args:
            pixels: (H, W, 3) uint8 BGR. Only read.

        Returns:
            The normalised tensor, which belongs to this object and is overwritten by the next call, and
            ``frame_from_input``, (2, 3).
        """
        picture = Size(pixels.shape[1], pixels.shape[0])
        size = self.size_for(picture)
        if size != self._size:
            self._resize(size)
        k = max(picture.w / size.w, picture.h / size.h)
        frame_from_input: F64 = np.array([[k, 0.0, 0.0], [0.0, k, 0.0]])
        self._device.crop(pixels, geometry.between_centres(frame_from_input), self._whole, self._tensor)
        return self._tensor, frame_from_input

    def _resize(self, size: Size) -> None:
        shape = (1, size.h, size.w, 3) if self._spec.layout == "NHWC" else (1, 3, size.h, size.w)
        self._whole, self._tensor, self._size = replace(self._spec, shape=shape), np.zeros(shape, np.float32), size
