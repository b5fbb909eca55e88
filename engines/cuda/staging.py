"""Pinned memory that a frame's small numbers go through on their way to and from the device; knows bytes only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.cuda.driver import Driver, Stream
from engines.errors import DeviceError

ALIGNED = 256
ROOM = 32 << 20
"""Bytes for one frame: opacities (1 MB for a face at eight times 128 pixels), and what a network on the host is given
and makes (6 MB at 512 pixels)."""


class Staging:
    """Room that is handed out piece by piece during a frame and taken back as a whole when the frame is finished.

    A copy reads its source when the device comes to it, so no piece may be written to twice in one frame.

    Args:
        driver: allocates.
        what: for the table of allocations.
    """

    def __init__(self, driver: Driver, what: str) -> None:
        self._driver = driver
        self._pinned = driver.pinned(ROOM, what)
        self._used = 0

    def take(self, nbytes: int) -> NDArray[np.uint8]:
        """Hand out (nbytes,) uint8.

        Raises:
            DeviceError: nothing is left.
        """
        first = self._used
        if first + nbytes > ROOM:
            raise DeviceError(
                f"a frame needs more than {ROOM >> 20} MB besides its picture", "swap fewer faces at a time"
            )
        self._used = -(-(first + nbytes) // ALIGNED) * ALIGNED
        return self._pinned.array[first : first + nbytes]

    def send(self, array: NDArray[Any], target: int, stream: Stream) -> None:
        """Copy an array to the device, by way of a piece of this; it may be strided and may change at once."""
        piece = self.take(array.nbytes)
        np.copyto(piece.view(array.dtype).reshape(array.shape), array)
        self._driver.copy_in(target, piece, stream)

    def fetch(self, source: int, dtype: np.dtype[Any], stream: Stream) -> NDArray[Any]:
        """Copy one element of a dtype from the device; valid once the stream has come so far."""
        piece = self.take(dtype.itemsize)
        self._driver.copy_out(piece, source, stream)
        return piece.view(dtype)

    def clear(self) -> None:
        """Take everything back; no copy may be under way."""
        self._used = 0

    def free(self) -> None:
        """Free the memory."""
        self._pinned.free()
