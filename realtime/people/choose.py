"""Says which of the faces in view are swapped, and stays with them; knows ids and prominence, no pictures."""

from __future__ import annotations

import math
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
        self._most = which if isinstance(which, int) else {"largest": 1, "all": math.inf}[which]
        self._chosen: list[int] = []

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
        self._chosen = [track_id for track_id in self._chosen if track_id in in_view or track_id in sighting.lost]
        for track_id in in_view:  # the most prominent first
            if self.has_room and track_id not in self._chosen:
                self._chosen.append(track_id)
        faces = tuple(in_view[track_id] for track_id in self._chosen if track_id in in_view)
        lost = tuple(sighting.lost[track_id] for track_id in self._chosen if track_id not in in_view)
        return faces, lost
