"""What every back end of the driver has in common: lists of what it made, kernels, graphs; knows no library of CUDA."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from engines.cuda.driver import Graph, Kernel, Stream
from engines.cuda.toolkit import Toolkit

HINT = "update the NVIDIA driver; if it stays so, report this as a bug"
NO_ROOM = "close other programs that use the GPU, or do less: no enhancer, a smaller swap.boost"


class Ledger:
    """What is allocated."""

    def __init__(self) -> None:
        self._lines: dict[int, tuple[str, str, int]] = {}

    def add(self, owner: object, where: str, what: str, nbytes: int) -> None:
        """Note an allocation."""
        self._lines[id(owner)] = where, what, nbytes

    def remove(self, owner: object) -> None:
        """Note that it was given back."""
        self._lines.pop(id(owner), None)

    @property
    def lines(self) -> Sequence[tuple[str, str, int]]:
        """Where, what for, bytes."""
        return tuple(self._lines.values())


class BaseDriver:
    """The part of :class:`engines.cuda.driver.Driver` that does not depend on the back end.

    Attributes:
        ledger: what is allocated.
        owned: buffers, events and streams in the order of making; freed in reverse.
    """

    def __init__(self) -> None:
        self.ledger, self.owned = Ledger(), list[Any]()
        self._streams: dict[int, Stream] = {}
        self._made: Toolkit | None = None

    @property
    def _toolkit(self) -> Toolkit:
        """Loaded when it is first needed: copies need no CuPy."""
        if self._made is None:
            self._made = Toolkit()
        return self._made

    def _keep(self, stream: Stream) -> Stream:
        self._streams[stream.handle] = stream
        self.owned.append(stream)
        return stream

    def stream_of(self, handle: int) -> Stream:
        """See :meth:`engines.cuda.driver.Driver.stream_of`."""
        return self._streams[handle]

    def allocations(self) -> Sequence[tuple[str, str, int]]:
        """See :meth:`engines.cuda.driver.Driver.allocations`."""
        return self.ledger.lines

    def kernel(self, file: str, name: str) -> Kernel:
        """See :meth:`engines.cuda.driver.Driver.kernel`."""
        return self._toolkit.kernel(file, name)

    def capture(self, stream: Stream) -> AbstractContextManager[list[Graph]]:
        """See :meth:`engines.cuda.driver.Driver.capture`."""
        return self._toolkit.capture(stream)

    def range(self, name: str) -> AbstractContextManager[None]:
        """See :meth:`engines.cuda.driver.Driver.range`."""
        return self._toolkit.range(name)
