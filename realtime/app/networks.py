"""Opens what finds faces: the device and the networks that the settings name; knows no face that is shown."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

import numpy as np

from engines import store
from engines.card import ModelCard
from engines.contract import Device
from realtime.app.device import open_chosen
from realtime.config import Settings
from realtime.detect import Detector, open_detector
from realtime.detect.choice import BEST_FIRST, Choice, Opened, choose
from realtime.detect.whole import looked_at
from realtime.landmarks import MeshNet
from realtime.models import Models
from realtime.types import Size

MESH_CARD = "face_landmark"
CAMERA_SIZE = Size(1280, 720)
"""Size of the pictures that detectors are tried on where the settings name none: what a camera is asked for."""


@dataclass(frozen=True, slots=True)
class Networks:
    """What finds faces, opened.

    Attributes:
        device: where pictures are cut and drawn.
        works_on: what it is and why it is not a better one.
        detector: finds faces.
        mesh_net: finds the mesh of one face.
        models: opens further ones.
        looks: what looks for faces, and why no better one does.
    """

    device: Device
    works_on: str
    detector: Detector
    mesh_net: MeshNet
    models: Models
    looks: str

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """What really runs, for the banner: the device, then each network with its runtime."""
        networks = (("networks", f"{name} on {runs}") for name, runs in self.models.facts)
        return (("device", self.works_on), ("detector", self.looks), *networks)


@contextmanager
def open_networks(settings: Settings) -> Iterator[Networks]:
    """Open the device and the networks; frees them at the end.

    Raises:
        ModelError: a model file is missing or damaged.
        EngineError: a runtime cannot be used.
        DeviceError: the device cannot be used.
    """
    device, words = open_chosen(settings)
    with closing(device), open_models(settings, device) as models:
        chosen = choose_detector(settings, models, device)
        with closing(chosen.detector):
            mesh_net = MeshNet(models.card(MESH_CARD), models.open(MESH_CARD), device)
            yield Networks(device, words, chosen.detector, mesh_net, models, chosen.sentence)


def open_models(settings: Settings, device: Device) -> Models:
    """Make what opens the models of a run."""
    engine = settings.engine
    return Models(engine.runtime, engine.threads, engine.provider, engine.allow_cpu, device)


def choose_detector(settings: Settings, models: Models, device: Device) -> Choice:
    """Open what looks for faces: the one that is named, or the best that is here and fast enough.

    Raises:
        ModelError: the one that is named is missing, damaged, or no detector.
        EngineError: its runtime cannot be used.
    """
    named = settings.tracking.detector
    names = BEST_FIRST if named == "auto" else (named,)
    width, height = settings.input.size or CAMERA_SIZE

    def open_one(card: ModelCard) -> Opened:
        engine = models.open_apart(card, size=looked_at(card, Size(width, height)))
        return Opened(open_detector(card, engine, device), engine.runtime)

    def is_here(card: ModelCard) -> bool:
        return store.locate(card) is not None

    cards = [models.card(name) for name in names]
    return choose(cards, is_here, open_one, np.zeros((height, width, 3), np.uint8), time.perf_counter)
