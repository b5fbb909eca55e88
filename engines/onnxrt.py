"""Engine on ONNX Runtime: serves ONNX models on any execution provider; knows the runtime, not what a model is for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as _native

from engines.card import ModelCard
from engines.conform import CardEngine, check_call, check_file, threads_text
from engines.contract import Availability
from engines.errors import EngineError

CPU = "CPUExecutionProvider"
_DTYPES = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(double)": "float64"}
# The runtime's own errors have no common ancestor but Exception, so they are collected by name from its core.
_ERRORS: tuple[type[Exception], ...] = (
    ValueError,
    RuntimeError,
    *(value for value in vars(_native).values() if isinstance(value, type) and issubclass(value, Exception)),
)


def probe() -> Availability:
    """Say which ONNX Runtime is installed and what it can run on.

    Returns:
        Always usable: importing this module has already loaded the runtime.
    """
    return Availability(True, f"ONNX Runtime {ort.__version__} ({', '.join(ort.get_available_providers())})")


class OnnxRuntimeEngine(CardEngine):
    """One ONNX model in an ONNX Runtime session.

    Where the card fixes every output's shape the runtime writes straight into this engine's buffers; outputs with a
    free axis are allocated by the runtime in each run.
    """

    def __init__(
        self,
        card: ModelCard,
        path: Path,
        threads: int = 1,
        provider: str = CPU,
        options: Mapping[str, str] | None = None,
        allow_cpu: bool = False,
    ) -> None:
        """Load a model.

        Args:
            card: its card.
            path: its verified file.
            threads: inside one operator, on the processor, >= 1. Operators always run one after the other: live
                models have no branches worth a second pool of threads.
            provider: the execution provider, by ONNX Runtime's name.
            options: of that provider.
            allow_cpu: let operators that the provider cannot run go to the processor. Otherwise that is an error,
                because every such operator costs two copies a frame.

        Raises:
            EngineError: the provider is not there or does not run the whole model, the runtime cannot read the file,
                or its tensors are not those of the card.
        """
        if provider not in ort.get_available_providers():
            raise EngineError(
                f"ONNX Runtime has no {provider} here, only {', '.join(ort.get_available_providers())}",
                "install the onnxruntime build for that device, or choose another provider",
            )
        self._session: ort.InferenceSession | None = _open(
            card, path, threads, provider, dict(options or {}), allow_cpu
        )
        really = self._session.get_providers()
        if really[0] != provider:
            raise EngineError(f"ONNX Runtime runs {card.name} on {really[0]}, not on {provider}", "check its driver")
        found = _found(self._session.get_inputs()), _found(self._session.get_outputs())
        self._input_names, self._output_names = check_file(card, *found)
        on_cpu = f", {threads_text(threads)}" if CPU in really else ""
        super().__init__(card, f"onnxrt {ort.__version__}, {' then '.join(really)}{on_cpu}")
        self._results: tuple[NDArray[Any], ...] = ()
        if all(n > 0 for spec in card.outputs for n in spec.shape):
            self._results = tuple(np.empty(spec.shape, spec.dtype) for spec in card.outputs)
        self._binding = self._session.io_binding()
        for name, result in zip(self._output_names, self._results, strict=False):
            self._binding.bind_output(name, "cpu", 0, result.dtype, result.shape, result.ctypes.data)

    def run(self, *tensors: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """See :class:`engines.contract.Engine`."""
        if self._session is None:
            raise EngineError(f"the engine of {self._card.name} is closed", "open it again")
        check_call(self._card, tensors)
        try:
            if not self._results:
                return tuple(self._session.run(self._output_names, dict(zip(self._input_names, tensors, strict=True))))
            for name, tensor in zip(self._input_names, tensors, strict=True):
                self._binding.bind_input(name, "cpu", 0, tensor.dtype, tensor.shape, tensor.ctypes.data)
            self._session.run_with_iobinding(self._binding)
        except _ERRORS as error:
            raise EngineError(f"ONNX Runtime cannot run {self._card.name}: {error}", "report this as a bug") from error
        return self._results

    def close(self) -> None:
        """See :class:`engines.contract.Engine`."""
        self._session = None


def _open(
    card: ModelCard, path: Path, threads: int, provider: str, options: dict[str, str], allow_cpu: bool
) -> ort.InferenceSession:
    """Make a session that runs on the provider alone, or on it and the processor where that is allowed."""
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.inter_op_num_threads = 1
    settings.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    settings.log_severity_level = 4  # its errors become ours; printing them as well helps nobody
    providers: list[tuple[str, dict[str, str]]] = [(provider, options)]
    if provider != CPU and allow_cpu:
        providers.append((CPU, {}))
    elif provider != CPU:
        settings.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    try:
        return ort.InferenceSession(str(path), settings, providers=providers)
    except _ERRORS as error:
        raise EngineError(
            f"ONNX Runtime cannot load {card.name} ({path}) on {provider}: {error}",
            "check the file with `doppelcam models`, or choose another provider",
        ) from error


def _found(nodes: Sequence[Any]) -> dict[str, tuple[tuple[int, ...], str]]:
    """Describe the session's tensors as :data:`engines.conform.Found`; a named or unknown axis is a free one."""
    return {
        node.name: (tuple(n if isinstance(n, int) else -1 for n in node.shape), _DTYPES.get(node.type, node.type))
        for node in nodes
    }
