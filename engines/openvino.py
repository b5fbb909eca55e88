"""Engine on OpenVINO: serves TFLite and ONNX models on Intel hardware; knows the runtime, not what a model is for.

Optional: installed with the extra ``openvino``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from numpy.typing import NDArray

from engines import batch
from engines.card import ModelCard
from engines.conform import MOST_SHAPES, CardEngine, Found, Shapes, check_call, check_file, check_result, threads_text
from engines.contract import Availability
from engines.errors import EngineError

_VERSION = ov.__version__.partition("-")[0]


def probe() -> Availability:
    """Say which OpenVINO is installed.

    Returns:
        Always usable: importing this module has already loaded the runtime.
    """
    return Availability(True, f"OpenVINO {_VERSION}")


class OpenVinoEngine(CardEngine):
    """One model in an OpenVINO infer request on the processor.

    Computes in float32: left to itself it takes bfloat16 where the processor has that, which moves the points of the
    embedded mesh by up to two thirds of a crop pixel (0.0001 in float32).

    It is compiled for the shapes that it gets: when it is opened where the card fixes them, else by the first run with
    inputs of some shape, which takes a few tenths of a second. SCRFD at 640x640 took 20 / 10 ms (500M) and 74 / 40 ms
    (2.5G) with one / two threads on a 2-core AMD server, a tenth less than ONNX Runtime; on an Intel server with AMX
    the 500M took 9 / 6 ms, nearly half.
    """

    def __init__(self, card: ModelCard, path: Path, threads: int = 1) -> None:
        """Load a model, and compile it where the card fixes every input.

        Args:
            card: its card; it may want more pictures in one run than the file declares.
            path: its verified file.
            threads: that the kernels use, >= 1.

        Raises:
            EngineError: the runtime cannot read the file, or its tensors are not those of the card.
        """
        super().__init__(card, f"openvino {_VERSION}, CPU, {threads_text(threads)}")
        self._settings = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": threads,
        }
        self._core = ov.Core()
        self._compiled: dict[Shapes, tuple[ov.InferRequest, tuple[NDArray[Any], ...]]] = {}
        try:
            self._model: ov.Model | None = self._core.read_model(str(path))
            found = _found(self._model.inputs), _found(self._model.outputs)
            asked = batch.with_batch(card, -1) if batch.declared_otherwise(card, *found) else card
            self._input_names, self._output_names = check_file(asked, *found)
            shapes = tuple(spec.shape for spec in card.inputs)
            if all(n > 0 for shape in shapes for n in shape):
                self._compile(self._model, shapes)
        except RuntimeError as error:
            raise EngineError(
                f"OpenVINO cannot load {card.name} ({path}): {error}",
                "check the file with `doppelcam models verify`, or choose another runtime",
            ) from error

    def run(self, *tensors: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """See :class:`engines.contract.Engine`."""
        if self._model is None:
            raise EngineError(f"the engine of {self._card.name} is closed", "open it again")
        check_call(self._card, tensors)
        shapes = tuple(tensor.shape for tensor in tensors)
        try:
            if shapes not in self._compiled:
                self._compile(self._model, shapes)
            request, results = self._compiled[shapes]
            # OpenVINO shares only what may be written, so that what may not is copied.
            shared = [tensor if tensor.flags.writeable else tensor.copy() for tensor in tensors]
            for name, tensor in zip(self._input_names, shared, strict=True):
                request.set_tensor(name, ov.Tensor(tensor, shared_memory=True))
            request.infer()
        except RuntimeError as error:
            raise EngineError(f"OpenVINO cannot run {self._card.name}: {error}", "report this as a bug") from error
        return results

    def close(self) -> None:
        """See :class:`engines.contract.Engine`."""
        self._model = None
        self._compiled.clear()

    def _compile(self, model: ov.Model, shapes: Shapes) -> None:
        """Compile the model for inputs of these shapes, and bind its outputs to buffers."""
        if any(
            list(model.input(name).partial_shape) != list(shape)
            for name, shape in zip(self._input_names, shapes, strict=True)
        ):
            model.reshape(dict(zip(self._input_names, map(list, shapes), strict=True)))
        request = self._core.compile_model(model, "CPU", self._settings).create_infer_request()
        results = self._buffers(request)
        for name, result in zip(self._output_names, results, strict=True):
            request.set_tensor(name, ov.Tensor(result, shared_memory=True))
        if len(self._compiled) == MOST_SHAPES:
            self._compiled.clear()
        self._compiled[shapes] = request, results

    def _buffers(self, request: ov.InferRequest) -> tuple[NDArray[Any], ...]:
        """Make one array for each output of a compiled model."""
        made = []
        for spec, name in zip(self._card.outputs, self._output_names, strict=True):
            shape = tuple(request.get_tensor(name).shape)
            check_result(self._card, spec, shape)
            made.append(np.empty(shape, spec.dtype))
        return tuple(made)


def _found(ports: Sequence[Any]) -> Found:
    """Describe the ports of a model; every name of a port counts."""
    return {
        name: (
            tuple(n.get_length() if n.is_static else -1 for n in port.partial_shape),
            np.dtype(port.element_type.to_dtype()).name,
        )
        for port in ports
        for name in port.names
    }
