"""Notes what a swapper's network is given while it swaps the faces of photos; knows photos, no family of swappers.

For whole numbers, see :mod:`engines.building.samples`: their range must cover what the network will see, which is
crops of faces and vectors or pictures of identities, and nobody has those lying about.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.contract import Engine
from realtime import app, config, geometry
from realtime.errors import ConfigError, IdentityError
from realtime.identity import Portrait, read_portrait
from realtime.meter import Meter
from realtime.models import Models
from realtime.swappers import Kit, Look, family
from realtime.types import Face

FEWEST_FACES = 2
"""Each face gets that of another."""
MOST_FACES = 256
"""More tell nothing new."""


class Noting:
    """An engine that notes what it is given.

    Args:
        engine: that runs the network; its opener's.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.runtime, self.inputs, self.outputs = engine.runtime, engine.inputs, engine.outputs
        self.given: list[dict[str, NDArray[Any]]] = []

    def run(self, *tensors: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """See :class:`engines.contract.Engine`."""
        self.given.append({spec.name: tensor.copy() for spec, tensor in zip(self.inputs, tensors, strict=True)})
        return self._engine.run(*tensors)

    def close(self) -> None:
        """See :class:`engines.contract.Engine`."""
        self._engine.close()


class Overheard(Models):
    """Models of which one is overheard.

    Args:
        name: of its card.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self.noting: Noting | None = None

    def open(self, name: str, batch: int = 1) -> Engine:
        """See :class:`realtime.models.Models`."""
        engine = super().open(name, batch)
        if name != self._name:
            return engine
        self.noting = self.noting or Noting(engine)
        return self.noting


def write_samples(name: str, boost: int, photos: Path, out: Path, tell: Callable[[str], None]) -> int:
    """Swap the faces of photos with each other, and write what the network was given.

    Args:
        name: card of a swapper.
        boost: see :class:`realtime.swappers.Look`.
        photos: folder of photos of faces.
        out: folder for one ``.npz`` for each face.
        tell: told which photos are of no use.

    Returns:
        How many were written.

    Raises:
        ConfigError: fewer than two photos show a face.
        ModelError: a model that this takes is missing or wrong.
        EngineError: a runtime failed.
    """
    models = Overheard(name)
    with app.open_networks(config.resolve([config.default_layer()])) as networks, models:
        portraits = _portraits(photos, networks, tell)
        kit, made = Kit(networks.device, models, name, Look(boost=boost), Meter()), family(name, models)
        for portrait, other in zip(portraits, [*portraits[1:], portraits[0]], strict=True):
            swapper = made.open_swapper(made.identify([other] if made.TAKES_PHOTOS else [], kit), kit)
            pixels = portrait.pixels.copy()
            networks.device.begin(pixels)
            swapper.swap(pixels, _face(portrait), 0.0, ())
            networks.device.finish(pixels)
        given = models.noting.given if models.noting else []
        for number, tensors in enumerate(given):
            np.savez(out / f"{number:04}.npz", **tensors)  # type: ignore[arg-type]  # its one option has a name that no tensor has
        return len(given)


def _portraits(photos: Path, networks: app.Networks, tell: Callable[[str], None]) -> list[Portrait]:
    found = []
    for path in sorted(path for path in photos.iterdir() if path.is_file())[:MOST_FACES]:
        try:
            found.append(read_portrait(path, networks.detector, networks.mesh_net))
        except IdentityError as error:
            tell(f"left out: {error.message}")
    if len(found) < FEWEST_FACES:
        raise ConfigError(
            f"{len(found)} photos of {photos} show a face, {FEWEST_FACES} are needed at least",
            "name a folder of photos that show one face each, of different people",
        )
    return found


def _face(portrait: Portrait) -> Face:
    box = geometry.bounds(portrait.mesh)
    return Face(box, 1.0, portrait.points5, portrait.mesh, 1, 0)
