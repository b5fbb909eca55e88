"""Streams, events, memory, kernels and graphs of the fake GPU: they keep lists of work and run it when told to."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engines.cuda.driver import Event, Stream
from engines.errors import DeviceError
from tests.cuda.races import Clock, RaceError, Use

if TYPE_CHECKING:
    from tests.cuda.fake_driver import FakeDriver

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
        self._driver.demand_alive()
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
        self._driver.demand_alive()
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
            if not self._driver.dead:  # nothing is under way on one that has failed
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
