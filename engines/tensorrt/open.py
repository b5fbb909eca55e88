"""Finds the plan of a model for the GPU at hand and loads it; knows where plans lie, builds none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from engines.building.settings import BuildSettings, fixed
from engines.card import ModelCard
from engines.contract import Device
from engines.cuda.driver import Driver
from engines.errors import EngineError
from engines.plan import PRECISION, Plan, built_plans, find_plan, how_to_build, target_of
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
        card: its card; where it leaves the size of its pictures free, the size is that of a plan which was built.
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
    trt, sha256, reasons = load(), fingerprint(path, card), list[str]()
    for sized in _sized(card):
        found = find_plan(sized, sha256, device.driver.gpu, trt.__version__, precision)
        if not isinstance(found, str):
            return TensorRtEngine(_as_built(sized, found), found.path, device.driver, trt=trt)
        reasons.append(found)
    raise EngineError(reasons[0], how_to_build(card.name))


def _sized(card: ModelCard) -> list[ModelCard]:
    """A card for each size that a plan was built for, where its pictures may have any; else the card."""
    target = target_of(card)
    if min(target.size) > 0:
        return [card]
    shapes = [plan.sidecar.shapes[target.name] for plan in built_plans(card.name)]
    sizes = [replace(target, shape=shape).size for shape in shapes]
    return [fixed(card, BuildSettings(size=size)) for size in sizes] or [fixed(card, BuildSettings())]


def _as_built(card: ModelCard, plan: Plan) -> ModelCard:
    """The card with the shapes of outputs that follow from the size."""
    shapes = plan.sidecar.shapes
    return replace(card, outputs=tuple(replace(spec, shape=shapes[spec.name]) for spec in card.outputs))
