"""One followed face: where it is, was, or may be by now; knows no picture, no network and no other face."""

from __future__ import annotations

import math
from typing import NamedTuple

from realtime import geometry
from realtime.landmarks import points5
from realtime.smoothing import CUTOFF_HZ, MeshSmoother
from realtime.types import F32, Face

GLIDE_S = 0.5
"""How long a lost face is believed to go on as it moved: somebody who walks past behind somebody else."""
REMEMBER_S = 2.0
"""How long a lost face is remembered at most; never longer than it had been followed, so that a mistake soon ends."""
SAME_PLACE = 1.0
"""Distance in face heights up to which a face that is found may be one that was lost. Not more: a newcomer who takes
the name of somebody behind a hand takes the mask too, and leaves that person bare."""
SAME_SIZE = 1.6
"""Ratio of heights up to which a face that is found may be one that was lost."""


class Place(NamedTuple):
    """Middle and height of a face in pixels, as plain numbers: on so few, arrays cost twenty times as much."""

    x: float
    y: float
    height: float


def change(place: Place, before: Place) -> float:
    """How far a face has moved or how much it has grown, in heights that it had before."""
    way = math.hypot(place.x - before.x, place.y - before.y) / before.height
    return max(way, abs(place.height / before.height - 1))


class Look:
    """What the mesh network saw in one crop."""

    __slots__ = ("box", "mesh", "place", "presence")

    def __init__(self, mesh: F32, presence: float) -> None:
        self.mesh, self.presence = mesh, presence
        self.box = geometry.bounds(mesh)
        left, top, right, bottom = self.box.tolist()
        self.place = Place((left + right) / 2, (top + bottom) / 2, max(bottom - top, 1.0))

    def share_inside(self, width: int, height: int) -> float:
        """How much of the face is inside a picture, 0..1; points that are no numbers are not."""
        left, top, right, bottom = self.box.tolist()
        if left >= 0 and top >= 0 and right < width and bottom < height:
            return 1.0
        xy = self.mesh[:, :2]
        return float(((xy >= 0) & (xy < (width, height))).all(axis=1).mean())


class Track:
    """One face with a name: where it is, or where it was when it was lost.

    Attributes:
        id: the name.
        look: the latest that was seen of it.
        mesh: (468, 3) float32, steadied.
        box: (4,) float32 around ``mesh``.
        since_s: when it was found for the first time.
        lost_s: when it was lost; ``None`` while it is followed.
        age_frames: frames since the detector last confirmed it.
    """

    __slots__ = ("_seen_s", "_smoother", "_velocity", "age_frames", "box", "id", "look", "lost_s", "mesh", "since_s")

    def __init__(self, track_id: int, look: Look, now_s: float) -> None:
        self.id, self.since_s = track_id, now_s
        self._smoother = MeshSmoother()
        self.find(look, now_s)

    def find(self, look: Look, now_s: float) -> None:
        """The detector has found the face, for the first time or again; nothing is known of its motion."""
        self._velocity = (0.0, 0.0)
        self.age_frames = 0
        self.lost_s: float | None = None
        self._note(look, now_s)

    def advance(self, look: Look, now_s: float, cutoff_hz: float = CUTOFF_HZ) -> None:
        """The mesh network has followed the face into another frame; ``cutoff_hz`` steadies a face that keeps still."""
        dt_s = now_s - self._seen_s
        if dt_s > 0:
            vx, vy = (look.place.x - self.look.place.x) / dt_s, (look.place.y - self.look.place.y) / dt_s
            self._velocity = ((self._velocity[0] + vx) / 2, (self._velocity[1] + vy) / 2)
        self._note(look, now_s, cutoff_hz)

    def _note(self, look: Look, now_s: float, cutoff_hz: float = CUTOFF_HZ) -> None:
        self.look, self._seen_s = look, now_s
        self.mesh = self._smoother.smooth(look.mesh, now_s, cutoff_hz)
        self.box = geometry.bounds(self.mesh)

    def is_remembered(self, now_s: float) -> bool:
        """Whether it is followed, or was lost a short while ago."""
        if self.lost_s is None:
            return True
        return 0 <= now_s - self.lost_s <= min(self.lost_s - self.since_s, REMEMBER_S)

    def rescale(self, factor: F32, now_s: float) -> None:
        """Count as lost, in pictures whose x, y and z are ``factor`` (3,) times as large."""
        self.look = Look(self.look.mesh * factor, self.look.presence)
        self.mesh, self.box = self.look.mesh, self.look.box
        self._smoother = MeshSmoother()
        self._velocity = (0.0, 0.0)
        self.lost_s = now_s if self.lost_s is None else self.lost_s

    def distance(self, place: Place, now_s: float) -> float:
        """How far a place is from where the face may be by now, in its heights: from the way that its motion makes."""
        glide_s = min(max(now_s - self._seen_s, 0.0), GLIDE_S)
        way_x, way_y = self._velocity[0] * glide_s, self._velocity[1] * glide_s
        x, y = place.x - self.look.place.x, place.y - self.look.place.y
        length2 = way_x * way_x + way_y * way_y
        along = min(max((x * way_x + y * way_y) / length2, 0.0), 1.0) if length2 > 0 else 0.0
        return math.hypot(x - along * way_x, y - along * way_y) / self.look.place.height

    def jump(self, place: Place, now_s: float) -> float:
        """How much the face would have moved against expectation or grown since the last frame, in its heights."""
        return max(self.distance(place, now_s), abs(place.height / self.look.place.height - 1))

    def may_be(self, place: Place, now_s: float) -> bool:
        """Whether a face that is found may be this one."""
        ratio = place.height / self.look.place.height
        return 1 / SAME_SIZE <= ratio <= SAME_SIZE and self.distance(place, now_s) <= SAME_PLACE

    def face(self) -> Face:
        """What is told of the face."""
        return Face(self.box, self.look.presence, points5(self.mesh), self.mesh, self.id, self.age_frames)
