"""Lays whole pictures into the input of a network; knows shapes and scales, no network and no faces."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np

from engines.contract import TensorSpec
from realtime.types import F64, Size

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
    """Says how pictures lie in an input tensor: aspect kept, in the top left corner, black beside and below."""

    def __init__(self, spec: TensorSpec, multiple_px: int) -> None:
        """Get ready for pictures of any size.

        Args:
            spec: of the input, a picture; where its width and height are free, each picture gets an input of its own
                aspect, which saves a network on 16:9 pictures almost half of a square input.
            multiple_px: both sides of a free input are multiples of this: the largest stride of the network.
        """
        self._spec, self._multiple = spec, multiple_px

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

    def view(self, picture: Size, side_px: int) -> tuple[TensorSpec, F64]:
        """Say how a picture is laid into the input.

        Args:
            picture: its size.
            side_px: longer side of the picture in the input, less where a fixed input is smaller.

        Returns:
            The input with its size, and ``frame_from_input``, (2, 3).
        """
        size = self.size_for(picture, side_px)
        k = max(picture.w / min(size.w, side_px), picture.h / min(size.h, side_px))
        shape = (1, size.h, size.w, 3) if self._spec.layout == "NHWC" else (1, 3, size.h, size.w)
        return replace(self._spec, shape=shape), np.array([[k, 0.0, 0.0], [0.0, k, 0.0]])
