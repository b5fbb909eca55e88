"""Finds out who gets which face, with as few looks as it takes; knows a recogniser and roles, not how faces are made.

Looking is the dear part: newcomers are looked at in their first frame, because nobody may be shown bare only because
nobody looked; everyone else at a slow beat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from realtime.meter import Meter
from realtime.people.beat import Beat
from realtime.people.casting import Casting
from realtime.people.embedding import Embedding
from realtime.track import Sighting
from realtime.types import F32, U8, Face

LEAST_FACE_PX = 40
"""Faces lower than this tell too little to say that somebody is not who they were."""
SOON_S = 0.3
"""Seconds to the next look after one that spoke against what somebody was taken for."""


class Cast(Protocol):
    """Decides who is to be swapped, and with whose face."""

    @property
    def has_room(self) -> bool:
        """Whether a newcomer might have to be swapped."""

    def wanted(self, pixels: U8, sighting: Sighting, now_s: float) -> Sighting:
        """Leave out everyone who is to be left alone.

        Args:
            pixels: (H, W, 3) uint8 BGR, nobody in it swapped yet. Only read.
            sighting: all that the tracker knows.
            now_s: when the frame was captured.

        Raises:
            EngineError: the recogniser failed, so that nobody knows who may be shown.
        """

    def role(self, track_id: int) -> int:
        """Which swapper paints over somebody whom the latest :meth:`wanted` has left in."""


class Everyone:
    """The ``Cast`` for one source face that whoever is in view may get: nobody needs to be recognised."""

    has_room = True

    def wanted(self, pixels: U8, sighting: Sighting, now_s: float) -> Sighting:
        """See :class:`Cast`: everyone."""
        return sighting

    def role(self, track_id: int) -> int:
        """See :class:`Cast`: the only one."""
        return 0


class Looks(Protocol):
    """What recognises a face: :class:`realtime.people.recognise.Recogniser`."""

    def embed(self, pixels: U8, points5: F32) -> Embedding:
        """See :meth:`realtime.people.recognise.Recogniser.embed`."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Somebody who was named.

    Attributes:
        who: what the recogniser says of their photo.
        role: see :meth:`Cast.role`.
    """

    who: Embedding
    role: int


ONLY_STRANGERS = "only strangers in view"
"""Counter of the frames that show people, but nobody who was named: they are shown as they are."""


class NamedPeople:
    """The ``Cast`` for people whose photos were given; everyone else is left alone. Used by one thread.

    Args:
        recogniser: that made the references.
        references: everyone who was named.
        match: see :class:`realtime.people.casting.Casting`.
        meter: gets the lap "recognise", in frames in which somebody is looked at, and the counter ``ONLY_STRANGERS``.
    """

    def __init__(self, recogniser: Looks, references: Sequence[Reference], match: float, meter: Meter) -> None:
        self._recogniser, self._meter = recogniser, meter
        self._directions = np.stack([reference.who.direction for reference in references])
        self._roles = [reference.role for reference in references]
        self._casting, self._beat = Casting(len(references), match), Beat()
        self._lost: frozenset[int] = frozenset()

    @property
    def has_room(self) -> bool:
        """See :class:`Cast`: not while everyone who was named is in view or lost only now."""
        return not self._casting.is_complete

    def wanted(self, pixels: U8, sighting: Sighting, now_s: float) -> Sighting:
        """See :class:`Cast`: those who are recognised, and those of them who are lost."""
        in_view = {face.track_id for face in sighting.faces}
        for track_id in in_view & self._lost:  # the same place does not prove the same person
            self._beat.hurry(track_id, now_s)
        self._lost = frozenset(sighting.lost)
        for face in sighting.faces:
            if self._is_due(face, now_s):
                with self._meter.lap("recognise"):
                    self._look(pixels, face, now_s)
        self._casting.settle(in_view, sighting.lost)
        self._beat.forget(in_view | self._lost)
        wanted = Sighting(
            tuple(face for face in sighting.faces if self._casting.reference(face.track_id) is not None),
            {n: box for n, box in sighting.lost.items() if self._casting.reference(n) is not None},
        )
        if sighting.faces and not (wanted.faces or wanted.lost):
            self._meter.count(ONLY_STRANGERS)
        return wanted

    def role(self, track_id: int) -> int:
        """See :class:`Cast`."""
        reference = self._casting.reference(track_id)
        if reference is None:
            raise KeyError(track_id)
        return self._roles[reference]

    def _is_due(self, face: Face, now_s: float) -> bool:
        """A bad view can show that somebody is one of those who were named, but not that they are not."""
        known = self._casting.reference(face.track_id) is not None
        return self._beat.is_due(face.track_id, now_s) and (not known or is_good_view(face))

    def _look(self, pixels: U8, face: Face, now_s: float) -> None:
        who = self._recogniser.embed(pixels, face.points5)
        self._beat.looked(face.track_id, now_s)
        if self._casting.note(face.track_id, (self._directions @ who.direction).tolist()):
            self._beat.hurry(face.track_id, now_s + SOON_S)
        for rival in self._casting.rivals(face.track_id):
            self._beat.hurry(rival, now_s)


def is_good_view(face: Face) -> bool:
    """Whether a face is large enough to tell who it is, and turned away by no more than about 45 degrees."""
    left_eye, right_eye, nose = face.points5[:3].astype(np.float64)
    across = right_eye - left_eye
    reach2 = float(across @ across)
    between = 0 <= float((nose - left_eye) @ across) <= reach2
    return bool(np.ptp(face.mesh[:, 1]) >= LEAST_FACE_PX and reach2 > 0 and between)
