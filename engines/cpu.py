"""The processor as a device: the reference that every other device must agree with; knows pictures, not faces."""

from __future__ import annotations

import platform

import cv2
import numpy as np
from numpy.typing import NDArray

from engines.contract import Availability, TensorSpec


def probe() -> Availability:
    """Say what the processor works with.

    Returns:
        Always usable: importing this module has already loaded OpenCV.
    """
    return Availability(True, f"OpenCV {cv2.__version__}")


class CpuDevice:
    """Crops with OpenCV. Used by one thread at a time: it keeps scratch buffers between calls."""

    def __init__(self) -> None:
        self._crops: dict[tuple[int, int], tuple[NDArray[np.uint8], NDArray[np.uint8]]] = {}
        self._tables: dict[TensorSpec, NDArray[np.float32]] = {}

    @property
    def name(self) -> str:
        """See :class:`engines.contract.Device`."""
        return f"cpu ({platform.processor() or platform.machine()})"

    def crop(
        self,
        picture: NDArray[np.uint8],
        picture_from_crop: NDArray[np.float64],
        spec: TensorSpec,
        out: NDArray[np.float32],
    ) -> None:
        """See :class:`engines.contract.Device`.

        A pixel has 256 values, so normalising is a look-up: exact, and four times faster than arithmetic.
        """
        height, width = spec.shape[1:3] if spec.layout == "NHWC" else spec.shape[2:4]
        cut, other = self._scratch(width, height)
        cv2.warpAffine(
            picture,
            picture_from_crop,
            (width, height),
            dst=cut,
            flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
            borderMode=cv2.BORDER_CONSTANT,
        )
        table = self._table(spec)
        if spec.layout == "NHWC":
            if spec.colour == "RGB":
                cv2.cvtColor(cut, cv2.COLOR_BGR2RGB, dst=other)
                cut = other
            cv2.LUT(cut, table, dst=out[0])
            return
        planes = other.reshape(3, height, width)
        for channel, source in enumerate((2, 1, 0) if spec.colour == "RGB" else (0, 1, 2)):
            cv2.extractChannel(cut, source, dst=planes[channel])
            np.take(table[0, :, channel], planes[channel], out=out[0, channel], mode="clip")

    def _scratch(self, width: int, height: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Return two (height, width, 3) buffers, allocated when a size is first seen."""
        if (width, height) not in self._crops:
            self._crops[width, height] = (
                np.empty((height, width, 3), np.uint8),
                np.empty((height, width, 3), np.uint8),
            )
        return self._crops[width, height]

    def _table(self, spec: TensorSpec) -> NDArray[np.float32]:
        """Return the (1, 256, 3) float32 table from a pixel's value to the input's."""
        if spec not in self._tables:
            values = np.arange(256, dtype=np.float64)[:, None]
            table = (values - np.array(spec.mean)) * np.array(spec.scale)
            self._tables[spec] = np.ascontiguousarray(table[None], dtype=np.float32)
        return self._tables[spec]
