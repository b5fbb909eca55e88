"""Finds the plan of a model for the GPU at hand and loads it; knows where plans lie, builds none."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from engines.card import ModelCard
from engines.contract import Device
from engines.cuda.driver import Driver
from engines.errors import EngineError
from engines.plan import PRECISION, find_plan, how_to_build
from engines.store import fingerprint
from engines.tensorrt.api import load
from engines.tensorrt.engine import TensorRtEngine
from engines.tensorrt.probe import probe

__all__ = ["open_planned", "probe"]


@runtime_checkable
class OnGpu(Protocol):
    """A device that has a driver to share."""

    @property
    def driver(self) -> Driver:
        """Of its GPU."""


def open_planned(
    card: ModelCard, path: Path, threads: int = 1, device: Device | None = None, precision: str = PRECISION
) -> TensorRtEngine:
    """Load the plan of a model.

    Args:
        card: its card, every axis of its inputs fixed.
        path: of its verified file, which the plan was built from.
        threads: means nothing to a GPU.
        device: of the run, on a GPU; its context is current in the calling thread.
        precision: see :class:`engines.plan.Sidecar`.

    Raises:
        EngineError: the device is on no GPU, there is no plan that will do, or it does not load.
        OutOfMemoryError: there is no room for it.
    """
    if not isinstance(device, OnGpu):
        raise EngineError(
            "TensorRT works in the memory of an NVIDIA GPU, and this run is on none", "choose device cuda"
        )
    trt = load()
    found = find_plan(card, fingerprint(path, card), device.driver.gpu, trt.__version__, precision)
    if isinstance(found, str):
        raise EngineError(found, how_to_build(card.name))
    return TensorRtEngine(card, found.path, device.driver, trt=trt)
