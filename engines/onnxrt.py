"""Engine on ONNX Runtime: serves ONNX models on any execution provider; knows the runtime, not what a model is for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as _native

from engines import batch, providers
from engines.card import ModelCard
from engines.conform import MOST_SHAPES, CardEngine, Found, Shapes, check_call, check_file, check_result, threads_text
from engines.contract import Availability
from engines.errors import EngineError

_DTYPES = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(double)": "float64",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(uint8)": "uint8",
    "tensor(int8)": "int8",
    "tensor(bool)": "bool",
}
ERRORS: tuple[type[Exception], ...] = (
    ValueError,
    RuntimeError,
    *(value for value in vars(_native).values() if isinstance(value, type) and issubclass(value, Exception)),
)
"""What the runtime raises. Its own have no common ancestor but Exception, so they are collected from its core."""
_HINTS = (
    ("Protobuf parsing failed", "the file is damaged or no ONNX model: replace it with a good copy"),
    ("is not a registered function/op", "it needs operators that ONNX Runtime lacks: use an export without them"),
    (
        "fallback to CPU EP has been explicitly disabled",
        "if its driver and libraries are in order it lacks operators of this model: let the processor do those "
        "(allow_cpu), or all (provider cpu)",
    ),
)
"""What the runtime says when a model does not load, and what a person can do."""


def probe() -> Availability:
    """Say which ONNX Runtime is installed and what it can run on.

    Returns:
        Always usable: importing this module has already loaded the runtime.
    """
    return Availability(True, f"ONNX Runtime {ort.__version__} ({', '.join(ort.get_available_providers())})")


class OnnxRuntimeEngine(CardEngine):
    """One ONNX model in an ONNX Runtime session.

    The first run with inputs of some shape tells the shapes of the outputs; from then on the runtime writes straight
    into buffers of this engine, one set for each shape. So the shapes of the outputs must follow from those of the
    inputs.

    Threads do not spin while they wait: measured on SCRFD with two threads that costs 2 to 6 % of a run, and otherwise
    a pool burns a core, which camera and meeting need, for a while after each run. SCRFD at 640x640 took 19 / 12 ms
    (500M) and 89 / 45 ms (2.5G) with one / two threads on a 2-core server.
    """

    def __init__(
        self, card: ModelCard, path: Path, threads: int = 1, provider: str = "auto", allow_cpu: bool = False
    ) -> None:
        """Load a model.

        Args:
            card: its card. Where it wants more pictures in one run than the file declares, the declaration is changed
                in memory; see :mod:`engines.batch`.
            path: its verified file.
            threads: inside one operator, on the processor, >= 1. Operators always run one after the other: live
                models have no branches worth a second pool of threads.
            provider: in ``providers.PROVIDERS``, or "auto": the first that runs the model. Those that did not are
                named in ``runtime``, with the reason.
            allow_cpu: let operators that the provider cannot run go to the processor. Otherwise that is a reason to
                refuse it, because every such operator costs two copies a frame.

        Raises:
            EngineError: the provider is not there or does not run the whole model, the runtime cannot read the file,
                or its tensors are not those of the card.
        """
        session, runs_on = _open_first(card, path, threads, provider, allow_cpu)
        tensors = found(session.get_inputs()), found(session.get_outputs())
        if narrow := batch.declared_otherwise(card, *tensors):
            # A change of the file would be a change of the hash, so it stays in memory.
            session, runs_on = _open_first(card, batch.widened(path, card, narrow), threads, provider, allow_cpu)
            tensors = found(session.get_inputs()), found(session.get_outputs())
        self._input_names, self._output_names = check_file(card, *tensors)
        super().__init__(card, f"onnxrt {ort.__version__}, {runs_on}")
        self._session: ort.InferenceSession | None = session
        self._bound: dict[Shapes, tuple[Any, tuple[NDArray[Any], ...]]] = {}

    def run(self, *tensors: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """See :class:`engines.contract.Engine`."""
        if self._session is None:
            raise EngineError(f"the engine of {self._card.name} is closed", "open it again")
        check_call(self._card, tensors)
        shapes = tuple(tensor.shape for tensor in tensors)
        try:
            if shapes not in self._bound:
                return self._bind(self._session, shapes, tensors)
            binding, results = self._bound[shapes]
            for name, tensor in zip(self._input_names, tensors, strict=True):
                binding.bind_input(name, "cpu", 0, tensor.dtype, tensor.shape, tensor.ctypes.data)
            self._session.run_with_iobinding(binding)
        except ERRORS as error:
            raise EngineError(f"ONNX Runtime cannot run {self._card.name}: {error}", "report this as a bug") from error
        return results

    def close(self) -> None:
        """See :class:`engines.contract.Engine`."""
        self._session = None
        self._bound.clear()

    def _bind(
        self, session: ort.InferenceSession, shapes: Shapes, tensors: Sequence[NDArray[Any]]
    ) -> tuple[NDArray[Any], ...]:
        """Run once, and keep what came out as the buffers of the runs to come with inputs of these shapes."""
        results = session.run(self._output_names, dict(zip(self._input_names, tensors, strict=True)))
        for spec, result in zip(self._card.outputs, results, strict=True):
            check_result(self._card, spec, result.shape)
        if len(self._bound) == MOST_SHAPES:
            self._bound.clear()
        kept = tuple(np.array(result, order="C") for result in results)
        binding = session.io_binding()
        for name, result in zip(self._output_names, kept, strict=True):
            binding.bind_output(name, "cpu", 0, result.dtype, result.shape, result.ctypes.data)
        self._bound[shapes] = binding, kept
        return kept


def _open_first(
    card: ModelCard, model: Path | bytes, threads: int, provider: str, allow_cpu: bool
) -> tuple[ort.InferenceSession, str]:
    """Open a session on the first provider that runs the model, and say in words what runs and what did not."""
    *others, last = providers.to_try(provider, ort.get_available_providers())
    refused: list[str] = []
    for short in others:
        try:
            session = _open(card, model, threads, short, allow_cpu)
            return session, _told(session, threads, refused)
        except EngineError as error:
            refused.append(f"not on {short}: {error.message.removeprefix(f'{short} cannot be used: ')}")
    session = _open(card, model, threads, last, allow_cpu)
    return session, _told(session, threads, refused)


def _open(card: ModelCard, model: Path | bytes, threads: int, short: str, allow_cpu: bool) -> ort.InferenceSession:
    """Make a session that runs on the provider alone, or on it and the processor where that is allowed."""
    provider = providers.PROVIDERS[short]
    providers.demand_usable(short)
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.inter_op_num_threads = 1
    settings.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    settings.enable_mem_pattern = provider.memory_pattern
    settings.log_severity_level = 4  # its errors become ours; printing them as well helps nobody
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    wanted: list[tuple[str, dict[str, str]]] = [(provider.name, dict(provider.options))]
    if provider.name != providers.CPU and allow_cpu:
        wanted.append((providers.CPU, {}))
    elif provider.name != providers.CPU:
        settings.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    try:
        session = ort.InferenceSession(model if isinstance(model, bytes) else str(model), settings, providers=wanted)
    except ERRORS as error:
        hints = [hint for said, hint in _HINTS if said in str(error)]
        raise EngineError(
            f"ONNX Runtime cannot load {card.name} on {short}: {error}",
            hints[0] if hints else "check the file with `doppelcam models verify`, or choose another provider",
        ) from error
    really = session.get_providers()[0]
    if really != provider.name:
        raise EngineError(
            f"{short} does not start: ONNX Runtime would run {card.name} on {really}",
            f"check the driver of the device and its libraries, or choose provider cpu ({provider.install})",
        )
    return session


def _told(session: ort.InferenceSession, threads: int, refused: Sequence[str]) -> str:
    """Say what a session really runs on, and what was tried before."""
    really = session.get_providers()
    words = [" then ".join(really)]
    # Where nodes went is told from ONNX Runtime 1.24 on.
    if len(really) > 1 and hasattr(session, "get_provider_graph_assignment_info"):
        parts = session.get_provider_graph_assignment_info()
        counts = [sum(len(part.get_nodes()) for part in parts if part.ep_name == name) for name in really]
        words = [" then ".join(f"{name} ({count} nodes)" for name, count in zip(really, counts, strict=True))]
    if providers.CPU in really:
        words.append(threads_text(threads))
    return ", ".join([*words, *refused])


def found(nodes: Sequence[Any]) -> Found:
    """Describe tensors of a session; an axis with a name or without a size is a free one."""
    return {
        node.name: (tuple(n if isinstance(n, int) else -1 for n in node.shape), _DTYPES.get(node.type, node.type))
        for node in nodes
    }
