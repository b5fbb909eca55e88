"""A plan that is loaded: its tensors, and contexts to run it in; makes one clear error of every refusal of TensorRT."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np

from engines.conform import Found
from engines.errors import EngineError
from engines.plan import how_to_build
from engines.tensorrt.api import ICudaEngine, IExecutionContext, Runtime, TensorRt, Words, listening


class Session:
    """One plan, loaded into the memory of the GPU whose context is current."""

    def __init__(self, trt: TensorRt, data: bytes, name: str) -> None:
        """Load a plan.

        Args:
            trt: the bindings.
            data: the plan, which this program built; it may hold code.
            name: of the model, for people.

        Raises:
            EngineError: TensorRT does not start, or refuses the plan; the message has its words.
        """
        self._trt, self._name, self._words = trt, name, Words()
        self._logger = listening(trt, self._words)  # outlives the rest, see ``close``
        self._runtime: Runtime | None = None
        self._engine: ICudaEngine | None = None
        with ExitStack() as on_failure:
            on_failure.callback(self.close)
            self._open(data)
            self.inputs, self.outputs = self._tensors(trt.TensorIOMode.INPUT), self._tensors(trt.TensorIOMode.OUTPUT)
            on_failure.pop_all()

    @property
    def scratch_bytes(self) -> int:
        """Memory that a context needs beside its tensors."""
        return self._loaded.device_memory_size_v2

    def context(self, scratch: int, scratch_bytes: int) -> IExecutionContext:
        """Make a context.

        Args:
            scratch: address of memory on the device, aligned to 256 bytes, that is the context's alone.
            scratch_bytes: at least ``scratch_bytes`` of this class.

        Raises:
            EngineError: TensorRT refuses.
        """
        self._words.clear()
        made = self._loaded.create_execution_context(self._trt.ExecutionContextAllocationStrategy.USER_MANAGED)
        if made is None:
            raise self.refusal("makes no context")
        made.set_device_memory(scratch, scratch_bytes)
        return made

    def demand(self, done: bool, what: str) -> None:
        """Raise ``EngineError`` where TensorRT did not do what it was asked: ``what``, e.g. "takes no address"."""
        if not done:
            raise self.refusal(what)

    def refusal(self, what: str) -> EngineError:
        """Say that TensorRT did not do something, in its own last words."""
        error = EngineError(f"TensorRT {what} for {self._name}: {self._words}", self._hint())
        self._words.clear()
        return error

    def close(self) -> None:
        """Let go of the plan, then of TensorRT: contexts must be gone before. Safe to call twice."""
        self._engine = None
        self._runtime = None

    def _open(self, data: bytes) -> None:
        self.demand(self._trt.init_libnvinfer_plugins(self._logger, ""), "does not load its plugins")
        try:
            self._runtime = self._trt.Runtime(self._logger)
        except (TypeError, RuntimeError) as error:  # what the bindings make of a library that gives none
            raise self.refusal("does not start") from error
        self._engine = self._runtime.deserialize_cuda_engine(data)
        if self._engine is None:
            raise self.refusal("refuses the plan")

    def _tensors(self, mode: object) -> Found:
        engine = self._loaded
        names = [engine.get_tensor_name(number) for number in range(engine.num_io_tensors)]
        return {
            name: (tuple(engine.get_tensor_shape(name)), self._dtype(name))
            for name in names
            if engine.get_tensor_mode(name) == mode
        }

    def _dtype(self, name: str) -> str:
        kind = self._loaded.get_tensor_dtype(name)
        try:
            return np.dtype(self._trt.nptype(kind)).name
        except TypeError:  # numpy has no such type
            return str(kind)

    @property
    def _loaded(self) -> ICudaEngine:
        if self._engine is None:
            raise EngineError(f"the engine of {self._name} is closed", "open it again")
        return self._engine

    def _hint(self) -> str:
        return f"build its plan anew on this machine: {how_to_build(self._name)}"
