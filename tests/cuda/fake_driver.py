"""A GPU that does nothing before it must: streams are lists of work, and memory is poisoned until work has written it.

It takes the side of bad luck. Nothing runs until somebody waits, and then only what the wait really depends on, or, by
another policy, whatever is ready in a random order. So a missing wait between streams shows as a wrong picture or as an
error, not once in a thousand frames on somebody else's GPU. And where luck would have it right after all, the vector
clocks of :mod:`tests.cuda.races` tell that nothing made it so. It also notices memory that is allocated after it was
``sealed``, memory that is freed while it is used, and pinned memory that is written to while a copy is under way.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.cuda.driver import Gpu, Graph, Stream
from engines.cuda.words import failure
from engines.errors import DeviceError, OutOfMemoryError
from tests.cuda.fake_parts import POISON, FakeEvent, FakeGraph, FakeKernel, FakeMemory, FakeStream, OrderError, Work
from tests.cuda.races import Races, Use
from tests.kernels.host import HostKernels

Wait = tuple[str, str, str]


@dataclass
class FakeDriver:
    """See ``engines.cuda.driver.Driver``.

    Attributes:
        kernels: the real kernels, on the host.
        seed: of the order in which ready work runs beside what is waited for; ``None`` runs nothing beside it.
        deaf_to: a wait of the program that is left out: ``(function, who waits, what recorded the event)``.
        memory_bytes: of the device.
        dead: work has failed on it: every call is refused from then on, as by a real one.
        forgotten: what closing found that the program had not freed.
    """

    kernels: HostKernels
    seed: int | None = None
    deaf_to: Wait | None = None
    memory_bytes: int = 1 << 31
    capture_fails: bool = False
    back_end: str = "fake"
    gpu: Gpu = field(default_factory=lambda: Gpu("Fake GPU", (8, 6), 1 << 31, "13.0", "GPU-fake"))

    def __post_init__(self) -> None:
        self.streams: list[FakeStream] = []
        self.lines: list[tuple[str, str, int]] = []
        self.forgotten: tuple[tuple[str, str, int], ...] = ()
        self.freed: list[NDArray[np.uint8]] = []
        self.memory: list[FakeMemory] = []
        self.races = Races()
        self._sent: dict[tuple[int, int], bytes] = {}
        self.heard: set[Wait] = set()
        self.capturing: tuple[FakeStream, list[Work]] | None = None
        self.sealed = self.closed = self.dead = False
        self.waits = self.now = self.graphs = 0
        self._random = random.Random(self.seed)
        self._meddling = False

    def hears(self, who: str, event: FakeEvent, function: str) -> bool:
        """Note a wait, and say whether it happens."""
        assert event.recorded is not None
        wait = function, who, event.recorded[0].name
        self.heard.add(wait)
        return wait != self.deaf_to

    def block_at(self, address: int) -> Use:
        """The allocation that an address lies in."""
        inside = [m.whole for m in self.memory if m.address <= address < m.address + m.nbytes]
        if not inside:
            raise OrderError(f"{address:#x} is the address of nothing")
        return inside[0]

    def tick(self) -> int:
        self.now += 1
        return self.now

    def meddle(self, busy: FakeStream) -> None:
        """Run some of what is ready on other streams, where the policy is to."""
        if self.seed is None or self._meddling:
            return
        self._meddling = True
        try:
            for stream in self._random.sample(self.streams, len(self.streams)):
                while stream is not busy and stream.ready and self._random.random() < 0.7:
                    stream.step()
        finally:
            self._meddling = False

    def attached(self) -> Any:
        return nullcontext()

    def range(self, name: str) -> Any:
        return nullcontext()

    def free_bytes(self) -> int:
        return self.memory_bytes - sum(nbytes for where, _, nbytes in self.lines if where == "device")

    def stream(self, name: str, urgent: bool = False) -> FakeStream:
        self.streams.append(FakeStream(self, name, 1000 + len(self.streams)))
        return self.streams[-1]

    def stream_of(self, handle: int) -> FakeStream:
        return self.streams[handle - 1000]

    def event(self, timing: bool = False) -> FakeEvent:
        self._demand_open("an event")
        return FakeEvent(self, timing=timing)

    def buffer(self, nbytes: int, what: str) -> FakeMemory:
        self._demand_open(what)
        if nbytes > self.free_bytes():
            raise OutOfMemoryError(f"no room for {nbytes} bytes for {what}", "close other programs that use the GPU")
        return FakeMemory(self, nbytes, ("device", what, nbytes))

    def pinned(self, nbytes: int, what: str) -> FakeMemory:
        self._demand_open(what)
        return FakeMemory(self, nbytes, ("pinned", what, nbytes))

    def demand_alive(self) -> None:
        """Refuse to work on a GPU that has failed or is closed."""
        if self.dead:
            raise failure("anything", "an illegal memory access was encountered")
        if self.closed:
            raise failure("anything", "invalid device context")

    def _demand_open(self, what: str) -> None:
        self.demand_alive()
        if self.sealed:
            raise OrderError(f"{what} was allocated within the loop")

    def allocations(self) -> Sequence[tuple[str, str, int]]:
        return tuple(self.lines)

    def copy_in(self, target: int, source: NDArray[np.uint8], stream: Stream) -> None:
        before, read = source.copy(), Use(source.ctypes.data, source.nbytes, writes=False)
        place, data = (read.address, read.nbytes), before.tobytes()
        if self._sent.get(place) != data:  # the host has written there
            self.races.host("writing what is copied in", read._replace(writes=True))
            self._sent[place] = data

        def run() -> None:
            if not np.array_equal(before, source):
                raise OrderError("pinned memory was written to before a copy had read it")
            ctypes.memmove(target, source.ctypes.data, source.nbytes)

        self._push(stream, "copy in", run, (read, Use(target, source.nbytes, writes=True)))

    def copy_out(self, target: NDArray[np.uint8], source: int, stream: Stream) -> None:
        uses = Use(source, target.nbytes, writes=False), Use(target.ctypes.data, target.nbytes, writes=True)
        self._push(stream, "copy out", lambda: self._move(target, source), uses)
        target[:] = POISON

    def copy_rows_out(self, target: NDArray[np.uint8], source: int, pitch: int, stream: Stream) -> None:
        def run() -> None:
            for row, line in enumerate(target):
                self._move(line, source + row * pitch)

        span = Use(source, (len(target) - 1) * pitch + target.shape[1], writes=False)
        self._push(stream, "copy rows out", run, (span, Use(target.ctypes.data, target.nbytes, writes=True)))
        target[:] = POISON

    @staticmethod
    def _move(target: NDArray[np.uint8], source: int) -> None:
        ctypes.memmove(target.ctypes.data, source, target.nbytes)

    @staticmethod
    def _push(stream: Stream, name: str, run: Callable[[], None], uses: Sequence[Use]) -> None:
        assert isinstance(stream, FakeStream)
        stream.push(name, run, uses=uses)

    def kernel(self, file: str, name: str) -> FakeKernel:
        return FakeKernel(self, file, name)

    @contextmanager
    def capture(self, stream: Stream) -> Iterator[list[Graph]]:
        assert isinstance(stream, FakeStream)
        graphs: list[Graph] = []
        self.capturing = (stream, [])
        try:
            yield graphs
            if self.capture_fails:
                raise DeviceError("the stream cannot be captured", "update the driver")
            self.graphs += 1
            graphs.append(FakeGraph(self.capturing[1]))
        finally:
            self.capturing = None

    def close(self) -> None:
        if not self.closed:
            self.closed, self.forgotten = True, tuple(self.lines)
            for memory in reversed(tuple(self.memory)):
                memory.free()
