"""A model folder with a small model, and processes that build plans without a GPU."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from engines.card import ModelCard, load_card
from engines.plan import Plan
from tests.own_models import write_card, write_onnx

FAKES = Path(__file__).resolve().parent / "fake"
REAL = (sys.executable, "-P", "-m", "tests.building.child")
"""The process itself; TensorRT and the driver are stood in for."""
HEADER_BYTES = 28


def small_model(folder: Path, name: str = "one", operator: str = "Relu") -> ModelCard:
    """Write a model of one operator into a model folder, and its card."""
    folder.mkdir(parents=True, exist_ok=True)
    write_card(folder, name, write_onnx(folder / f"{name}.onnx", operator=operator).read_bytes())
    return load_card(name)


def saying(*lines: str) -> tuple[str, ...]:
    """A process that does what it is told in Python; ``tell`` writes a message, ``asked`` is the request."""
    code = [
        "import json, os, signal, sys, time",
        "asked = json.loads(sys.stdin.readline())",
        "def tell(**message): print(json.dumps(message), flush=True)",
        *lines,
    ]
    return (sys.executable, "-S", "-c", "\n".join(code))


def asked_of_builder(plan: Plan) -> dict[str, Any]:
    """What the stand-in for TensorRT wrote into its plan."""
    found: dict[str, Any] = json.loads(plan.read()[HEADER_BYTES:])
    return found
