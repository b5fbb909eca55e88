"""The part of TensorRT that this program uses, name by name; the only place that imports it, and only when asked to.

TensorRT has no types that a checker could read, and drops names from one version to the next. So what is used stands
here, named as there: the checker holds the code to it, and a test holds it to the real bindings of every version that
is served, 10.13 to 11.4.
"""

from __future__ import annotations

import importlib
from collections import deque
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Protocol, cast

from engines.errors import EngineError

PACKAGES = ("tensorrt", "tensorrt_bindings")
"""Names under which the bindings may be installed. The first is a stub that loads the second, or the whole itself."""
INSTALL = "pip install tensorrt (it fetches NVIDIA's libraries, about 2 GB, from NVIDIA's own index)"
_WORDS = 6


class Logger(Protocol):
    """What is told of errors."""

    def log(self, severity: Any, msg: str) -> None:
        """Take a message; from any thread."""


class TensorIOMode(Protocol):
    """Which way a tensor goes."""

    INPUT: Any
    OUTPUT: Any


class ExecutionContextAllocationStrategy(Protocol):
    """Who gives a context its scratch memory."""

    USER_MANAGED: Any


class IExecutionContext(Protocol):
    """One run at a time of an engine; not for several threads at once."""

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        """Fix an input's shape."""

    def infer_shapes(self) -> Sequence[str]:
        """Work out the other shapes; names what is not known well enough."""

    def get_tensor_shape(self, name: str) -> Sequence[int]:
        """Tell a shape."""

    def set_tensor_address(self, name: str, memory: int) -> bool:
        """Say where a tensor lies."""

    def set_device_memory(self, memory: int, size: int) -> None:
        """Give it its scratch memory, aligned to 256 bytes."""

    def execute_async_v3(self, stream_handle: int) -> bool:
        """Enqueue a run."""


class ICudaEngine(Protocol):
    """A plan that was loaded."""

    @property
    def num_io_tensors(self) -> int:
        """Inputs and outputs together."""

    @property
    def device_memory_size_v2(self) -> int:
        """Scratch memory of a context in bytes."""

    def get_tensor_name(self, index: int) -> str:
        """Tell a name."""

    def get_tensor_mode(self, name: str) -> Any:
        """Tell which way it goes."""

    def get_tensor_dtype(self, name: str) -> Any:
        """Tell its type."""

    def get_tensor_shape(self, name: str) -> Sequence[int]:
        """Tell its shape, -1 where it is free."""

    def create_execution_context(self, strategy: Any) -> IExecutionContext | None:
        """Make a context."""


class Runtime(Protocol):
    """What loads plans."""

    def deserialize_cuda_engine(self, serialized_engine: bytes) -> ICudaEngine | None:
        """Load one; nothing where it cannot."""


class RuntimeClass(Protocol):
    """The class of :class:`Runtime`."""

    def __call__(self, logger: Logger) -> Runtime:
        """Make one; raises ``TypeError`` where the library gives none."""


class LoggerClass(Protocol):
    """The class of :class:`Logger`, to be derived from; its members are degrees of severity."""

    INTERNAL_ERROR: Any
    ERROR: Any
    WARNING: Any

    def __call__(self) -> Logger:
        """Make one."""


class TensorRt(Protocol):
    """The module."""

    __version__: str
    ILogger: LoggerClass
    Runtime: RuntimeClass
    TensorIOMode: TensorIOMode
    ExecutionContextAllocationStrategy: ExecutionContextAllocationStrategy

    def init_libnvinfer_plugins(self, logger: Logger, namespace: str) -> bool:
        """Make the plugins known that a plan may name."""

    def nptype(self, trt_type: Any) -> type:
        """Tell numpy's name of a type; raises ``TypeError`` where it has none."""


class Words:
    """The last that TensorRT said of anything going wrong. Written from any thread."""

    def __init__(self) -> None:
        self._said: deque[str] = deque(maxlen=_WORDS)

    def add(self, said: str) -> None:
        """Take a message."""
        self._said.append(said.strip())

    def clear(self) -> None:
        """Forget what was said: what comes next is about something else."""
        self._said.clear()

    def __str__(self) -> str:
        """Say it, for people."""
        return "; ".join(dict.fromkeys(self._said)) or "TensorRT gave no reason"


def installed() -> str | None:
    """Find the bindings without importing them.

    Returns:
        The name to import, None where they are not installed.
    """
    return next((name for name in PACKAGES if find_spec(name) is not None), None)


def load() -> TensorRt:
    """Import the bindings.

    Raises:
        EngineError: they are not installed, or do not load.
    """
    name = installed()
    if name is None:
        raise EngineError("package tensorrt is not installed", INSTALL)
    try:
        return cast(TensorRt, importlib.import_module(name))
    except (ImportError, OSError, RuntimeError) as error:  # RuntimeError: the stub package found no libraries
        raise EngineError(f"package {name} is installed but does not load: {error}", INSTALL) from error


def listening(trt: TensorRt, words: Words) -> Logger:
    """Make a logger.

    Args:
        trt: the bindings.
        words: that warnings and errors go to; everything else goes nowhere.

    Returns:
        The logger. TensorRT does not keep it alive: it must outlive what it is given to.
    """
    grave = (trt.ILogger.INTERNAL_ERROR, trt.ILogger.ERROR, trt.ILogger.WARNING)

    def log(_: Logger, severity: Any, msg: str) -> None:
        if severity in grave:
            words.add(msg)

    kind: LoggerClass = type("Logger", (cast(type, trt.ILogger),), {"log": log})  # type: ignore[assignment]  # its base is known only now
    return kind()
