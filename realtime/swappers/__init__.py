"""What replaces a face: the ``Swapper`` contract and the table of families; knows no model."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from engines.contract import Device
from realtime.identity import Portrait
from realtime.meter import Meter
from realtime.types import U8, Face

FAMILIES: dict[str, str] = {
    "mesh": "realtime.swappers.mesh",
}
"""Ways to make the new face, by the name that the settings use: a module that is a ``Family``."""

OBSTACLES = "obstacles"
"""Optional step: keep what is in front of the face in front."""

OPTIONAL_STEPS: tuple[str, ...] = (OBSTACLES,)
"""Steps that the budget may leave out, the most dispensable first."""


@dataclass(frozen=True, slots=True)
class Look:
    """How the new face looks.

    Attributes:
        likeness: how far the features move to where the source has them, 0..1.
        colour: how far the face takes the tone and light of the scene, 0..1.
        opacity: of the new face, 0..1.
    """

    likeness: float = 1.0
    colour: float = 1.0
    opacity: float = 1.0


class Swapper(Protocol):
    """Paints another face over followed faces. Used by one thread."""

    def swap(self, pixels: U8, face: Face, now_s: float, steps: Collection[str]) -> bool:
        """Paint over one face.

        Args:
            pixels: (H, W, 3) uint8 BGR; painted into, inside the face's rectangle only.
            face: in these pixels.
            now_s: when the frame was captured.
            steps: the optional steps that run.

        Returns:
            ``False`` when the face could not be painted over: it is too small or outside the picture. Then not a pixel
            has changed, and the person must not be shown.
        """

    def forget(self, followed: Collection[int]) -> None:
        """Drop what is remembered of everyone but these track ids."""


class Family(Protocol):
    """A module of ``FAMILIES``. Its identity is its own affair: it is made by one function and taken by the other."""

    def identify(self, portraits: Sequence[Portrait]) -> Any:
        """Derive from photos of one face, one or more, what does not change from frame to frame.

        Raises:
            IdentityError: a photo cannot be used.
        """

    def open_swapper(self, device: Device, identity: Any, look: Look, meter: Meter) -> Swapper:
        """Make a swapper that shows this identity; ``meter`` gets its laps."""


def family(name: str) -> Family:
    """Import a family by its name in ``FAMILIES``."""
    return cast(Family, importlib.import_module(FAMILIES[name]))
