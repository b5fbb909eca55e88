"""Keeps inputs that seldom change: worked out once for each value, copied where a run reads them; knows no network."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engines.conform import Found
from engines.cuda.driver import Buffer, Driver, Event, Pinned, Stream

PLACES = 8
"""Values that are kept: more people than a picture has room for."""
_ALIGNED = 256  # what every allocation of CUDA is aligned to, and TensorRT may count on

Compute = Callable[[Mapping[str, bytes]], Mapping[str, NDArray[Any]]]
"""Inputs of the card -> inputs of the plan."""
_Key = frozenset[tuple[str, bytes]]


class Part(NamedTuple):
    """Where a tensor lies in a block of several.

    Attributes:
        start: of its first byte.
        shape: of the tensor.
        dtype: numpy's name.
    """

    start: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def end(self) -> int:
        """Just behind its last byte."""
        return self.start + int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize

    def of(self, block: NDArray[np.uint8]) -> NDArray[Any]:
        """The tensor in a block, as a view."""
        return block[self.start : self.end].view(self.dtype).reshape(self.shape)


def laid_out(tensors: Found) -> tuple[dict[str, Part], int]:
    """Lay tensors out in one block, each aligned.

    Returns:
        Where each lies, and the size of the block in bytes, at least 1.
    """
    parts, end = {}, 0
    for name, (shape, dtype) in tensors.items():
        parts[name] = Part(end, shape, dtype)
        end = -(-parts[name].end // _ALIGNED) * _ALIGNED
    return parts, max(end, 1)


@dataclass(frozen=True, slots=True)
class _Place:
    """Memory for one value. It is written to only when no copy of it can be under way.

    Attributes:
        pinned: the block.
        copied: for each slot, the end of the latest copy to it.
    """

    pinned: Pinned
    copied: tuple[Event, ...]


class Shelf:
    """The held inputs of one plan, for all its slots. Used by one thread."""

    def __init__(self, driver: Driver, tensors: Found, compute: Compute, slots: int, name: str) -> None:
        """Allocate everything.

        Args:
            driver: of the device.
            tensors: inputs of the plan that are held.
            compute: what makes their values; called once for each that is not on the shelf.
            slots: how many read them.
            name: of the model, for the table of what is allocated.

        Raises:
            OutOfMemoryError: there is no room.
        """
        self._driver, self._compute = driver, compute
        self.parts, self._size = laid_out(tensors)
        self._places: OrderedDict[_Key, _Place] = OrderedDict()  # the one used last comes last
        self._spare: list[_Place] = []
        self._read: list[Buffer] = []
        what = f"{name}: inputs that seldom change"
        for _ in range(slots):
            self._read.append(driver.buffer(self._size, what))
        for _ in range(PLACES):
            events = tuple(driver.event() for _ in range(slots))
            self._spare.append(_Place(driver.pinned(self._size, what), events))

    def addresses(self, slot: int) -> dict[str, int]:
        """Where the tensors of a slot lie."""
        return {name: self._read[slot].address + part.start for name, part in self.parts.items()}

    def take(self, slot: int, values: Mapping[str, bytes], stream: Stream) -> None:
        """Let the coming runs of a slot read a value.

        Args:
            slot: its number.
            values: inputs of the card that it is made of, each as its bytes.
            stream: that the runs of this slot go to.

        Raises:
            EngineError: it could not be worked out; the slot reads what it read before.
        """
        key = frozenset(values.items())
        place = self._places.get(key) or self._filled(key, values)
        self._places.move_to_end(key)
        self._driver.copy_in(self._read[slot].address, place.pinned.array, stream)
        stream.record(place.copied[slot])

    def close(self) -> None:
        """Free everything; no copy may be under way. Safe to call twice."""
        for place in (*self._places.values(), *self._spare):
            place.pinned.free()
        for buffer in self._read:
            buffer.free()
        self._places.clear()
        self._spare.clear()
        self._read.clear()

    def _filled(self, key: _Key, values: Mapping[str, bytes]) -> _Place:
        made = self._compute(values)  # before a place is given up: it may fail
        if not self._spare:
            _, oldest = self._places.popitem(last=False)
            self._spare.append(oldest)
            for event in oldest.copied:
                event.wait()  # long past, unless more people than places take turns
        place = self._spare.pop()
        for name, part in self.parts.items():
            part.of(place.pinned.array)[...] = made[name]
        self._places[key] = place
        return place
