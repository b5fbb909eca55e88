"""Follows faces from frame to frame and keeps their names; knows the past of each face, never what is done with it.

The mesh of one frame says where to look in the next, so the detector runs only when there is nobody to follow, while
somebody is lost, and every n frames for newcomers. To become a track takes more evidence than to stay one: a badge on a
suit never becomes one, and a face behind a hand stays one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from realtime import geometry
from realtime.detect import VIEWS_PER_CALL, Detection, Detector, prominence
from realtime.evidence import is_face
from realtime.landmarks import MeshNet
from realtime.meter import Meter
from realtime.smoothing import CUTOFF_HZ
from realtime.trail import Look, Track, change
from realtime.types import F32, F64, U8, Face, Size

MOST_FACES = 8
"""Faces followed at once; one that was lost and comes back is followed all the same. Each costs a run of the mesh
network."""
MOST_CANDIDATES = 3
"""Unknown candidates of one look that are examined, the surest first. Each costs two runs of the mesh network."""
PROBATION_S = 0.5
"""How long a new face is on probation. A print that passed for a face in one frame seldom does so in the next ones."""
PROBATION_PRESENCE = 0.99
"""Presence that a face on probation keeps up. Real ones stay above 0.999 but for a hand or the border."""
SAME_FACE_IOU = 0.25
"""Overlap from which a detection and a followed face are the same face."""
DOUBLE_IOU = 0.5
"""Overlap from which two meshes are on one face."""
LARGEST_JUMP = 0.6
"""Change of place or size between two frames, in face heights, that no head makes: the mesh slipped off."""
STEADY = 0.1
"""Change of place or size between two looks, in face heights, up to which the first is believed. From a face that has
left the middle of its crop the network makes one halfway or on the wall beside it, often with a presence of 1."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """What the tracker knows about one frame.

    Attributes:
        faces: in view, the most prominent first.
        lost: ids of faces that were followed until a short while ago (at most ``trail.REMEMBER_S``, and no longer than
            they had been followed), and the box (4,) where each was last.
    """

    faces: tuple[Face, ...]
    lost: dict[int, F32]


class Tracker:
    """Finds and follows faces. Used by one thread.

    Args:
        detector: looks for faces.
        mesh_net: looks at one face.
        min_presence: below it the mesh network is taken to have lost the face that it followed, 0..1.
        meter: gets the laps "detect" (with the examination of what was detected) and "mesh".
    """

    def __init__(self, detector: Detector, mesh_net: MeshNet, min_presence: float, meter: Meter) -> None:
        self._detector, self._mesh_net = detector, mesh_net
        self._min_presence, self._meter = min_presence, meter
        self._tracks: list[Track] = []
        self._last_id = 0
        self._since_search = 0
        self._size: Size | None = None
        self.cutoff_hz = CUTOFF_HZ
        """How much faces that keep still are steadied, see :mod:`realtime.smoothing`; may be changed by any thread."""

    def follow(self, pixels: U8, now_s: float, detect_every_n: int) -> Sighting:
        """Find the faces of the next frame.

        The first picture, the first of another size and one in which several people are gone at once (a cut) are
        searched everywhere, so whoever is in view is known from that picture on. While somebody is followed and nobody
        is lost, one view of the search is looked at every ``detect_every_n`` frames; of those, the first ones find
        whoever is near, all of them whoever stands back.

        Args:
            pixels: (H, W, 3) uint8 BGR. Only read.
            now_s: when the frame was captured. If it is before an earlier one, who is lost is forgotten.
            detect_every_n: frames between two looks for newcomers, >= 1.

        Returns:
            The faces in its pixels.
        """
        size = Size(pixels.shape[1], pixels.shape[0])
        anew = size != self._size
        if anew:
            self._start_anew(size, now_s)
        followed = len(self._followed())
        with self._meter.lap("mesh"):
            self._advance(pixels, now_s)
        anew = anew or (followed > 1 and not self._followed())  # nobody hides two people at once: the picture was cut
        self._tracks = [track for track in self._tracks if track.is_remembered(now_s)]
        self._since_search += 1
        if anew or self._since_search >= detect_every_n or not self._tracks or self._lost():
            self._since_search = 0
            with self._meter.lap("detect"):
                self._search(pixels, now_s, everywhere=anew)
        faces = sorted((t.face() for t in self._followed()), key=lambda f: -prominence(f.box_xyxy, size))
        return Sighting(tuple(faces), {t.id: t.box for t in self._lost()})

    def _followed(self) -> list[Track]:
        return [track for track in self._tracks if track.lost_s is None]

    def _lost(self) -> list[Track]:
        return [track for track in self._tracks if track.lost_s is not None]

    def _start_anew(self, size: Size, now_s: float) -> None:
        """Take up pictures of another size: everyone is to be found again, and has kept the name."""
        if self._size is not None:
            factor = np.array([size.w / self._size.w, size.h / self._size.h, size.h / self._size.h], np.float32)
            for track in self._tracks:
                track.rescale(factor, now_s)
        self._size = size

    def _advance(self, pixels: U8, now_s: float) -> None:
        """Find each followed face in the next frame, from where it was in the last one."""
        moves: list[tuple[float, Track, Look]] = []
        for track in self._followed():
            track.age_frames += 1
            look = self._see_again(pixels, track.look)
            jump = track.jump(look.place, now_s) if look else math.inf
            new = now_s - track.since_s < PROBATION_S
            needed = max(self._min_presence, PROBATION_PRESENCE) if new else self._min_presence
            if look is None or look.presence < needed or jump > LARGEST_JUMP:
                track.lost_s = now_s
            else:
                moves.append((jump, track, look))
        taken: list[F32] = []
        for _, track, look in sorted(moves, key=lambda move: move[0]):
            if _overlaps(look.box, taken, DOUBLE_IOU):  # two tracks on one face: it is the one that moved as expected
                track.lost_s = now_s
            else:
                track.advance(look, now_s, self.cutoff_hz)
                taken.append(look.box)

    def _search(self, pixels: U8, now_s: float, *, everywhere: bool) -> None:
        """Run the detector, confirm the faces that are followed, and follow those that are not."""
        if everywhere:
            found = self._detector.detect_everywhere(pixels)
        else:
            lost = [track.box for track in self._lost()]
            # In passing one view is enough: three of them would stand out in the time of the frame.
            views = VIEWS_PER_CALL if lost or not self._tracks else 1
            found = self._detector.detect(pixels, lost, views)
        unknown = [detection for detection in found if not self._confirms(detection)]
        if not everywhere:
            unknown = sorted(unknown, key=lambda detection: -detection.score)[:MOST_CANDIDATES]
        fresh: list[Look] = []
        for detection in unknown:
            look = self._examine(pixels, detection)
            others = [track.look.box for track in self._followed()] + [other.box for other in fresh]
            if look and not _overlaps(look.box, others, SAME_FACE_IOU):
                fresh.append(look)
        self._name(fresh, now_s)

    def _confirms(self, detection: Detection) -> bool:
        """Note that the detector, too, sees a face that is followed."""
        for track in self._followed():
            if _overlaps(detection.box_xyxy, [track.box], SAME_FACE_IOU):
                track.age_frames = 0
                return True
        return False

    def _examine(self, pixels: U8, detection: Detection) -> Look | None:
        """Look at a candidate twice, the second time in the mesh's own crop, which alone gives a mesh to rely on."""
        rough = self._see(pixels, self._mesh_net.crop_of_detection(detection))
        look = self._see(pixels, self._mesh_net.crop_of_mesh(rough.mesh)) if rough else None
        if rough is None or look is None or not is_face(detection.score, min(rough.presence, look.presence)):
            return None
        return look

    def _see(self, pixels: U8, frame_from_crop: F64) -> Look | None:
        """Look at one crop; ``None`` where there can be no face: less than a third of it is in the picture."""
        mesh, presence = self._mesh_net.locate(pixels, frame_from_crop)
        look = Look(mesh, presence)
        return look if look.share_inside(pixels.shape[1], pixels.shape[0]) > 1 / 3 else None

    def _see_again(self, pixels: U8, before: Look) -> Look | None:
        """Look where a face was. If it has moved or is in doubt, look there too; ``None`` when the two differ."""
        look = self._see(pixels, self._mesh_net.crop_of_mesh(before.mesh))
        if look is None:
            return None
        moved, doubtful = change(look.place, before.place) > STEADY, look.presence < PROBATION_PRESENCE
        if not (moved or doubtful):
            return look
        again = self._see(pixels, self._mesh_net.crop_of_mesh(look.mesh))
        if again is None or change(again.place, look.place) > STEADY:
            return None
        return None if moved and min(look.presence, again.presence) < PROBATION_PRESENCE else again

    def _name(self, fresh: list[Look], now_s: float) -> None:
        """Give faces their old names where they may have one, the nearest first, and new ones to the rest."""
        pairs = [
            (track.distance(look.place, now_s), track, look)
            for track in self._lost()
            for look in fresh
            if track.may_be(look.place, now_s)
        ]
        for _, track, look in sorted(pairs, key=lambda pair: pair[0]):
            if track.lost_s is not None and look in fresh:
                track.find(look, now_s)
                fresh.remove(look)
        # Whoever comes back is taken even into a full picture, so there may be no room at all, and then some.
        for look in fresh[: max(0, MOST_FACES - len(self._followed()))]:
            self._last_id += 1
            self._tracks.append(Track(self._last_id, look, now_s))


def _overlaps(box: F32, others: Sequence[F32], limit_iou: float) -> bool:
    return bool(others) and float(geometry.iou(box, others).max()) > limit_iou
