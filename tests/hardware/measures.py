"""What is measured on a GPU, on any driver: so that it is known to run before there is one."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import numpy as np

from engines.cuda.driver import Driver


def overlap(driver: Driver, nbytes: int = 64 << 20, rounds: int = 10) -> tuple[float, float]:
    """Copy in and copy out, one after the other and beside each other.

    Returns:
        Sum of the parts and wall time of both at once, in ms, by events; medians.
    """
    streams = driver.stream("a"), driver.stream("b")
    sent, back = driver.pinned(nbytes, "sent"), driver.pinned(nbytes, "back")
    buffers = driver.buffer(nbytes, "one"), driver.buffer(nbytes, "other")
    marks = [driver.event(timing=True) for _ in range(4)]
    gate = driver.event()

    def both(first: int, second: int) -> tuple[float, float]:
        streams[first].record(marks[0])
        driver.copy_in(buffers[0].address, sent.array, streams[first])
        streams[first].record(marks[1])
        if first == second:
            streams[second].wait_for(marks[1])
        else:
            streams[second].wait_for(gate)
        streams[second].record(marks[2])
        driver.copy_out(back.array, buffers[1].address, streams[second])
        streams[second].record(marks[3])
        for mark in (marks[1], marks[3]):
            mark.wait()
        parts = marks[1].ms_since(marks[0]) + marks[3].ms_since(marks[2])
        return parts, max(marks[1].ms_since(marks[0]), marks[3].ms_since(marks[0]))

    try:
        apart = median(both(0, 0)[0] for _ in range(rounds))
        together = median(both(0, 1)[1] for _ in range(rounds))
        return apart, together
    finally:
        for part in (sent, back, *buffers):
            part.free()


def host_ms(work: Callable[[], object], rounds: int = 30, warm: int = 5) -> float:
    """Median wall time of something that waits for its own end."""
    costs = []
    for number in range(warm + rounds):
        began = time.perf_counter()
        work()
        if number >= warm:
            costs.append((time.perf_counter() - began) * 1e3)
    return float(np.median(costs))
