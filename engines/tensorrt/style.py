"""Runs the small network that makes style inputs of an identity, on the processor; knows names, not what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnxruntime as ort
from numpy.typing import NDArray

from engines.errors import EngineError
from engines.onnxrt import ERRORS
from engines.plan import how_to_build


class Style:
    """The part of a swapper that does not depend on the frame; it takes a few milliseconds for each new identity."""

    def __init__(self, model: bytes, name: str) -> None:
        """Load it.

        Args:
            model: as ONNX.
            name: of the swapper, for people.

        Raises:
            EngineError: it cannot be loaded.
        """
        self._name = name
        settings = ort.SessionOptions()
        settings.intra_op_num_threads = settings.inter_op_num_threads = 1
        settings.log_severity_level = 4
        try:
            self._session = ort.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
        except ERRORS as error:
            raise EngineError(
                f"ONNX Runtime cannot load the style network of {name}: {error}", how_to_build(name)
            ) from error
        self._outputs = [node.name for node in self._session.get_outputs()]

    def __call__(self, given: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        """Work the style inputs out.

        Args:
            given: the inputs of the card other than its target, by name.

        Returns:
            The style inputs by name, the caller's own.

        Raises:
            EngineError: the runtime failed.
        """
        try:
            return dict(zip(self._outputs, self._session.run(self._outputs, dict(given)), strict=True))
        except ERRORS as error:
            raise EngineError(
                f"ONNX Runtime cannot run the style network of {self._name}: {error}", "report this as a bug"
            ) from error
