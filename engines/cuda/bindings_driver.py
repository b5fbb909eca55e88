"""The driver on NVIDIA's own ``cuda-bindings``, whose wheels install everywhere; knows calls and errors, no picture."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import metadata
from typing import Any

import numpy as np
from cuda.bindings import driver as cu
from numpy.typing import NDArray

from engines.cuda.base import BaseDriver
from engines.cuda.driver import Event, Gpu, Stream
from engines.cuda.words import failure
from engines.errors import DeviceError, OutOfMemoryError


def call(function: Any, *arguments: Any) -> Any:
    """Call the driver, and give what it returns besides its status.

    Raises:
        OutOfMemoryError: there is no room.
        DeviceError: any other error.
    """
    try:
        status, *made = function(*arguments)
    except RuntimeError as error:  # raised for a function that the driver does not have
        raise DeviceError(f"the NVIDIA driver is too old: {error}", "update the NVIDIA driver") from error
    check(function, status)
    return made[0] if len(made) == 1 else tuple(made)


def check(function: Any, status: Any) -> None:
    """Demand that a call has succeeded; raises like :func:`call`."""
    if status == cu.CUresult.CUDA_SUCCESS:
        return
    _, words = cu.cuGetErrorString(status)
    error = failure(function.__name__, words.decode() if words else status.name)
    if status == cu.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
        raise OutOfMemoryError(error.message, error.hint)
    raise error


class BindingsEvent:
    """See :class:`engines.cuda.driver.Event`."""

    def __init__(self, timing: bool) -> None:
        flags = cu.CUevent_flags.CU_EVENT_DEFAULT if timing else cu.CUevent_flags.CU_EVENT_DISABLE_TIMING
        self.handle = call(cu.cuEventCreate, flags)

    def wait(self) -> None:
        """Block."""
        call(cu.cuEventSynchronize, self.handle)

    def done(self) -> bool:
        """Ask."""
        (status,) = cu.cuEventQuery(self.handle)
        if status == cu.CUresult.CUDA_ERROR_NOT_READY:
            return False
        check(cu.cuEventQuery, status)
        return True

    def ms_since(self, earlier: Event) -> float:
        """Time between."""
        assert isinstance(earlier, BindingsEvent)
        return float(call(cu.cuEventElapsedTime, earlier.handle, self.handle))

    def free(self) -> None:
        """Destroy it."""
        call(cu.cuEventDestroy, self.handle)


class BindingsStream:
    """See :class:`engines.cuda.driver.Stream`."""

    def __init__(self, name: str, priority: int) -> None:
        self.name = name
        self._stream = call(cu.cuStreamCreateWithPriority, cu.CUstream_flags.CU_STREAM_NON_BLOCKING, priority)
        self.handle = int(self._stream)

    def record(self, event: Event) -> None:
        """Mark."""
        assert isinstance(event, BindingsEvent)
        call(cu.cuEventRecord, event.handle, self._stream)

    def wait_for(self, event: Event) -> None:
        """Order."""
        assert isinstance(event, BindingsEvent)
        call(cu.cuStreamWaitEvent, self._stream, event.handle, 0)

    def free(self) -> None:
        """Destroy it."""
        call(cu.cuStreamDestroy, self._stream)


class BindingsBuffer:
    """See :class:`engines.cuda.driver.Buffer`."""

    def __init__(self, driver: BaseDriver, nbytes: int) -> None:
        self._driver, self.nbytes = driver, nbytes
        self.address = int(call(cu.cuMemAlloc, nbytes))

    def free(self) -> None:
        """Give it back."""
        if self.address:
            address, self.address = self.address, 0
            self._driver.forget(self)
            with suppress(DeviceError):  # a GPU that has failed has nothing to give back, and has told so
                call(cu.cuMemFree, address)


class BindingsPinned:
    """See :class:`engines.cuda.driver.Pinned`."""

    def __init__(self, driver: BaseDriver, nbytes: int) -> None:
        self._driver = driver
        self._address = int(call(cu.cuMemHostAlloc, nbytes, 0))
        memory = (ctypes.c_uint8 * nbytes).from_address(self._address)
        self.array: NDArray[np.uint8] = np.ctypeslib.as_array(memory)

    def free(self) -> None:
        """Give it back; nobody may use a part of the array any more."""
        if self._address:
            address, self._address = self._address, 0
            self.array = np.empty(0, np.uint8)
            self._driver.forget(self)
            with suppress(DeviceError):  # see above
                call(cu.cuMemFreeHost, address)


class BindingsDriver(BaseDriver):
    """See :class:`engines.cuda.driver.Driver`."""

    def __init__(self) -> None:
        super().__init__()
        call(cu.cuInit, 0)
        self._device = call(cu.cuDeviceGet, 0)
        self.gpu, self._closed = self._describe(), False
        self._context = call(cu.cuDevicePrimaryCtxRetain, self._device)
        call(cu.cuCtxPushCurrent, self._context)
        with ExitStack() as on_failure:
            on_failure.callback(self.close)
            _, self._urgent = call(cu.cuCtxGetStreamPriorityRange)
            on_failure.pop_all()

    @property
    def back_end(self) -> str:
        """The package and its version."""
        return f"cuda-bindings {metadata.version('cuda-bindings')}"

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Push the primary context, and pop it."""
        call(cu.cuCtxPushCurrent, self._context)
        try:
            yield
        finally:
            call(cu.cuCtxPopCurrent)

    def free_bytes(self) -> int:
        """Ask the driver."""
        free, _ = call(cu.cuMemGetInfo)
        return int(free)

    def stream(self, name: str, urgent: bool = False) -> Stream:
        """Make one."""
        return self._keep_stream(BindingsStream(name, self._urgent if urgent else 0))

    def event(self, timing: bool = False) -> BindingsEvent:
        """Make one."""
        made = BindingsEvent(timing)
        self._made[made] = None
        return made

    def _allocate(self, nbytes: int) -> BindingsBuffer:
        return BindingsBuffer(self, nbytes)

    def _allocate_pinned(self, nbytes: int) -> BindingsPinned:
        return BindingsPinned(self, nbytes)

    def copy_in(self, target: int, source: NDArray[np.uint8], stream: Stream) -> None:
        """Enqueue."""
        call(cu.cuMemcpyHtoDAsync, target, source.ctypes.data, source.nbytes, stream.handle)

    def copy_out(self, target: NDArray[np.uint8], source: int, stream: Stream) -> None:
        """Enqueue."""
        call(cu.cuMemcpyDtoHAsync, target.ctypes.data, source, target.nbytes, stream.handle)

    def copy_rows_out(self, target: NDArray[np.uint8], source: int, pitch: int, stream: Stream) -> None:
        """Enqueue."""
        rows, nbytes = target.shape
        copy = cu.CUDA_MEMCPY2D()
        copy.srcMemoryType = cu.CUmemorytype.CU_MEMORYTYPE_DEVICE
        copy.srcDevice, copy.srcPitch = source, pitch
        copy.dstMemoryType = cu.CUmemorytype.CU_MEMORYTYPE_HOST
        copy.dstHost, copy.dstPitch = target.ctypes.data, nbytes
        copy.WidthInBytes, copy.Height = nbytes, rows
        call(cu.cuMemcpy2DAsync, copy, stream.handle)

    def close(self) -> None:
        """Free everything, and let the context go."""
        if self._closed:
            return
        self._closed = True
        with ExitStack() as last_first:
            last_first.callback(call, cu.cuDevicePrimaryCtxRelease, self._device)
            last_first.callback(call, cu.cuCtxPopCurrent)
            self._free_all(last_first)

    def _describe(self) -> Gpu:
        kinds = cu.CUdevice_attribute
        parts = (
            kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        )
        major, minor = (int(call(cu.cuDeviceGetAttribute, part, self._device)) for part in parts)
        name = call(cu.cuDeviceGetName, 128, self._device).split(b"\0")[0].decode()
        version, uuid = int(call(cu.cuDriverGetVersion)), bytes(call(cu.cuDeviceGetUuid, self._device).bytes).hex()
        memory = int(call(cu.cuDeviceTotalMem, self._device))
        return Gpu(name, (major, minor), memory, f"{version // 1000}.{version % 1000 // 10}", f"GPU-{uuid}")
