"""The driver on PyCUDA; knows calls and errors, no picture.

PyCUDA keeps a stack of contexts for each thread and destroys what it owns in whatever context is current, so everything
is freed by hand while ours is. It ends the whole process where a thread ends with a context on that stack.
"""

from __future__ import annotations

import atexit
import ctypes
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import metadata
from typing import Any

import numpy as np
import pycuda.driver as cuda
from numpy.typing import NDArray

from engines.cuda.base import BaseDriver
from engines.cuda.driver import Event, Gpu, Stream
from engines.cuda.trial import LIBRARY
from engines.cuda.words import failure
from engines.errors import OutOfMemoryError

NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING, which PyCUDA has no name for


@contextmanager
def told(what: str) -> Iterator[None]:
    """Turn PyCUDA's errors into ours."""
    try:
        yield
    except cuda.MemoryError as error:
        told_error = failure(what, str(error))
        raise OutOfMemoryError(told_error.message, told_error.hint) from error
    except cuda.Error as error:
        raise failure(what, str(error)) from error


class PyCudaEvent:
    """See :class:`engines.cuda.driver.Event`."""

    def __init__(self, timing: bool) -> None:
        self.event: Any = cuda.Event(0 if timing else cuda.event_flags.DISABLE_TIMING)

    def wait(self) -> None:
        """Block."""
        with told("waiting for a frame"):
            self.event.synchronize()

    def done(self) -> bool:
        """Ask."""
        with told("asking for a frame"):
            return bool(self.event.query())

    def ms_since(self, earlier: Event) -> float:
        """Time between."""
        assert isinstance(earlier, PyCudaEvent)
        with told("timing"):
            return float(self.event.time_since(earlier.event))

    def free(self) -> None:
        """Let it go."""
        self.event = None


class PyCudaStream:
    """See :class:`engines.cuda.driver.Stream`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stream: Any = cuda.Stream(NON_BLOCKING)
        self.handle = int(self.stream.handle)

    def record(self, event: Event) -> None:
        """Mark."""
        assert isinstance(event, PyCudaEvent)
        with told("recording an event"):
            event.event.record(self.stream)

    def wait_for(self, event: Event) -> None:
        """Order."""
        assert isinstance(event, PyCudaEvent)
        with told("ordering streams"):
            self.stream.wait_for_event(event.event)

    def free(self) -> None:
        """Let it go."""
        self.stream = None


class PyCudaBuffer:
    """See :class:`engines.cuda.driver.Buffer`."""

    def __init__(self, driver: BaseDriver, nbytes: int) -> None:
        self._driver, self.nbytes = driver, nbytes
        self._memory: Any = cuda.mem_alloc(nbytes)
        self.address = int(self._memory)

    def free(self) -> None:
        """Give it back."""
        if self._memory is not None:
            memory, self._memory = self._memory, None
            self.address = 0
            self._driver.forget(self)
            with suppress(cuda.Error):  # a GPU that has failed has nothing to give back, and has told so
                memory.free()


class PyCudaPinned:
    """See :class:`engines.cuda.driver.Pinned`."""

    def __init__(self, driver: BaseDriver, nbytes: int) -> None:
        self._driver = driver
        self.array: NDArray[np.uint8] = cuda.pagelocked_empty(nbytes, np.uint8)

    def free(self) -> None:
        """Give it back; nobody may use a part of the array any more."""
        if self.array.size:
            memory: Any = self.array.base
            self.array = np.empty(0, np.uint8)
            self._driver.forget(self)
            with suppress(cuda.Error):  # see above
                memory.free()


class PyCudaDriver(BaseDriver):
    """See :class:`engines.cuda.driver.Driver`."""

    def __init__(self) -> None:
        super().__init__()
        with told("starting"):
            cuda.init()
            self._device: Any = cuda.Device(0)
            self.gpu, self._closed = self._describe(), False
            self._context: Any = self._device.retain_primary_context()
            self._context.push()
        atexit.register(self.close)  # what is left open would end the process with an abort

    @property
    def back_end(self) -> str:
        """The package and its version."""
        return f"pycuda {metadata.version('pycuda')}"

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Push the primary context, and pop it."""
        with told("entering a thread"):
            self._context.push()
        try:
            yield
        finally:
            with told("leaving a thread"):
                cuda.Context.pop()

    def free_bytes(self) -> int:
        """Ask the driver."""
        with told("asking for free memory"):
            free, _ = cuda.mem_get_info()
        return int(free)

    def stream(self, name: str, urgent: bool = False) -> Stream:
        """Make one; PyCUDA has no priorities."""
        with told("making a stream"):
            return self._keep_stream(PyCudaStream(name))

    def event(self, timing: bool = False) -> PyCudaEvent:
        """Make one."""
        with told("making an event"):
            made = PyCudaEvent(timing)
        self._made[made] = None
        return made

    def _allocate(self, nbytes: int) -> PyCudaBuffer:
        with told("allocating"):
            return PyCudaBuffer(self, nbytes)

    def _allocate_pinned(self, nbytes: int) -> PyCudaPinned:
        with told("allocating pinned memory"):
            return PyCudaPinned(self, nbytes)

    def copy_in(self, target: int, source: NDArray[np.uint8], stream: Stream) -> None:
        """Enqueue."""
        assert isinstance(stream, PyCudaStream)
        with told("copying to it"):
            cuda.memcpy_htod_async(target, source, stream.stream)

    def copy_out(self, target: NDArray[np.uint8], source: int, stream: Stream) -> None:
        """Enqueue."""
        assert isinstance(stream, PyCudaStream)
        with told("copying from it"):
            cuda.memcpy_dtoh_async(target, source, stream.stream)

    def copy_rows_out(self, target: NDArray[np.uint8], source: int, pitch: int, stream: Stream) -> None:
        """Enqueue."""
        assert isinstance(stream, PyCudaStream)
        copy = cuda.Memcpy2D()
        copy.set_src_device(source)
        copy.set_dst_host(target)
        copy.src_pitch, copy.dst_pitch = pitch, target.shape[1]
        copy.height, copy.width_in_bytes = target.shape
        with told("copying a picture from it"):
            copy(stream.stream)

    def close(self) -> None:
        """Free everything, and let the context go."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        with ExitStack() as last_first:
            last_first.callback(self._leave)
            self._free_all(last_first)

    def _leave(self) -> None:
        """Let the context go, and leave the thread without one.

        ``detach`` gives it back and takes it off PyCUDA's stack, but not off the driver's. PyCUDA's own ``pop`` does
        not help: what it has popped, ``detach`` pushes again.
        """
        ctypes.CDLL(LIBRARY).cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
        with told("ending"):
            self._context.detach()

    def _describe(self) -> Gpu:
        version = cuda.get_driver_version()
        return Gpu(
            self._device.name(),
            tuple(self._device.compute_capability()),
            int(self._device.total_memory()),
            f"{version // 1000}.{version % 1000 // 10}",
            self._device.pci_bus_id(),
        )
