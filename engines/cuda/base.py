"""What every back end of the driver has in common: what it made, kernels, graphs, traces; knows no library of CUDA."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

from engines.cuda.driver import Buffer, Graph, Kernel, Pinned, Stream
from engines.cuda.toolkit import Toolkit
from engines.errors import OutOfMemoryError

NO_ROOM = "close other programs that use the GPU, or do less: no enhancer, a smaller swap.boost"
NO_HOST_ROOM = "close other programs: this memory of the computer is kept from all others"


def _tracer() -> Callable[[str], AbstractContextManager[None]]:
    """What names a range of a trace. Looked for once: looking for a package that is not there takes 40 us."""
    try:
        import nvtx  # noqa: PLC0415  (optional)
    except ImportError:
        return lambda _: nullcontext()
    return lambda name: nvtx.annotate(name, domain="doppelcam")


class BaseDriver(ABC):
    """The part of :class:`engines.cuda.driver.Driver` that does not depend on the back end."""

    def __init__(self) -> None:
        self._made: dict[Any, tuple[str, str, int] | None] = {}  # in the order of making; memory with its line
        self._streams: dict[int, Stream] = {}
        self._loaded: Toolkit | None = None
        self._trace = _tracer()

    @abstractmethod
    def _allocate(self, nbytes: int) -> Buffer:
        """Memory of the device; whatever it raises is told by ``buffer``."""

    @abstractmethod
    def _allocate_pinned(self, nbytes: int) -> Pinned:
        """Pinned memory of the host; likewise."""

    @property
    def _toolkit(self) -> Toolkit:
        """Loaded when it is first needed: copies need no CuPy."""
        if self._loaded is None:
            self._loaded = Toolkit()
        return self._loaded

    def stream_of(self, handle: int) -> Stream:
        """See :meth:`engines.cuda.driver.Driver.stream_of`."""
        return self._streams[handle]

    def buffer(self, nbytes: int, what: str) -> Buffer:
        """See :meth:`engines.cuda.driver.Driver.buffer`."""
        try:
            made = self._allocate(nbytes)
        except OutOfMemoryError as error:
            raise OutOfMemoryError(f"the GPU has no room for {nbytes:,} bytes more: {what}", NO_ROOM) from error
        self._made[made] = "device", what, nbytes
        return made

    def pinned(self, nbytes: int, what: str) -> Pinned:
        """See :meth:`engines.cuda.driver.Driver.pinned`."""
        try:
            made = self._allocate_pinned(nbytes)
        except OutOfMemoryError as error:
            message = f"the computer has no room for {nbytes:,} bytes more that the GPU can copy: {what}"
            raise OutOfMemoryError(message, NO_HOST_ROOM) from error
        self._made[made] = "pinned", what, nbytes
        return made

    def allocations(self) -> Sequence[tuple[str, str, int]]:
        """See :meth:`engines.cuda.driver.Driver.allocations`."""
        return tuple(line for line in tuple(self._made.values()) if line is not None)

    def kernel(self, file: str, name: str) -> Kernel:
        """See :meth:`engines.cuda.driver.Driver.kernel`."""
        return self._toolkit.kernel(file, name)

    def capture(self, stream: Stream) -> AbstractContextManager[list[Graph]]:
        """See :meth:`engines.cuda.driver.Driver.capture`."""
        return self._toolkit.capture(stream)

    def range(self, name: str) -> AbstractContextManager[None]:
        """See :meth:`engines.cuda.driver.Driver.range`."""
        return self._trace(name)

    def forget(self, made: object) -> None:
        """Note that something was freed."""
        self._made.pop(made, None)

    def _keep_stream(self, stream: Stream) -> Stream:
        self._streams[stream.handle] = stream
        self._made[stream] = None
        return stream

    def _free_all(self, on_exit: ExitStack) -> None:
        """Have everything freed, the last made first, each even if another fails."""
        for made in tuple(self._made):
            on_exit.callback(self.forget, made)
            on_exit.callback(made.free)
