"""What is measured of a GPU through the driver's contract: copies beside work, and graphs; runs on any driver."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from typing import NamedTuple

import numpy as np

from engines.contract import TensorSpec
from engines.cuda import blocks
from engines.cuda.driver import Buffer, Driver, Event, Pinned, Stream
from engines.cuda.lane import THREADS, grid_for
from realtime.types import U8

SPEC = TensorSpec("x", (1, 3, 256, 256), "float32", "NCHW", "RGB", (0.0,) * 3, (1 / 255,) * 3)
PICTURE = (720, 1280, 3)
MOST_LAUNCHES = 2000


class Cuts:
    """Work of the program's own: crops that are cut out of a picture, one after the other."""

    def __init__(self, driver: Driver, spec: TensorSpec = SPEC, shape: tuple[int, int, int] = PICTURE) -> None:
        self._driver, self._spec = driver, spec
        self._kernel = driver.kernel("crop.cu", f"crop_{blocks.suffix(spec)}")
        height, width, _ = shape
        block = np.zeros(1, blocks.CROP)
        blocks.write_crop(block, np.array([[2.0, 0.3, 40], [-0.3, 2.0, 90]]), (width, height), 3 * width)
        picture: U8 = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
        self.owned: list[Buffer | Pinned] = []
        stream = driver.stream("set up")
        self._picture, self._block = (self._sent(part, stream) for part in (picture, block))
        self._target = driver.buffer(4 * int(np.prod(spec.shape)), "crop")
        self.back = driver.pinned(self._target.nbytes, "crop, back")
        self.owned += [self._target, self.back]

    def _sent(self, data: blocks.Block, stream: Stream) -> Buffer:
        pinned, buffer = self._driver.pinned(data.nbytes, "sent"), self._driver.buffer(data.nbytes, "sent")
        self.owned += [pinned, buffer]
        pinned.array[:] = data.reshape(-1).view(np.uint8)
        self._driver.copy_in(buffer.address, pinned.array, stream)
        done = self._driver.event()
        stream.record(done)
        done.wait()
        return buffer

    def launch(self, stream: Stream, count: int) -> None:
        """Enqueue so many."""
        addresses = tuple(np.uint64(part.address) for part in (self._picture, self._block, self._target))
        shape = grid_for(self._spec.shape[2] * self._spec.shape[3]), (THREADS, 1, 1)
        for _ in range(count):
            self._kernel.launch(stream, *shape, (*addresses, *blocks.crop_arguments(self._spec)))

    def result(self, stream: Stream) -> U8:
        """What the latest one cut, once it is done."""
        self._driver.copy_out(self.back.array, self._target.address, stream)
        done = self._driver.event()
        stream.record(done)
        done.wait()
        return self.back.array.copy()

    def free(self) -> None:
        """Free the memory."""
        for part in reversed(self.owned):
            part.free()


@dataclass(frozen=True, slots=True)
class Overlap:
    """Times by events, in ms; medians.

    Attributes:
        copy_in: alone.
        work: alone.
        copy_out: alone.
        together: from the beginning of the three to the end of the last.
    """

    copy_in: float
    work: float
    copy_out: float
    together: float

    @property
    def share(self) -> float:
        """Of the sum of the parts that is needed for all of them together."""
        return self.together / (self.copy_in + self.work + self.copy_out)


def overlap(driver: Driver, nbytes: int = 64 << 20, rounds: int = 10) -> Overlap:
    """Copy in, compute, and copy out: each alone, then all beside each other; the work takes as long as a copy.

    Args:
        driver: the GPU.
        nbytes: of each copy.
        rounds: of everything.
    """
    cuts = Cuts(driver)
    sent, back = driver.pinned(nbytes, "sent"), driver.pinned(nbytes, "back")
    taken, given = driver.buffer(nbytes, "taken"), driver.buffer(nbytes, "given")
    streams = [driver.stream(name) for name in ("in", "work", "out")]
    begin, end = driver.event(timing=True), driver.event(timing=True)
    joints = [driver.event() for _ in streams]
    count = 10

    def enqueue(part: int) -> None:
        if part == 0:
            driver.copy_in(taken.address, sent.array, streams[0])
        elif part == 1:
            cuts.launch(streams[1], count)
        else:
            driver.copy_out(back.array, given.address, streams[2])

    def alone(part: int) -> float:
        return median(_between(streams[part], begin, end, lambda: enqueue(part)) for _ in range(rounds))

    def beside() -> None:
        for stream in streams[1:]:
            stream.wait_for(begin)
        for part in (1, 0, 2):  # the work first: it takes the processor longest to enqueue
            enqueue(part)
        for stream, joint in zip(streams[1:], joints[1:], strict=True):
            stream.record(joint)
            streams[0].wait_for(joint)

    try:
        for part in range(3):
            alone(part)  # the first time compiles, and touches the memory
        copy = alone(0)
        count = max(1, min(MOST_LAUNCHES, round(count * copy / max(alone(1), 1e-3))))
        copy_in, work, copy_out = (alone(part) for part in range(3))
        return Overlap(copy_in, work, copy_out, median(_between(streams[0], begin, end, beside) for _ in range(rounds)))
    finally:
        for memory in (sent, back, taken, given):
            memory.free()
        cuts.free()


def _between(stream: Stream, begin: Event, end: Event, enqueue: Callable[[], None]) -> float:
    """Time on the device from before to after what is enqueued, which has to end on the stream."""
    stream.record(begin)
    enqueue()
    stream.record(end)
    end.wait()
    return end.ms_since(begin)


class Replay(NamedTuple):
    """Many small launches, one by one and as a graph; medians.

    Attributes:
        plain_host_ms: that the processor is busy with launching them one by one.
        graph_host_ms: with launching the graph.
        plain_ms: on the device, one by one.
        graph_ms: on the device, as a graph.
        same: whether both have the same result.
    """

    plain_host_ms: float
    graph_host_ms: float
    plain_ms: float
    graph_ms: float
    same: bool


def replay(driver: Driver, launches: int = 200, rounds: int = 20) -> Replay:
    """Cut many small crops, each launched by itself, then all of them as one graph."""
    cuts, stream = Cuts(driver, replace(SPEC, shape=(1, 3, 64, 64))), driver.stream("replay")
    begin, end = driver.event(timing=True), driver.event(timing=True)

    def timed(work: Callable[[], None]) -> tuple[float, float, U8]:
        costs: list[float] = []

        def enqueue() -> None:
            began_s = time.perf_counter()
            work()
            costs.append((time.perf_counter() - began_s) * 1e3)

        device_ms = median(_between(stream, begin, end, enqueue) for _ in range(rounds))
        return median(costs), device_ms, cuts.result(stream)

    try:
        plain = timed(lambda: cuts.launch(stream, launches))
        with driver.capture(stream) as graphs:
            cuts.launch(stream, launches)
        graph = timed(lambda: graphs[0].launch(stream))
        return Replay(plain[0], graph[0], plain[1], graph[1], bool(np.array_equal(plain[2], graph[2])))
    finally:
        cuts.free()


def host_ms(work: Callable[[], object], rounds: int = 30, warm: int = 5) -> float:
    """Median wall time of something that waits for its own end."""
    costs = []
    for number in range(warm + rounds):
        began_s = time.perf_counter()
        work()
        if number >= warm:
            costs.append((time.perf_counter() - began_s) * 1e3)
    return float(median(costs))
