"""Finds the plan of a model for the GPU at hand and loads it; knows where plans lie, builds none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from engines.building.settings import BuildSettings, fixed
from engines.card import ModelCard
from engines.conform import fits
from engines.contract import Device
from engines.cuda.driver import Driver
from engines.errors import EngineError
from engines.plan import PRECISION, built_plans, find_plan, how_to_build, target_of
from engines.sizes import is_free, served, with_size
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
    card: ModelCard,
    path: Path,
    threads: int = 1,
    device: Device | None = None,
    precision: str = PRECISION,
    size: tuple[int, int] | None = None,
) -> TensorRtEngine:
    """Load the plan of a model.

    Args:
        card: its card; the size of its pictures may be free.
        path: of its verified file, which the plan was built from.
        threads: means nothing to a GPU.
        device: of the run, on a GPU; its context is current in the calling thread.
        precision: see :class:`engines.sidecar.Sidecar`.
        size: width and height in pixels that the pictures shall have, where the card leaves that free. A plan for just
            this size is taken first, then one of several sizes, set to this one, then one for another size.

    Raises:
        EngineError: the device is on no GPU, there is no plan that will do, or it does not load.
        OutOfMemoryError: there is no room for it.
    """
    if not isinstance(device, OnGpu):
        raise EngineError(
            "TensorRT works in the memory of an NVIDIA GPU, and this run is on none", "choose device cuda"
        )
    trt, sha256, reasons = load(), fingerprint(path, card), list[str]()
    for planned, sized in _candidates(card, size):
        found = find_plan(planned, sha256, device.driver.gpu, trt.__version__, precision)
        if not isinstance(found, str):
            return TensorRtEngine(sized, found.path, device.driver, trt=trt)
        reasons.append(found)
    raise EngineError(reasons[0], how_to_build(card.name))


def _candidates(card: ModelCard, size: tuple[int, int] | None) -> list[tuple[ModelCard, ModelCard]]:
    """Cards of the plans that would do, best first, each with the card of the one size that it is to be run at."""
    target = target_of(card)
    if not is_free(target):
        return [(card, card)]
    sizes = served(card)
    wanted = size or (sizes.best if sizes else target_of(fixed(card, BuildSettings())).size)
    exact = with_size(card, wanted)
    built = [plan.sidecar for plan in built_plans(card.name)]
    shapes = [note.shapes.get(target.name, ()) for note in built if not note.sizes]
    single = {replace(target, shape=shape).size for shape in shapes if fits(shape, target.shape)}
    found = [(one, one) for one in (with_size(card, each) for each in sorted(single - {wanted}))]
    if sizes and not sizes.fault(wanted) and any(note.sizes for note in built):
        found.insert(0, (card, exact))
    if wanted in single:
        found.insert(0, (exact, exact))
    return found or [(card if sizes else exact, exact)]
