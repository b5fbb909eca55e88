"""A program: starts TensorRT, and prints one line of JSON that says how that went; may go down in doing so."""

from __future__ import annotations

import json
from dataclasses import asdict

from engines.contract import Availability
from engines.errors import EngineError
from engines.tensorrt.api import INSTALL, Words, listening, load


def start() -> Availability:
    """Start TensorRT and say its version, or why it does not start."""
    try:
        trt = load()
    except EngineError as error:
        return Availability(False, error.message, error.hint)
    words = Words()
    logger = listening(trt, words)
    try:
        trt.Runtime(logger)
    except (TypeError, RuntimeError):  # what the bindings make of a library that gives none
        return Availability(False, f"TensorRT {trt.__version__} does not start: {words}", INSTALL)
    return Availability(True, f"TensorRT {trt.__version__}")


if __name__ == "__main__":
    print(json.dumps(asdict(start())))
