"""The fake GPU notices what no program may do with a real one."""

from __future__ import annotations

import numpy as np
import pytest

from engines.contract import TensorSpec
from engines.errors import DeviceError
from tests.cuda.driver_contract import CUPY_LAWS, LAWS, Law
from tests.cuda.fake_driver import FakeDriver
from tests.cuda.fake_engine import FakeSlotted
from tests.cuda.fake_parts import OrderError
from tests.cuda.scene import LOOK, SEEN, film, on_gpu, seen
from tests.kernels.host import HostKernels

pytestmark = pytest.mark.ordering


@pytest.fixture
def tight(kernels: HostKernels) -> FakeDriver:
    return FakeDriver(kernels)


@pytest.mark.parametrize("law", LAWS + CUPY_LAWS, ids=lambda law: law.__name__)
def test_it_obeys_what_real_ones_do(tight: FakeDriver, law: Law) -> None:
    law(tight)


def test_allocating_within_the_loop_is_noticed(tight: FakeDriver) -> None:
    run = on_gpu(tight)
    run.play(film(4), 1)
    tight.sealed = True
    with pytest.raises(OrderError, match="within the loop"):
        run.device.begin(film(1, (128, 72))[0])


def test_waiting_within_a_capture_is_noticed(tight: FakeDriver) -> None:
    stream, event = tight.stream("s"), tight.event()
    stream.record(event)
    with pytest.raises(DeviceError, match="capturing"), tight.capture(stream):
        event.wait()


def test_writing_to_pinned_memory_under_a_copy_is_noticed(tight: FakeDriver) -> None:
    stream, event = tight.stream("s"), tight.event()
    pinned, buffer = tight.pinned(8, "a"), tight.buffer(8, "b")
    tight.copy_in(buffer.address, pinned.array, stream)
    stream.record(event)
    pinned.array[:] = 1
    with pytest.raises(OrderError, match="pinned"):
        event.wait()


def test_two_uses_in_no_order_are_noticed_even_where_luck_has_them_right(tight: FakeDriver) -> None:
    first, other, event = tight.stream("first"), tight.stream("other"), tight.event()
    buffer, pinned = tight.buffer(8, "a"), tight.pinned(16, "b")
    tight.copy_in(buffer.address, pinned.array[:8], first)
    with pytest.raises(OrderError, match="copy out on other is in no order with copy in on first"):
        tight.copy_out(pinned.array[8:], buffer.address, other)
    first.record(event)
    other.wait_for(event)
    tight.copy_out(pinned.array[8:], buffer.address, other)


def test_an_order_is_handed_on_by_whoever_has_waited(tight: FakeDriver) -> None:
    streams, events = [tight.stream(str(n)) for n in range(3)], [tight.event() for _ in range(3)]
    buffer, pinned, another = tight.buffer(8, "a"), tight.pinned(8, "b"), tight.pinned(4, "c")
    tight.copy_in(buffer.address, pinned.array, streams[0])
    streams[0].record(events[0])
    streams[1].wait_for(events[0])
    streams[1].record(events[1])
    streams[2].wait_for(events[1])
    tight.copy_in(buffer.address + 4, another.array, streams[2])
    streams[2].record(events[2])
    events[2].wait()
    tight.copy_in(buffer.address, pinned.array, streams[1])  # the host has waited, and this comes after


def test_reading_together_is_in_order_and_so_is_writing_apart(tight: FakeDriver) -> None:
    one, other = tight.stream("one"), tight.stream("other")
    buffer, pinned = tight.buffer(8, "a"), tight.pinned(24, "b")
    for stream, at in ((one, 0), (other, 4)):
        tight.copy_in(buffer.address + at, pinned.array[at : at + 4], stream)
    with pytest.raises(OrderError):
        tight.copy_in(buffer.address + 3, pinned.array[8:10], other)


def test_freeing_what_is_used_is_noticed(tight: FakeDriver) -> None:
    stream, event = tight.stream("s"), tight.event()
    buffer, pinned = tight.buffer(8, "a"), tight.pinned(8, "b")
    tight.copy_in(buffer.address, pinned.array, stream)
    for memory in (buffer, pinned):
        with pytest.raises(OrderError, match="freeing"):
            memory.free()
    stream.record(event)
    event.wait()
    buffer.free()
    pinned.free()


def test_a_kernel_that_is_given_the_address_of_nothing_is_noticed(tight: FakeDriver) -> None:
    stream, gone = tight.stream("s"), tight.buffer(8, "a")
    address = np.uint64(gone.address)
    gone.free()
    with pytest.raises(OrderError, match="of nothing"):
        tight.kernel("measure.cu", "extent_f32").launch(stream, (1, 1, 1), (256, 1, 1), (address, address))


def test_capturing_what_has_not_run_is_noticed(tight: FakeDriver) -> None:
    engine, stream = FakeSlotted(tight, (LOOK,), (SEEN,), seen), tight.stream("s")
    engine.bind(0, {spec.name: tight.buffer(spec_bytes(spec), spec.name).address for spec in (LOOK, SEEN)})
    engine.enqueue(0, stream.handle)
    with pytest.raises(OrderError, match="captured before"), tight.capture(stream):
        engine.enqueue(0, stream.handle)


def spec_bytes(spec: TensorSpec) -> int:
    return int(np.prod(spec.shape)) * 4
