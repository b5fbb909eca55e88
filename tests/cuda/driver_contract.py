"""What every driver obeys, whatever it is made of, a real GPU included; knows ``engines.cuda.driver`` and no library.

A law takes a driver that was opened for it alone and asserts; whoever runs it closes the driver. All that a law has
enqueued it has waited for when it ends, and no law asks how soon something happens.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from engines.cuda.driver import Driver, Pinned, Stream
from engines.errors import DeviceError, OutOfMemoryError

Law = Callable[[Driver], None]
MORE_THAN_ANY_GPU = 1 << 50


class ThrownError(Exception):
    """By a law, to see where it goes."""


def numbers(nbytes: int, first: int = 0) -> NDArray[np.uint8]:
    return ((np.arange(nbytes) + first) % 251).astype(np.uint8)


def filled(driver: Driver, content: NDArray[np.uint8], what: str = "sent") -> Pinned:
    pinned = driver.pinned(content.size, what)
    pinned.array[:] = content
    return pinned


def wait(driver: Driver, stream: Stream) -> None:
    ended = driver.event()
    stream.record(ended)
    ended.wait()
    assert ended.done()


def it_says_what_it_drives(driver: Driver) -> None:
    gpu = driver.gpu
    assert driver.back_end
    assert gpu.name
    assert gpu.uuid
    assert gpu.capability >= (7, 5)
    assert gpu.memory_bytes >= driver.free_bytes() > 0
    assert int(gpu.driver.split(".")[0]) >= 11


def streams_are_told_apart_and_found_by_their_handles(driver: Driver) -> None:
    streams = [driver.stream("one"), driver.stream("other", urgent=True)]
    assert [stream.name for stream in streams] == ["one", "other"]
    assert len({stream.handle for stream in streams} | {0, 1, 2}) == 5  # those are the null streams of CUDA
    assert all(driver.stream_of(stream.handle) is stream for stream in streams)


def what_is_copied_in_comes_out(driver: Driver) -> None:
    stream, memory = driver.stream("s"), driver.buffer(1000, "memory")
    sent, back = filled(driver, numbers(1000)), filled(driver, numbers(1000, 7), "back")
    driver.copy_in(memory.address, sent.array, stream)
    driver.copy_out(back.array, memory.address, stream)
    wait(driver, stream)
    assert np.array_equal(back.array, numbers(1000))


def parts_are_copied_and_their_neighbours_left_alone(driver: Driver) -> None:
    stream, memory = driver.stream("s"), driver.buffer(1000, "memory")
    sent, patch, back = filled(driver, numbers(1000)), filled(driver, numbers(64, 100)), driver.pinned(1000, "back")
    driver.copy_in(memory.address, sent.array, stream)
    driver.copy_in(memory.address + 300, patch.array[10:20], stream)
    driver.copy_out(back.array[5:400], memory.address + 5, stream)
    driver.copy_out(back.array[400:], memory.address + 400, stream)
    driver.copy_out(back.array[:5], memory.address, stream)
    wait(driver, stream)
    right = numbers(1000)
    right[300:310] = numbers(64, 100)[10:20]
    assert np.array_equal(back.array, right)


def a_rectangle_comes_out_row_by_row(driver: Driver) -> None:
    stream, memory = driver.stream("s"), driver.buffer(1000, "memory")
    sent, back = filled(driver, numbers(1000)), filled(driver, numbers(100, 3), "back")
    driver.copy_in(memory.address, sent.array, stream)
    rows = back.array[20:35].reshape(3, 5)
    driver.copy_rows_out(rows, memory.address + 10, 100, stream)
    wait(driver, stream)
    assert np.array_equal(rows, numbers(1000).reshape(10, 100)[:3, 10:15])
    untouched = numbers(100, 3)
    assert np.array_equal(back.array[:5], untouched[:5])
    assert np.array_equal(back.array[35:], untouched[35:])


def a_stream_that_waits_for_an_event_sees_what_came_before_it(driver: Driver) -> None:
    copying, reading, copied = driver.stream("copying"), driver.stream("reading"), driver.event()
    sent, back, memory = filled(driver, numbers(1000)), driver.pinned(1000, "back"), driver.buffer(1000, "memory")
    driver.copy_in(memory.address, sent.array, copying)
    copying.record(copied)
    reading.wait_for(copied)
    driver.copy_out(back.array, memory.address, reading)
    wait(driver, reading)
    assert np.array_equal(back.array, numbers(1000))


def an_event_is_used_again_and_stands_for_its_latest_recording(driver: Driver) -> None:
    stream, again = driver.stream("s"), driver.event()
    assert again.done()  # nothing was recorded
    stream.wait_for(again)
    again.wait()
    back = [driver.pinned(100, "back") for _ in range(3)]
    for turn, target in enumerate(back):
        memory = driver.buffer(100, "memory")
        driver.copy_in(memory.address, filled(driver, numbers(100, turn)).array, stream)
        driver.copy_out(target.array, memory.address, stream)
        stream.record(again)
    again.wait()
    assert again.done()
    assert [int(target.array[0]) for target in back] == [0, 1, 2]


def time_on_the_device_passes(driver: Driver) -> None:
    stream, began, ended = driver.stream("s"), driver.event(timing=True), driver.event(timing=True)
    memory, sent = driver.buffer(1000, "memory"), filled(driver, numbers(1000))
    stream.record(began)
    driver.copy_in(memory.address, sent.array, stream)
    stream.record(ended)
    ended.wait()
    assert ended.ms_since(began) >= 0


def memory_is_listed_until_it_is_freed(driver: Driver) -> None:
    assert driver.allocations() == ()
    memory, pinned = driver.buffer(1000, "a picture"), driver.pinned(70, "numbers")
    assert driver.allocations() == (("device", "a picture", 1000), ("pinned", "numbers", 70))
    assert (memory.nbytes, pinned.array.shape, pinned.array.dtype.name) == (1000, (70,), "uint8")
    for _ in range(2):  # twice is safe
        memory.free()
    assert driver.allocations() == (("pinned", "numbers", 70),)
    for _ in range(2):
        pinned.free()
    assert driver.allocations() == ()


def too_much_memory_is_refused_in_words_and_costs_nothing(driver: Driver) -> None:
    kept = driver.buffer(1000, "kept")
    with pytest.raises(OutOfMemoryError, match="everything") as refused:
        driver.buffer(MORE_THAN_ANY_GPU, "everything")
    assert refused.value.hint
    assert driver.allocations() == (("device", "kept", 1000),)
    stream, sent = driver.stream("s"), filled(driver, numbers(1000))
    driver.copy_in(kept.address, sent.array, stream)  # it still works
    wait(driver, stream)


def another_thread_works_while_it_is_attached(driver: Driver) -> None:
    stream, memory, back = driver.stream("s"), driver.buffer(1000, "memory"), driver.pinned(1000, "back")
    failed: list[BaseException] = []

    def work() -> None:
        sent = filled(driver, numbers(1000))
        driver.copy_in(memory.address, sent.array, stream)
        wait(driver, stream)
        sent.free()

    def elsewhere() -> None:
        try:
            with driver.attached():
                work()
            with driver.attached():
                work()
        except (AssertionError, DeviceError) as error:
            failed.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert not failed, failed
    driver.copy_out(back.array, memory.address, stream)
    wait(driver, stream)
    assert np.array_equal(back.array, numbers(1000))


def attaching_is_left_by_an_error_too(driver: Driver) -> None:
    with driver.attached(), driver.attached():
        driver.event()
    with pytest.raises(ThrownError), driver.attached():
        raise ThrownError
    driver.buffer(10, "afterwards").free()


def closing_frees_what_was_left_and_twice_is_safe(driver: Driver) -> None:
    stream, event = driver.stream("s"), driver.event()
    left = driver.buffer(1000, "left"), driver.pinned(1000, "left, too"), driver.buffer(1000, "freed")
    left[2].free()
    stream.record(event)
    event.wait()
    driver.close()
    assert driver.allocations() == ()
    driver.close()
    for part in left:
        part.free()


def work_is_named_in_traces(driver: Driver) -> None:
    with driver.range("outer"), driver.range("inner"):
        driver.event()


LAWS: tuple[Law, ...] = (
    it_says_what_it_drives,
    streams_are_told_apart_and_found_by_their_handles,
    what_is_copied_in_comes_out,
    parts_are_copied_and_their_neighbours_left_alone,
    a_rectangle_comes_out_row_by_row,
    a_stream_that_waits_for_an_event_sees_what_came_before_it,
    an_event_is_used_again_and_stands_for_its_latest_recording,
    time_on_the_device_passes,
    memory_is_listed_until_it_is_freed,
    too_much_memory_is_refused_in_words_and_costs_nothing,
    another_thread_works_while_it_is_attached,
    attaching_is_left_by_an_error_too,
    closing_frees_what_was_left_and_twice_is_safe,
    work_is_named_in_traces,
)
"""Of streams, events and memory."""


def a_capture_runs_only_when_its_graph_is_launched(driver: Driver) -> None:
    stream, memory, back = driver.stream("s"), driver.buffer(100, "memory"), driver.pinned(100, "back")
    sent, other = filled(driver, numbers(100)), filled(driver, numbers(100, 50))
    driver.copy_in(memory.address, sent.array, stream)
    with driver.capture(stream) as graphs:
        driver.copy_in(memory.address, other.array, stream)
    (graph,) = graphs
    for launches, first in ((0, 0), (1, 50), (1, 50)):
        for _ in range(launches):
            graph.launch(stream)
        driver.copy_out(back.array, memory.address, stream)
        wait(driver, stream)
        assert np.array_equal(back.array, numbers(100, first))


def failing(driver: Driver, target: int, sent: Pinned, stream: Stream) -> None:
    driver.copy_in(target, sent.array, stream)
    raise ThrownError


def an_error_within_a_capture_goes_on_and_leaves_nothing_captured(driver: Driver) -> None:
    stream, memory = driver.stream("s"), driver.buffer(100, "memory")
    sent, back = filled(driver, numbers(100)), driver.pinned(100, "back")
    driver.copy_in(memory.address, sent.array, stream)
    with pytest.raises(ThrownError), driver.capture(stream) as graphs:
        failing(driver, memory.address, sent, stream)
    assert not graphs
    driver.copy_out(back.array, memory.address, stream)
    wait(driver, stream)
    assert np.array_equal(back.array, numbers(100))


CUPY_LAWS: tuple[Law, ...] = (
    a_capture_runs_only_when_its_graph_is_launched,
    an_error_within_a_capture_goes_on_and_leaves_nothing_captured,
)
"""Of what CuPy has a part in, which runs on a real GPU only."""
