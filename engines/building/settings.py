"""What can be chosen about a plan; knows values and their limits, no runtime."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engines.batch import with_batch
from engines.card import ModelCard
from engines.errors import EngineError
from engines.sizes import with_size

Precision = Literal["fp16", "fp32", "int8"]
PRECISIONS: tuple[Precision, ...] = ("fp16", "fp32", "int8")

TIME_LIMIT_S = 3600.0
"""Of one build. People report one to five minutes for a network of inswapper's size; the slowest cards and the highest
level take several times that."""


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """How a plan is built.

    Attributes:
        precision: "fp16": half precision but for islands, see :mod:`engines.fp16`; "fp32": all in single precision, and
            exactly so; "int8": convolutions in whole numbers, the rest as with "fp16".
        pictures: in one run: k * k for a face in k * k tiles.
        size: width and height in pixels of an input that the card leaves free, for a plan of this size alone. None for
            a plan of all ``sizes`` of the card; where it states none, of the square of ``side`` in ``[decode]``.
        workspace_bytes: of GPU memory that the plan may use besides its weights and tensors; 0 for as much as there is.
        optimisation: how long the fastest kernels are looked for, 0..5.
        strict_nans: keep the builder from simplifying what is only right for finite numbers, such as ``x - x``.
        calibration: folder of samples for "int8", see :mod:`engines.building.samples`; else not read.
        time_limit_s: of the whole build, > 0.
    """

    precision: Precision = "fp16"
    pictures: int = 1
    size: tuple[int, int] | None = None
    workspace_bytes: int = 0
    optimisation: int = 3
    strict_nans: bool = False
    calibration: Path | None = None
    time_limit_s: float = TIME_LIMIT_S

    def demand_possible(self) -> None:
        """Refuse what cannot be built, before anything is begun.

        Raises:
            EngineError: "int8" without a folder.
        """
        if self.precision == "int8" and (self.calibration is None or not self.calibration.is_dir()):
            found = f"there is no folder {self.calibration}" if self.calibration else "none was named"
            raise EngineError(
                f"int8 needs a folder of samples of what the network will see, and {found}",
                "name one: --calibrate FOLDER; or build in fp16",
            )


def fixed(card: ModelCard, settings: BuildSettings) -> ModelCard:
    """Write a card for the number and the size of pictures that a plan is built for.

    Args:
        card: of the model, as published.
        settings: the plan's.

    Returns:
        The card; of its inputs no axis is free that the settings say something about, but within its ``sizes``.
    """
    side = card.decode.get("side")
    square = (side, side) if isinstance(side, int) and card.sizes is None else None
    return with_size(with_batch(card, settings.pictures), settings.size or square)
