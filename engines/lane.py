"""The way of crops through a network on the processor: every call has done its work when it returns; knows no face."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engines.contract import CropPlan, Engine
from engines.errors import EngineError

if TYPE_CHECKING:
    from engines.cpu import CpuDevice

MADE_NO_PICTURE = "use the float32 edition of the model, or another provider"
"""Hint where a network gave something that is no picture."""


class HostLane:
    """The ``Lane`` of the processor: see :class:`engines.contract.Lane`, which its methods follow.

    Args:
        device: that cuts, develops and pastes.
        plan: what is done.
        engine: that runs the network.
    """

    def __init__(self, device: CpuDevice, plan: CropPlan, engine: Engine) -> None:
        self._device, self._plan, self._engine = device, plan, engine
        self._order = [spec.name for spec in engine.inputs]
        self._target = np.zeros(plan.target.shape, np.float32)
        self._results: tuple[NDArray[Any], ...] = ()
        width, height = (plan.tiles * side for side in plan.target.size)
        self._patch = np.zeros((height, width, 4) if plan.picture >= 0 else (0, 0, 4), np.uint8)

    def start(
        self, pixels: NDArray[np.uint8], picture_from_crop: NDArray[np.float64], others: Mapping[str, NDArray[Any]]
    ) -> None:
        """Cut and run."""
        self.cut(pixels, picture_from_crop, self._target)
        self.infer(self._target, others)

    def cut(
        self, pixels: NDArray[np.uint8], picture_from_crop: NDArray[np.float64], target: NDArray[np.float32]
    ) -> None:
        """Cut the crop, tile by tile.

        Args:
            pixels: as of ``start``.
            picture_from_crop: as of ``start``.
            target: of the plan's shape; overwritten.
        """
        plan = self._plan
        for tile in range(plan.tiles**2):
            picture_from_tile = tile_of(picture_from_crop, plan.tiles, tile)
            self._device.crop(pixels, picture_from_tile, plan.target, target[tile : tile + 1])

    def infer(self, target: NDArray[np.float32], others: Mapping[str, NDArray[Any]]) -> None:
        """Run the network; ``outputs`` has what it made.

        Args:
            target: the crop.
            others: as of ``start``.

        Raises:
            EngineError: the runtime failed.
        """
        name = self._plan.target.name
        self._results = self._engine.run(*(target if other == name else others[other] for other in self._order))

    def outputs(self) -> tuple[NDArray[Any], ...]:
        """Give what the engine made."""
        return self._results

    def tones(
        self, who: int, weight: NDArray[np.float32], before: NDArray[np.float32], after: NDArray[np.float32]
    ) -> None:
        """Measure this very crop; it makes no difference ``who`` it is of."""
        made = self._engine.outputs[self._plan.picture]
        self._device.tone(self._target, self._plan.target, weight, before)
        self._device.tone(self._results[self._plan.picture], made, weight, after)

    def paint(
        self,
        who: int,
        pixels: NDArray[np.uint8],
        picture_from_crop: NDArray[np.float64],
        opacity: NDArray[np.uint8],
        gain: NDArray[np.float32],
        offset: NDArray[np.float32],
        retouch: Callable[[NDArray[np.uint8]], None] | None = None,
    ) -> None:
        """Develop and paste at once."""
        patch, picture = self._patch, self._plan.picture
        low, high = self._device.develop(self._results[picture], self._engine.outputs[picture], gain, offset, patch)
        if not high - low >= self._plan.least_range:
            raise no_picture(self._plan.name, low, high)
        patch[..., 3] = opacity
        if retouch is not None:
            retouch(patch)
        self._device.paste(pixels, patch, picture_from_crop)

    def close(self) -> None:
        """Nothing is held that Python does not free."""


def tile_of(picture_from_crop: NDArray[np.float64], tiles: int, number: int) -> NDArray[np.float64]:
    """Say where one of the tiles of a crop lies.

    Args:
        picture_from_crop: (2, 3) between centres of pixels, of all tiles together.
        tiles: along one side.
        number: of the tile; it has the rows from ``number // tiles`` on and the columns from ``number % tiles`` on.

    Returns:
        (2, 3) ``picture_from_tile``.
    """
    row, column = divmod(number, tiles)
    picture_from_tile = picture_from_crop * (tiles, tiles, 1)
    picture_from_tile[:, 2] += picture_from_crop[:, :2] @ (column, row)
    return picture_from_tile


def no_picture(name: str, low: float, high: float) -> EngineError:
    """Make the error for an output that is no picture.

    Args:
        name: of the network.
        low: its least value in grey levels, NaN where a value is not finite.
        high: its greatest.
    """
    what = "values that are no numbers" if np.isnan(low) else f"nothing but the grey levels {low:.0f} to {high:.0f}"
    return EngineError(f"{name} made {what}", MADE_NO_PICTURE)


def one_colour(name: str, blue: float, green: float, red: float) -> EngineError:
    """Make the error for an output of one flat colour, in grey levels."""
    what = f"red {red:.0f}, green {green:.0f}, blue {blue:.0f}"
    return EngineError(f"{name} made one flat colour: {what}", MADE_NO_PICTURE)
