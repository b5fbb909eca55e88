"""What finds faces in a picture: the ``Detector`` contract and the table of families; knows no network."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from engines.card import ModelCard
from engines.contract import Device, Engine
from engines.errors import ModelError
from realtime.types import F32, U8, Size

DETECTORS: dict[str, str] = {
    "ssd": "realtime.detect.ssd:SsdDetector",
    "scrfd": "realtime.detect.scrfd:ScrfdDetector",
    "yunet": "realtime.detect.yunet:YuNetDetector",
}
"""Families of detectors, as their cards name them: a class that takes card, engine and device."""

VIEWS_PER_CALL = 3
"""Runs of the network in one call: three of about 1.1 ms stay under the 4 ms that a call may take."""


@dataclass(frozen=True, slots=True, eq=False)
class Detection:
    """A face as the detector sees it, in frame pixels; compared by identity, because arrays have no single truth.

    Attributes:
        box_xyxy: (4,) float32, left, top, right, bottom: a square from the brows to the chin.
        score: 0..1.
        points: (k, 2) float32, the card's key points: first the left and the right eye, as seen in the picture. The
            embedded network adds nose tip, middle of the mouth, left and right ear.
    """

    box_xyxy: F32
    score: float
    points: F32


class Detector(Protocol):
    """Finds faces. Used by one thread at a time."""

    def detect(self, pixels: U8, near: Sequence[F32] = (), views: int = VIEWS_PER_CALL) -> list[Detection]:
        """Look at the next part of a search that never ends, and where a face has just been lost.

        Args:
            pixels: (H, W, 3) uint8 BGR. Only read.
            near: boxes (4,) in frame pixels around which to look first. They take the place of parts of the search,
                which then takes longer, so the cost of a call stays the same.
            views: runs of the network, >= 1: all of them while somebody is looked for, one in passing.

        Returns:
            The faces in what was looked at, the most prominent first. A candidate may be no face at all (a face
            printed on a shirt): the presence that the mesh network states tells.
        """

    def detect_everywhere(self, pixels: U8) -> list[Detection]:
        """Do a complete search at once: for still pictures, where time does not count.

        Args:
            pixels: (H, W, 3) uint8 BGR. Only read.

        Returns:
            The faces, the most prominent first.
        """

    def close(self) -> None:
        """Free the network. Safe to call twice."""


def prominence(box_xyxy: F32, size: Size) -> float:
    """Say how much a face is the one that the picture is about.

    Args:
        box_xyxy: (4,) in frame pixels.
        size: of the frame.

    Returns:
        height of the box · (1 − d / 2), where d is the distance of the box's centre from the middle of the frame over
        half the frame's diagonal: size decides, and among faces of about the same size the central one wins.
    """
    left, top, right, bottom = (float(v) for v in box_xyxy)
    d = np.hypot((left + right - size.w) / 2, (top + bottom - size.h) / 2) / (np.hypot(size.w, size.h) / 2)
    return (bottom - top) * (1 - float(d) / 2)


def open_detector(card: ModelCard, engine: Engine, device: Device) -> Detector:
    """Make the detector of a card.

    Args:
        card: of a family in ``DETECTORS``.
        engine: that has loaded the card's model; closed with the detector.
        device: that cuts pictures out.

    Raises:
        ModelError: the card is not one of a detector.
    """
    if card.family not in DETECTORS:
        raise ModelError(
            f"model {card.name} finds no faces: its card says family {card.family!r}",
            f"use a model of the family {' or '.join(DETECTORS)}",
        )
    module, _, name = DETECTORS[card.family].partition(":")
    made: Detector = getattr(importlib.import_module(module), name)(card, engine, device)
    return made
