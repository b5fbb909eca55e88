"""The seam to CUDA: streams, events, memory, copies, kernels, graphs; a law with several back ends, knows no picture.

Everything takes the primary context, which CuPy and TensorRT use too: a context of its own makes their handles
invalid. Nothing waits except ``Event.wait``; nothing synchronises the device. A handle or an address is a plain
integer, so that every library can be given it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Gpu:
    """What the device is.

    Attributes:
        name: e.g. "NVIDIA GeForce RTX 4090".
        capability: compute capability, (8, 9).
        memory_bytes: all of it.
        driver: version of CUDA that the driver supports, e.g. "13.0".
        uuid: of this very card; by PyCUDA, which cannot ask for it, its place on the bus.
    """

    name: str
    capability: tuple[int, int]
    memory_bytes: int
    driver: str
    uuid: str


class Event(Protocol):
    """A point in a stream; made once and recorded again and again. A recording replaces the one before."""

    def wait(self) -> None:
        """Block the calling thread until what was recorded has happened. The only wait of the loop.

        Raises:
            DeviceError: work before the event failed.
        """

    def done(self) -> bool:
        """Say whether what was recorded has happened, without waiting."""

    def ms_since(self, earlier: Event) -> float:
        """Time on the device between two recorded, finished events that were made with ``timing``."""


class Stream(Protocol):
    """An order of work. Never the null stream, and does not synchronise with it."""

    @property
    def name(self) -> str:
        """For people and traces, e.g. "swap"."""

    @property
    def handle(self) -> int:
        """The CUDA handle."""

    def record(self, event: Event) -> None:
        """Mark the end of what was enqueued so far."""

    def wait_for(self, event: Event) -> None:
        """Let what is enqueued from now on wait for the latest recording of an event; does not block the caller."""


class Buffer(Protocol):
    """Memory of the device. Allocated at start; freed by ``free`` or with its driver."""

    @property
    def address(self) -> int:
        """On the device."""

    @property
    def nbytes(self) -> int:
        """Size."""

    def free(self) -> None:
        """Give it back. Safe to call twice, and on a GPU that has failed."""


class Pinned(Protocol):
    """Memory of the host that copies can be made from and to while the processor does other things."""

    @property
    def array(self) -> NDArray[np.uint8]:
        """(nbytes,) uint8 view; who writes to it while a copy is under way spoils the copy."""

    def free(self) -> None:
        """Give it back. Safe to call twice, and on a GPU that has failed."""


class Graph(Protocol):
    """Work that was captured once and is started at one blow. It is never started twice at the same time."""

    def launch(self, stream: Stream) -> None:
        """Enqueue all of it."""


class Kernel(Protocol):
    """One function of a module."""

    def launch(
        self, stream: Stream, grid: tuple[int, int, int], block: tuple[int, int, int], arguments: Sequence[Any]
    ) -> None:
        """Enqueue one run.

        Args:
            stream: where.
            grid: blocks.
            block: threads of a block.
            arguments: addresses as ``numpy.uint64``, numbers as ``numpy.int32`` and ``numpy.float32``: what frames
                change lies in memory, because a captured graph keeps its arguments.
        """


class Driver(Protocol):
    """The door to one GPU. Threads other than the one that opened it enter ``attached`` first."""

    @property
    def back_end(self) -> str:
        """What it is made of, e.g. "pycuda 2026.1"."""

    @property
    def gpu(self) -> Gpu:
        """What it drives."""

    def attached(self) -> AbstractContextManager[None]:
        """Make the primary context current in the calling thread for as long as the context lasts."""

    def free_bytes(self) -> int:
        """Memory of the device that nobody has."""

    def stream(self, name: str, urgent: bool = False) -> Stream:
        """Make a stream; an urgent one goes before others where the device has to choose."""

    def stream_of(self, handle: int) -> Stream:
        """Find a stream that this driver made, by its handle: engines are given handles."""

    def event(self, timing: bool = False) -> Event:
        """Make an event; until its first recording it has happened."""

    def buffer(self, nbytes: int, what: str) -> Buffer:
        """Allocate memory of the device.

        Args:
            nbytes: size, >= 1.
            what: for people: a line of the table that ``allocations`` gives.

        Raises:
            OutOfMemoryError: there is not so much.
        """

    def pinned(self, nbytes: int, what: str) -> Pinned:
        """Allocate pinned memory of the host; like ``buffer``."""

    def allocations(self) -> Sequence[tuple[str, str, int]]:
        """Everything that is allocated: where ("device" or "pinned"), what for, bytes."""

    def copy_in(self, target: int, source: NDArray[np.uint8], stream: Stream) -> None:
        """Enqueue a copy to the device.

        Args:
            target: device address.
            source: (n,) uint8, C-contiguous part of a :class:`Pinned`'s array.
            stream: where.
        """

    def copy_out(self, target: NDArray[np.uint8], source: int, stream: Stream) -> None:
        """Enqueue a copy from the device to a part of a :class:`Pinned`'s array, (n,) uint8 C-contiguous."""

    def copy_rows_out(self, target: NDArray[np.uint8], source: int, pitch: int, stream: Stream) -> None:
        """Enqueue a copy of a rectangle from the device.

        Args:
            target: (rows, n) uint8, C-contiguous, in a :class:`Pinned`'s array.
            source: device address of the first byte.
            pitch: bytes from one row to the next on the device.
            stream: where.
        """

    def kernel(self, file: str, name: str) -> Kernel:
        """Find a kernel, compiling its file when it is first asked for.

        Args:
            file: in ``engines/cuda/kernels``, e.g. "paste.cu".
            name: of the ``extern "C"`` function.

        Raises:
            DeviceError: it does not compile; the message has the compiler's words.
        """

    def capture(self, stream: Stream) -> AbstractContextManager[list[Graph]]:
        """Capture what is enqueued to a stream within the context instead of running it.

        Thread-local mode. What is captured must have run once before. Leaving the context without an error appends the
        graph to the list that entering gave; after an error nothing stays captured and the error goes on.
        """

    def range(self, name: str) -> AbstractContextManager[None]:
        """Name what the calling thread does within the context in traces (NVTX); nothing where nobody traces."""

    def close(self) -> None:
        """Free everything, the last made first, in the thread that opened it. Safe to call twice."""
