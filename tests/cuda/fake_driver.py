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
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.cuda.driver import Event, Gpu, Graph, OutOfMemoryError, Stream
from engines.errors import DeviceError
from tests.cuda.races import Clock, RaceError, Races, Use
from tests.kernels.host import HostKernels

POISON = 0xCD
ROLES = {
    "crop": "rrw",
    "extent": "rw",
    "measure": "rrrrw",
    "paste": "wrrrw",
    "mesh_begin": "rrww",
    "mesh_rasterise": "rrrw",
    "mesh_planes": "rrrrw",
    "mesh_paint": "wrrrrrr",
}
"""What a kernel does with the memory at each address that it is given: reads it, or writes it too."""


OrderError = RaceError
"""The program did what no program may do with a GPU."""


@dataclass
class Work:
    """One thing that a stream was given."""

    name: str
    run: Callable[[], None]
    after: tuple[FakeStream, int] | None = None  # a wait: for so many things of another stream
    uses: Sequence[Use] = ()


class FakeEvent:
    """See ``engines.cuda.driver.Event``."""

    def __init__(self, driver: FakeDriver, *, timing: bool) -> None:
        self._driver, self.timing = driver, timing
        self.recorded: tuple[FakeStream, int] | None = None
        self.carried: Clock = {}
        self.happened_at = -1

    def wait(self) -> None:
        self._driver.waits += 1
        if self._driver.capturing is not None:
            raise DeviceError("operation not permitted when stream is capturing", "do not wait while capturing")
        if self.recorded is not None and self._driver.hears("the host", self, sys._getframe(1).f_code.co_qualname):
            stream, count = self.recorded
            stream.run_to(count)
            self._driver.races.learn("host", self.carried)

    def done(self) -> bool:
        return self.recorded is None or self.recorded[0].ran >= self.recorded[1]

    def ms_since(self, earlier: Event) -> float:
        assert isinstance(earlier, FakeEvent)
        if not (self.timing and earlier.timing and self.done() and earlier.done()):
            raise OrderError("a time was asked for that nobody has measured")
        return float(self.happened_at - earlier.happened_at)


class FakeStream:
    """See ``engines.cuda.driver.Stream``."""

    def __init__(self, driver: FakeDriver, name: str, handle: int) -> None:
        self._driver, self.name, self.handle = driver, name, handle
        self.given: list[Work] = []
        self.ran = 0
        self._running = False

    def push(
        self,
        name: str,
        run: Callable[[], None],
        after: tuple[FakeStream, int] | None = None,
        uses: Sequence[Use] = (),
    ) -> None:
        if self._driver.capturing is not None and self._driver.capturing[0] is self:
            if after is not None:
                raise DeviceError("unjoined work", "wait before the capture begins")
            self._driver.capturing[1].append(Work(name, run, uses=uses))
            return
        self._driver.races.work(self.name, name, uses)
        self.given.append(Work(name, run, after))

    def record(self, event: Event) -> None:
        assert isinstance(event, FakeEvent)
        self.push(f"record on {self.name}", lambda: setattr(event, "happened_at", self._driver.tick()))
        event.recorded, event.carried = (self, len(self.given)), self._driver.races.now(self.name)

    def wait_for(self, event: Event) -> None:
        assert isinstance(event, FakeEvent)
        if event.recorded is None or not self._driver.hears(self.name, event, sys._getframe(1).f_code.co_qualname):
            return
        self.push(f"wait on {self.name}", lambda: None, after=event.recorded)
        self._driver.races.learn(self.name, event.carried)

    @property
    def ready(self) -> bool:
        """Whether the next thing could run now."""
        if self.ran == len(self.given) or self._running:
            return False
        after = self.given[self.ran].after
        return after is None or after[0].ran >= after[1]

    def run_to(self, count: int) -> None:
        """Run the first ``count`` things, and what they wait for."""
        if self._running and self.ran < count:
            raise OrderError(f"{self.name} waits for itself")
        while self.ran < count:
            work = self.given[self.ran]
            if work.after is not None:
                work.after[0].run_to(work.after[1])
            self._driver.meddle(self)
            if self.ran < count and self.given[self.ran] is work:
                self.step()

    def step(self) -> None:
        """Run the next thing."""
        self._running = True
        try:
            self.given[self.ran].run()
        finally:
            self._running = False
        self.ran += 1


class FakeMemory:
    """Memory of the device or pinned memory of the host."""

    def __init__(self, driver: FakeDriver, nbytes: int, line: tuple[str, str, int]) -> None:
        if nbytes < 1:
            raise OrderError(f"{line[1]}: an allocation of {nbytes} bytes")
        self._driver, self.nbytes, self._line = driver, nbytes, line
        self.array: NDArray[np.uint8] = np.full(nbytes, POISON, np.uint8)
        driver.lines.append(line)
        driver.memory.append(self)

    @property
    def address(self) -> int:
        return int(self.array.ctypes.data)

    @property
    def whole(self) -> Use:
        return Use(self.address, self.nbytes, writes=True)

    def free(self) -> None:
        if self._line in self._driver.lines and self.nbytes:
            self._driver.races.host(f"freeing {self._line[1]}", self.whole)
            self._driver.lines.remove(self._line)
            self._driver.memory.remove(self)
            self._driver.freed.append(self.array)  # kept: what still reads it reads poison, not another's memory
            self.array[:] = POISON
            self.nbytes = 0


@dataclass
class FakeGraph:
    """See ``engines.cuda.driver.Graph``."""

    works: list[Work]

    def launch(self, stream: Stream) -> None:
        assert isinstance(stream, FakeStream)
        for work in self.works:
            stream.push(f"graph: {work.name}", work.run, uses=work.uses)


@dataclass
class FakeKernel:
    """See ``engines.cuda.driver.Kernel``."""

    driver: FakeDriver
    file: str
    name: str

    def launch(
        self, stream: Stream, grid: tuple[int, int, int], block: tuple[int, int, int], arguments: Sequence[Any]
    ) -> None:
        assert isinstance(stream, FakeStream)
        given = tuple(arguments)
        if min(*grid, *block) < 1 or block[0] * block[1] * block[2] > 1024:
            raise OrderError(f"{self.name} was launched with {grid} blocks of {block}")
        kernels = self.driver.kernels
        few = (min(grid[0], 8), 1, 1) if self.name.split("_")[0] != "extent" else grid  # strides do the rest
        stream.push(self.name, lambda: kernels.launch(self.file, self.name, few, block, given), uses=self._uses(given))

    def _uses(self, arguments: Sequence[Any]) -> list[Use]:
        addresses = [int(argument) for argument in arguments if isinstance(argument, np.uint64)]
        roles = zip(addresses, ROLES[re.sub(r"_f(16|32)$", "", self.name)], strict=True)
        return [self.driver.block_at(address)._replace(writes=role == "w") for address, role in roles if address]


Wait = tuple[str, str, str]


@dataclass
class FakeDriver:
    """See ``engines.cuda.driver.Driver``.

    Attributes:
        kernels: the real kernels, on the host.
        seed: of the order in which ready work runs beside what is waited for; ``None`` runs nothing beside it.
        deaf_to: a wait of the program that is left out: ``(function, who waits, what recorded the event)``.
        memory_bytes: of the device.
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
        self.freed: list[NDArray[np.uint8]] = []
        self.memory: list[FakeMemory] = []
        self.races = Races()
        self._sent: dict[tuple[int, int], bytes] = {}
        self.heard: set[Wait] = set()
        self.capturing: tuple[FakeStream, list[Work]] | None = None
        self.sealed = self.closed = False
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

    def _demand_open(self, what: str) -> None:
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
        self.closed = True
