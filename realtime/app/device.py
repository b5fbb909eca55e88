"""Chooses where pictures are worked on; knows what a run paints with, and no device by name but the processor."""

from __future__ import annotations

from engines import registry
from engines.contract import Device
from realtime.config import Settings
from realtime.errors import DeviceError
from realtime.swappers import MESH

PROCESSOR = "cpu"


def open_chosen(settings: Settings) -> tuple[Device, str]:
    """Open the device of a run.

    Returns:
        The device, and in words what it is and why no better one is used.

    Raises:
        DeviceError: the one that is named cannot be used, or cannot do what is asked for.
    """
    wanted = settings.engine.device
    paints = settings.swap.engine != MESH or bool(settings.enhance.model)
    poisson = settings.swap.blend == "poisson" and settings.swap.engine != MESH
    if wanted != "auto":
        device = registry.open_device(wanted)
        if poisson and device.works_ahead:
            device.close()
            raise DeviceError(
                f"device {wanted!r} cannot blend by poisson", "set swap.blend to feather, or device to cpu"
            )
        return device, device.name
    reasons: tuple[str, ...]
    if poisson:
        device, reasons = registry.open_device(PROCESSOR), ("poisson blending is done there",)
    elif not paints:  # it draws a mesh in less time than a picture takes to a GPU and back
        device, reasons = registry.open_device(PROCESSOR), ()
    else:
        device, reasons = registry.open_best_device()
    return device, "; ".join([device.name, *reasons])
