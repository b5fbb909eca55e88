"""Table of what ONNX Runtime can run on, best first, and how to get it; knows names and options, opens no network.

What a build of ONNX Runtime offers is not yet what this machine has: a provider may still fail to start, so a choice is
a list of what to try, and whoever tries keeps the reasons of what did not work.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from engines.contract import Availability
from engines.errors import EngineError


class Provider(NamedTuple):
    """One line of the table.

    Attributes:
        name: ONNX Runtime's own, e.g. "CUDAExecutionProvider".
        install: how to get a build that has it.
        auto: whether it is tried unasked. Not where it may compute in a lower precision than the model states.
        memory_pattern: whether it can plan the memory of a run ahead.
        options: of the provider.
        prepare: ``"module:function"`` that makes ready for it, never goes down, and says whether it can be used; empty
            where it can simply be tried.
    """

    name: str
    install: str
    auto: bool = True
    memory_pattern: bool = True
    options: Mapping[str, str] = MappingProxyType({})
    prepare: str = ""


CPU = "CPUExecutionProvider"

PROVIDERS: dict[str, Provider] = {
    # Trying every convolution out takes minutes at the start for a few per cent in each run.
    "cuda": Provider(
        "CUDAExecutionProvider",
        # Both lie in one folder: the last that was installed wins, and where one goes so do files of the other.
        "pip uninstall -y onnxruntime onnxruntime-gpu, then pip install 'onnxruntime-gpu[cuda,cudnn]'",
        options={"cudnn_conv_algo_search": "HEURISTIC"},
        prepare="engines.cuda.provider:prepare",
    ),
    "coreml": Provider(
        "CoreMLExecutionProvider", "pip install onnxruntime (on macOS)", options={"ModelFormat": "MLProgram"}
    ),
    "directml": Provider("DmlExecutionProvider", "pip install onnxruntime-directml (on Windows)", memory_pattern=False),
    "openvino": Provider(
        "OpenVINOExecutionProvider", "pip install onnxruntime-openvino", auto=False, options={"device_type": "CPU"}
    ),
    "cpu": Provider(CPU, "pip install onnxruntime"),
}
"""Short name, as settings have it -> provider; best first."""


def to_try(name: str, available: Collection[str]) -> tuple[str, ...]:
    """Say which providers to try, in order.

    Args:
        name: in ``PROVIDERS``, or "auto".
        available: that this build of ONNX Runtime offers, by its own names.

    Returns:
        Short names; the one asked for, or for "auto" every one that is offered and needs no asking, best first.

    Raises:
        EngineError: there is no such provider, or this build does not offer it.
    """
    offered = [short for short, provider in PROVIDERS.items() if provider.name in available]
    if name == "auto":
        return tuple(short for short in offered if PROVIDERS[short].auto)
    if name not in PROVIDERS:
        raise EngineError(f"there is no provider {name!r}", f"use one of: auto, {', '.join(PROVIDERS)}")
    if name not in offered:
        raise EngineError(
            f"this ONNX Runtime has no provider {name!r}, only {', '.join(offered)}",
            f"{PROVIDERS[name].install}, or choose provider {' or '.join(offered)}",
        )
    return (name,)


def demand_usable(short: str) -> None:
    """Make ready for a provider that is offered.

    Raises:
        EngineError: it cannot be used here.
    """
    module, _, function = PROVIDERS[short].prepare.partition(":")
    if not module:
        return
    found: Availability = getattr(importlib.import_module(module), function)()
    if not found.ok:
        raise EngineError(f"{short} cannot be used: {found.reason}", f"{found.hint}; or choose provider cpu")
