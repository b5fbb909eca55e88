"""A module that behaves like TensorRT as far as engines use it: a plan is a header and an ONNX file, run on the host.

What it offers is named as in the real bindings, which ``test_trt_api.py`` makes sure of. It is as unhelpful as the real
one: what fails returns ``False`` or ``None``, and the reason goes to the logger. Objects do not keep each other alive.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

VERSION = "11.4.0.106"
HEADER_BYTES = 32
POISON = 0xCD
_KINDS = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64}

Profile = Mapping[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]
NO_PROFILE: Profile = {}

Enqueue = Callable[[int, Callable[[], None]], None]
"""Handle of a stream, and work for it."""


def plan_of(model: bytes, version: str = VERSION) -> bytes:
    """A plan that runs an ONNX file."""
    header = bytearray(HEADER_BYTES)
    header[:4] = b"ftrt"
    header[24:28] = bytes(int(part) for part in version.split("."))
    return bytes(header) + model


class Severity(Enum):
    INTERNAL_ERROR = 0
    ERROR = 1
    WARNING = 2
    INFO = 3


class ILogger:
    INTERNAL_ERROR, ERROR, WARNING, INFO = Severity

    def log(self, severity: Severity, msg: str) -> None:
        raise NotImplementedError


_Logger = ILogger  # where a class of this module has a member of that name


class TensorIOMode(Enum):
    NONE = 0
    INPUT = 1
    OUTPUT = 2


class ExecutionContextAllocationStrategy(Enum):
    STATIC = 0
    USER_MANAGED = 2


class FakeTensorRt:
    """The module, one for each test.

    Args:
        enqueue: gives work to a stream.
        faults: what goes wrong: names of what fails, see where each is asked for.
        version: of the library.
        scratch_bytes: that a context needs; each run overwrites them.
        profile: between which shapes an input of free size may be, as the plan was built.

    Attributes:
        ended: what has been destroyed, in order.
        runs: that were started.
    """

    ILogger = ILogger
    TensorIOMode = TensorIOMode
    ExecutionContextAllocationStrategy = ExecutionContextAllocationStrategy

    def __init__(
        self,
        enqueue: Enqueue,
        *faults: str,
        version: str = VERSION,
        scratch_bytes: int = 512,
        profile: Profile = NO_PROFILE,
    ) -> None:
        self.__version__ = version
        self.profile = profile
        self.enqueue, self.faults, self.scratch_bytes = enqueue, set(faults), scratch_bytes
        self.ended: list[str] = []
        self.runs = 0

    def init_libnvinfer_plugins(self, logger: _Logger, namespace: str) -> bool:
        assert namespace == ""
        return not self.fails("plugins", logger)

    def nptype(self, trt_type: Any) -> type:
        if "dtype" in self.faults:
            raise TypeError("Could not resolve TensorRT datatype to an equivalent numpy datatype.")
        return trt_type

    def Runtime(self, logger: _Logger) -> Runtime:
        if self.fails("runtime", logger):
            raise TypeError("pybind11::init(): factory function returned nullptr")
        return Runtime(self, logger)

    def fails(self, what: str, logger: _Logger) -> bool:
        """Whether something is to fail; the logger is told as the real one is."""
        logger.log(ILogger.INFO, f"about to do {what}")
        if what not in self.faults:
            return False
        logger.log(ILogger.ERROR, f"Error Code 3: API Usage Error ({what} failed)")
        return True


class Runtime:
    def __init__(self, trt: FakeTensorRt, logger: ILogger) -> None:
        self._trt, self._logger = trt, logger

    def __del__(self) -> None:
        self._trt.ended.append("runtime")

    def deserialize_cuda_engine(self, serialized_engine: bytes) -> ICudaEngine | None:
        built = ".".join(map(str, serialized_engine[24:28]))
        if built != self._trt.__version__:
            self._logger.log(
                ILogger.ERROR, f"The engine plan file is not compatible with this version of TensorRT, built by {built}"
            )
            return None
        if self._trt.fails("deserialize", self._logger):
            return None
        return ICudaEngine(self._trt, self._logger, serialized_engine[HEADER_BYTES:])


class ICudaEngine:
    def __init__(self, trt: FakeTensorRt, logger: ILogger, model: bytes) -> None:
        self._trt, self._logger = trt, logger
        self._session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
        self._inputs = {node.name: node for node in self._session.get_inputs()}
        self._nodes = self._inputs | {node.name: node for node in self._session.get_outputs()}

    def __del__(self) -> None:
        self._trt.ended.append("engine")

    @property
    def num_io_tensors(self) -> int:
        return len(self._nodes)

    @property
    def device_memory_size_v2(self) -> int:
        return self._trt.scratch_bytes

    def get_tensor_name(self, index: int) -> str:
        return list(self._nodes)[index]

    def get_tensor_mode(self, name: str) -> TensorIOMode:
        return TensorIOMode.INPUT if name in self._inputs else TensorIOMode.OUTPUT

    def get_tensor_dtype(self, name: str) -> type:
        return _KINDS[self._nodes[name].type]

    def get_tensor_shape(self, name: str) -> Sequence[int]:
        return [n if isinstance(n, int) else -1 for n in self._nodes[name].shape]

    def create_execution_context(self, strategy: ExecutionContextAllocationStrategy) -> IExecutionContext | None:
        assert strategy is ExecutionContextAllocationStrategy.USER_MANAGED
        return None if self._trt.fails("context", self._logger) else IExecutionContext(self._trt, self._logger, self)


class IExecutionContext:
    def __init__(self, trt: FakeTensorRt, logger: ILogger, engine: ICudaEngine) -> None:
        self._trt, self._logger = trt, logger
        self._session = engine._session
        self._planned = {name: tuple(engine.get_tensor_shape(name)) for name in engine._nodes}
        self._shapes = dict(self._planned)
        self._kinds = {name: engine.get_tensor_dtype(name) for name in engine._nodes}
        self._inputs = list(engine._inputs)
        self._given: set[str] = set()
        self._addresses: dict[str, int] = {}
        self._scratch: tuple[int, int] | None = None

    def __del__(self) -> None:
        self._trt.ended.append("context")

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        if self._trt.fails("shape", self._logger) or name not in self._inputs:
            return False
        planned = self._planned[name]
        least, _, most = self._trt.profile[name] if -1 in planned else (planned,) * 3
        if len(shape) != len(least) or not all(a <= n <= b for a, n, b in zip(least, shape, most, strict=True)):
            self._logger.log(ILogger.ERROR, f"Static dimension or profile mismatch of {name}: {shape}")
            return False
        self._shapes[name] = shape
        self._given.add(name)
        return True

    def infer_shapes(self) -> list[str]:
        if self._trt.fails("inference", self._logger):
            raise RuntimeError("Shape inference failed")
        if "unknown shape" in self._trt.faults:
            return ["unknown"]
        if missing := sorted(set(self._inputs) - self._given):
            return missing
        if any(-1 in shape for shape in self._shapes.values()) and "free output" not in self._trt.faults:
            zeros: dict[str, NDArray[Any]] = {
                name: np.zeros(self._shapes[name], self._kinds[name]) for name in self._inputs
            }
            names = [name for name in self._shapes if name not in self._inputs]
            self._shapes |= {n: v.shape for n, v in zip(names, self._session.run(names, zeros), strict=True)}
        return []

    def get_tensor_shape(self, name: str) -> Sequence[int]:
        return (1, 1) if "other shape" in self._trt.faults else self._shapes[name]

    def set_tensor_address(self, name: str, memory: int) -> bool:
        if self._trt.fails(f"address of {name}", self._logger) or name not in self._shapes:
            return False
        self._addresses[name] = memory
        return True

    def set_device_memory(self, memory: int, size: int) -> None:
        self._scratch = (memory, size)

    def execute_async_v3(self, stream_handle: int) -> bool:
        assert stream_handle, "the null stream"
        if self._trt.fails("run", self._logger):
            return False
        if lacking := self._shapes.keys() - self._addresses.keys():
            self._logger.log(ILogger.ERROR, f"no address is set for {', '.join(lacking)}")
            return False
        if self._scratch is None or self._scratch[1] < self._trt.scratch_bytes:
            self._logger.log(ILogger.ERROR, "device memory is not set")
            return False
        self._trt.runs += 1
        self._trt.enqueue(stream_handle, partial(_run, weakref.ref(self)))
        return True

    def _run(self) -> None:
        """What the GPU does."""
        assert self._scratch
        ctypes.memset(self._scratch[0], POISON, self._scratch[1])
        names = [name for name in self._shapes if name not in self._inputs]
        made = self._session.run(names, {name: self._view(name).copy() for name in self._inputs})
        for name, value in zip(names, made, strict=True):
            self._view(name)[...] = value

    def _view(self, name: str) -> NDArray[Any]:
        kind, shape = np.dtype(self._kinds[name]), self._shapes[name]
        memory = (ctypes.c_uint8 * (int(np.prod(shape)) * kind.itemsize)).from_address(self._addresses[name])
        return np.ctypeslib.as_array(memory).view(kind).reshape(shape)


def _run(context: weakref.ref[IExecutionContext]) -> None:
    alive = context()
    assert alive is not None, "a context was destroyed while it ran"
    alive._run()
