"""Engine on OpenVINO: serves TFLite and ONNX models on Intel hardware; knows the runtime, not what a model is for.

Optional: installed with the extra ``openvino``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from numpy.typing import NDArray

from engines.card import ModelCard
from engines.conform import CardEngine, Found, check_call, check_file, threads_text
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
    embedded mesh by up to two thirds of a crop pixel (0.0001 in float32). Needs a card that fixes every shape.
    """

    def __init__(self, card: ModelCard, path: Path, threads: int = 1) -> None:
        """Load and compile a model.

        Args:
            card: its card.
            path: its verified file.
            threads: that the kernels use, >= 1.

        Raises:
            EngineError: the runtime cannot read the file, or its tensors are not those of the card.
        """
        super().__init__(card, f"openvino {_VERSION}, CPU, {threads_text(threads)}")
        settings = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": threads,
        }
        try:
            compiled = ov.Core().compile_model(str(path), "CPU", settings)
            self._input_names, output_names = check_file(card, _found(compiled.inputs), _found(compiled.outputs))
            self._request: ov.InferRequest | None = compiled.create_infer_request()
            self._results = tuple(np.empty(spec.shape, spec.dtype) for spec in card.outputs)
            for name, result in zip(output_names, self._results, strict=True):
                self._request.set_tensor(name, ov.Tensor(result, shared_memory=True))
        except RuntimeError as error:
            raise EngineError(
                f"OpenVINO cannot load {path}: {error}", "run `doppelcam models` to check the model files"
            ) from error

    def run(self, *tensors: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """See :class:`engines.contract.Engine`."""
        if self._request is None:
            raise EngineError(f"the engine of {self._card.name} is closed", "open it again")
        check_call(self._card, tensors)
        try:
            for name, tensor in zip(self._input_names, tensors, strict=True):
                self._request.set_tensor(name, ov.Tensor(tensor, shared_memory=True))
            self._request.infer()
        except RuntimeError as error:
            raise EngineError(f"OpenVINO cannot run {self._card.name}: {error}", "report this as a bug") from error
        return self._results

    def close(self) -> None:
        """See :class:`engines.contract.Engine`."""
        self._request = None


def _found(ports: list[Any]) -> Found:
    """Describe the ports of a compiled model; every name of a port counts."""
    return {
        name: (
            tuple(n.get_length() if n.is_static else -1 for n in port.partial_shape),
            np.dtype(port.element_type.to_dtype()).name,
        )
        for port in ports
        for name in port.names
    }
