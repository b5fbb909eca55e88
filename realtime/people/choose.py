"""Says which of the faces in view are swapped, and stays with them; knows ids and prominence, no pictures."""

from __future__ import annotations

import math
import queue
from collections.abc import Collection
from typing import Literal

from realtime.track import Sighting
from realtime.types import F32, Face

Which = Literal["largest", "all"] | int


class Chooser:
    """Chooses faces and keeps them: a larger face that walks past never takes the place of the one that was chosen.

    A chosen face that is lost keeps its place for as long as the tracker remembers it. Otherwise a hand before the face
    would hand its mask to the next person in view.

    Args:
        which: "largest" for the most prominent face, "all", or at most so many, >= 1.
    """

    def __init__(self, which: Which) -> None:
        self._chosen: list[int] = []
        self._left_alone: set[int] = set()
        self._orders: queue.SimpleQueue[tuple[int] | Which] = queue.SimpleQueue()
        self._picked = False
        self._automatic = which
        self._most = _most(which)

    @property
    def picked(self) -> bool:
        """Whether faces were picked by hand. Any thread."""
        return self._picked

    def pick(self, track_id: int) -> None:
        """Swap a face from the next frame on, or leave it alone where it is swapped now. Any thread.

        One face more or one less is swapped then. Whoever was left alone stays so; a picked face that is lost for good
        gives its place to a newcomer, who may be the same person, and where all faces are swapped newcomers are, too.
        """
        self._picked = True
        self._orders.put((track_id,))

    def unpick(self, which: Which | None = None) -> None:
        """Choose by itself again, from the next frame on. Any thread.

        Args:
            which: as for the constructor; ``None`` for what was said last.
        """
        self._picked = False
        self._automatic = self._automatic if which is None else which
        self._orders.put(self._automatic)

    @property
    def has_room(self) -> bool:
        """Whether a newcomer would be chosen, and so is bare until found."""
        return len(self._chosen) < self._most

    def choose(self, sighting: Sighting) -> tuple[tuple[Face, ...], tuple[F32, ...]]:
        """Choose among the faces of a frame.

        Args:
            sighting: what the tracker knows.

        Returns:
            The faces to swap, and the boxes (4,) where chosen faces that are lost were last; both in the order in which
            they were chosen.
        """
        in_view = {face.track_id: face for face in sighting.faces}
        while not self._orders.empty():
            self._obey(self._orders.get(), in_view)
        self._chosen = [track_id for track_id in self._chosen if track_id in in_view or track_id in sighting.lost]
        for track_id in in_view:  # the most prominent first
            if self.has_room and track_id not in self._chosen and track_id not in self._left_alone:
                self._chosen.append(track_id)
        faces = tuple(in_view[track_id] for track_id in self._chosen if track_id in in_view)
        lost = tuple(sighting.lost[track_id] for track_id in self._chosen if track_id not in in_view)
        return faces, lost

    def _obey(self, order: tuple[int] | Which, in_view: Collection[int]) -> None:
        if not isinstance(order, tuple):
            self._most, self._left_alone = _most(order), set()
            self._chosen = self._chosen[: int(min(self._most, len(self._chosen)))]
            return
        track_id = order[0]
        if track_id in self._chosen:
            self._chosen.remove(track_id)
            self._left_alone.add(track_id)
            self._most -= 1
        elif track_id in in_view:
            self._chosen.append(track_id)
            self._left_alone.discard(track_id)
            self._most = max(self._most, len(self._chosen))


def _most(which: Which) -> float:
    return which if isinstance(which, int) else {"largest": 1, "all": math.inf}[which]
