"""A scripted scene and networks that see it: faces that move, hide, cross and leave as a test tells them to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from realtime import geometry
from realtime.detect import Detection
from realtime.landmarks import MeshNet
from realtime.types import F32, F64, U8

_SHAPE = np.random.default_rng(1).uniform(-0.5, 0.5, (468, 3)).astype(np.float32)
_SHAPE[:4, :2] = (-0.5, -0.5), (0.5, -0.5), (-0.5, 0.5), (0.5, 0.5)


@dataclass
class Actor:
    """One face: where it is, and what the networks make of it.

    Attributes:
        hidden: behind something; both networks are blind to it, what it hides behind is not drawn.
    """

    x: float
    y: float
    height: float = 80.0
    score: float = 0.95
    presence: float = 0.999
    hidden: bool = False

    @property
    def box(self) -> F32:
        half = self.height / 2
        return np.array([self.x - half, self.y - half, self.x + half, self.y + half], np.float32)

    @property
    def mesh(self) -> F32:
        return (_SHAPE * self.height + (self.x, self.y, 0)).astype(np.float32)


@dataclass
class Scene:
    """What the fake networks see. The order of actors is front to back: who is in front covers who is behind.

    Attributes:
        broken: the next run of a network raises it.
    """

    actors: list[Actor] = field(default_factory=list)
    broken: Exception | None = None
    detections: int = 0
    searches: int = 0
    mesh_runs: int = 0

    def seen(self) -> list[Actor]:
        """Actors that are neither hidden nor covered."""
        seen: list[Actor] = []
        for actor in self.actors:
            if not actor.hidden and not any(abs(actor.x - o.x) < 0.6 * o.height for o in seen if near(actor.y, o)):
                seen.append(actor)
        return seen


def near(y: float, other: Actor) -> bool:
    return abs(y - other.y) < 0.6 * other.height


class FakeDetector:
    """Sees every actor in every look."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def detect(self, pixels: U8, near: Sequence[F32] = (), views: int = 1) -> list[Detection]:
        self._scene.detections += 1
        return self._see()

    def detect_everywhere(self, pixels: U8) -> list[Detection]:
        self._scene.searches += 1
        return self._see()

    def close(self) -> None:
        pass

    def _see(self) -> list[Detection]:
        fail_if_broken(self._scene)
        eyes = np.array([[-0.2, -0.1], [0.2, -0.1]], np.float32)
        return [Detection(a.box, a.score, eyes * a.height + (a.x, a.y)) for a in self._scene.seen() if np.isfinite(a.x)]


class FakeMeshNet(MeshNet):
    """Sees the actor nearest to the middle of a crop, if one is in it."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def crop_of_detection(self, face: Detection) -> F64:
        return self.crop_of_mesh(np.concatenate([face.box_xyxy[:2], face.box_xyxy[2:]]).reshape(2, 2))

    def crop_of_mesh(self, mesh: F32) -> F64:
        left, top, right, bottom = geometry.bounds(mesh).tolist()
        return geometry.square_crop(((left + right) / 2, (top + bottom) / 2), 1.5 * (bottom - top), (1.0, 0.0), 192)

    def locate(self, pixels: U8, frame_from_crop: F64) -> tuple[F32, float]:
        self._scene.mesh_runs += 1
        fail_if_broken(self._scene)
        x, y = geometry.apply(frame_from_crop, (96, 96))
        reach = 96 * frame_from_crop[0, 0]
        seen = [a for a in self._scene.seen() if max(abs(a.x - x), abs(a.y - y)) < reach]
        if not seen:
            return (_SHAPE * reach + (x, y, 0)).astype(np.float32), 0.01
        actor = min(seen, key=lambda a: np.hypot(a.x - x, a.y - y))
        return actor.mesh, actor.presence

    def close(self) -> None:
        pass


def fail_if_broken(scene: Scene) -> None:
    if scene.broken is not None:
        raise scene.broken
