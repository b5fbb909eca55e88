"""What replaces a face: the ``Swapper`` contract and the table of families; knows no model."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from realtime.types import U8, Face

OBSTACLES = "obstacles"
"""Optional step: keep what is in front of the face in front."""

OPTIONAL_STEPS: tuple[str, ...] = (OBSTACLES,)
"""Steps that the budget may leave out, the most dispensable first."""


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
