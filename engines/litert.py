"""Engine on LiteRT: serves TFLite models on the processor; knows the runtime, not what a model is for."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray

from engines.card import ModelCard
from engines.conform import CardEngine, Found, check_call, check_file, threads_text
from engines.contract import Availability
from engines.errors import EngineError

_NOTICE = b"INFO: Created TensorFlow Lite XNNPACK delegate for CPU."


def probe() -> Availability:
    """Say which LiteRT is installed.

    Returns:
        Always usable: importing this module has already loaded the runtime.
    """
    return Availability(True, f"LiteRT {version('ai-edge-litert')}")


class LiteRtEngine(CardEngine):
    """One TFLite model in a LiteRT interpreter with the XNNPACK kernels.

    Outputs are copied into buffers of this engine: LiteRT refuses to run while anyone holds a view of its own memory.
    It releases Python's interpreter lock while it computes, so other threads go on meanwhile.
    """

    def __init__(self, card: ModelCard, path: Path, threads: int = 1) -> None:
        """Load a model and allocate its buffers.

        Args:
            card: its card.
            path: its verified file.
            threads: that the kernels use, >= 1.

        Raises:
            EngineError: the runtime cannot read the file, or its tensors are not those of the card.
        """
        super().__init__(card, f"litert {version('ai-edge-litert')}, {threads_text(threads)}")
        try:
            interpreter = open_interpreter(path, threads)
        except (ValueError, RuntimeError) as error:
            raise EngineError(
                f"LiteRT cannot load {path}: {error}", "run `doppelcam models` to check the model files"
            ) from error
        self._interpreter: Interpreter | None = interpreter
        inputs = {d["name"]: d for d in interpreter.get_input_details()}
        outputs = {d["name"]: d for d in interpreter.get_output_details()}
        input_names, output_names = check_file(card, found(inputs.values()), found(outputs.values()))
        self._input_ids = tuple(inputs[name]["index"] for name in input_names)
        self._views = tuple(interpreter.tensor(outputs[name]["index"]) for name in output_names)
        self._results = tuple(np.empty(spec.shape, spec.dtype) for spec in card.outputs)

    def run(self, *tensors: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """See :class:`engines.contract.Engine`."""
        if self._interpreter is None:
            raise EngineError(f"the engine of {self._card.name} is closed", "open it again")
        check_call(self._card, tensors)
        try:
            for index, tensor in zip(self._input_ids, tensors, strict=True):
                self._interpreter.set_tensor(index, tensor)
            self._interpreter.invoke()
        except (ValueError, RuntimeError) as error:
            raise EngineError(f"LiteRT cannot run {self._card.name}: {error}", "report this as a bug") from error
        for result, view in zip(self._results, self._views, strict=True):
            np.copyto(result, view())
        return self._results

    def close(self) -> None:
        """See :class:`engines.contract.Engine`."""
        self._interpreter = None
        self._views = ()


def open_interpreter(path: Path, threads: int = 1) -> Interpreter:
    """Load a model and allocate its buffers, without the start notice of the runtime.

    Raises:
        ValueError: the runtime cannot read the file.
        RuntimeError: it cannot run the model.
    """
    with _without_notice():
        interpreter = Interpreter(model_path=str(path), num_threads=threads)
        interpreter.allocate_tensors()
    return interpreter


def found(details: Iterable[dict[str, Any]]) -> Found:
    """Describe tensors of an interpreter."""
    return {d["name"]: (tuple(int(n) for n in d["shape"]), np.dtype(d["dtype"]).name) for d in details}


@contextmanager
def _without_notice() -> Iterator[None]:
    """Hold back what the runtime writes to the error output, and pass on everything but its start notice.

    The notice ("Created TensorFlow Lite XNNPACK delegate") comes from C++ and has no switch: LiteRT 2.3 reads no
    environment variable for that logger, so the file descriptor is the only place to catch it.
    """
    with tempfile.TemporaryFile() as held:
        sys.stderr.flush()
        try:
            saved = os.dup(2)
        except OSError:  # a windowed program has no error output: nothing to keep clean
            yield
            return
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            held.seek(0)
            rest = b"".join(line for line in held if not line.startswith(_NOTICE))
            if rest:
                os.write(2, rest)
