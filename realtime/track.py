"""Follows faces from frame to frame and keeps their names; knows the past of each face, never what is done with it.

The mesh of one frame says where to look in the next, so the detector runs only when there is nobody to follow, when
somebody was lost, and every n frames for newcomers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from realtime import geometry
from realtime.detect import Detection, Detector, prominence
from realtime.landmarks import MeshNet, points5
from realtime.meter import Meter
from realtime.smoothing import MeshSmoother
from realtime.types import F32, U8, Face, Size

MOST_FACES = 8
"""Faces followed at once; the most prominent ones. Each costs a run of the mesh network."""
REMEMBER_S = 2.0
"""How long a lost face is looked for by its name and reported as lost."""
SAME_FACE_IOU = 0.25
"""Overlap from which a detection and a followed face are the same face."""
LARGEST_JUMP = 0.6
"""Change of place or size between two frames, in face heights, that no head makes: the mesh slipped off."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """What the tracker knows about one frame.

    Attributes:
        faces: in view, the most prominent first.
        lost: ids of faces that were followed until at most ``REMEMBER_S`` ago, and the box (4,) where each was last.
        searched: the detector has looked everywhere since a face was last found or lost, so nobody else is in view.
    """

    faces: tuple[Face, ...]
    lost: dict[int, F32]
    searched: bool


class _Track:
    """One followed face."""

    def __init__(self, track_id: int) -> None:
        self.id = track_id
        self.smoother = MeshSmoother()
        self.measured: F32 | None = None
        self.mesh: F32 | None = None
        self.score = 0.0
        self.age_frames = 0
        self.lost_s: float | None = None

    def accept(self, measured: F32, presence: float, now_s: float) -> None:
        self.measured, self.score, self.lost_s = measured, presence, None
        self.mesh = self.smoother.smooth(measured, now_s)

    def rescale(self, factor: np.float32) -> None:
        self.smoother.rescale(factor)
        self.measured = None if self.measured is None else self.measured * factor
        self.mesh = None if self.mesh is None else self.mesh * factor

    def face(self) -> Face:
        assert self.mesh is not None
        return Face(geometry.bounds(self.mesh), self.score, points5(self.mesh), self.mesh, self.id, self.age_frames)


class Tracker:
    """Finds and follows faces. Used by one thread.

    Args:
        detector: looks for faces.
        mesh_net: looks at one face.
        min_presence: below it the mesh network is taken to see no face, 0..1.
        meter: gets the laps "detect" and "mesh".
    """

    def __init__(self, detector: Detector, mesh_net: MeshNet, min_presence: float, meter: Meter) -> None:
        self._detector, self._mesh_net = detector, mesh_net
        self._min_presence, self._meter = min_presence, meter
        self._tracks: list[_Track] = []
        self._next_id = 1
        self._since_detect = 0
        self._searched_calls = 0

    def follow(self, pixels: U8, now_s: float, detect_every_n: int) -> Sighting:
        """Find the faces of the next frame.

        Args:
            pixels: (H, W, 3) uint8 BGR. Only read.
            now_s: when the frame was captured.
            detect_every_n: frames between two looks for newcomers, >= 1.

        Returns:
            The faces in its pixels.
        """
        size = Size(pixels.shape[1], pixels.shape[0])
        with self._meter.lap("mesh"):
            for track in self._tracks:
                if track.lost_s is None:
                    self._advance(track, pixels, now_s)
        self._drop_doubles()
        lost = [track for track in self._tracks if track.lost_s is not None]
        self._since_detect += 1
        if lost or not self._tracks or self._since_detect >= detect_every_n:
            self._since_detect = 0
            self._look(pixels, now_s, lost)
        self._tracks = [t for t in self._tracks if t.lost_s is None or now_s - t.lost_s <= REMEMBER_S]
        faces = sorted(
            (t.face() for t in self._tracks if t.lost_s is None), key=lambda f: -prominence(f.box_xyxy, size)
        )
        gone = {t.id: geometry.bounds(t.mesh) for t in self._tracks if t.lost_s is not None and t.mesh is not None}
        return Sighting(tuple(faces), gone, self._searched_calls >= self._detector.calls_per_search(size))

    def rescale(self, factor: float) -> None:
        """Go on in pictures of another size.

        Args:
            factor: new size over old size.
        """
        for track in self._tracks:
            track.rescale(np.float32(factor))

    def _advance(self, track: _Track, pixels: U8, now_s: float) -> None:
        assert track.measured is not None
        mesh, presence = self._mesh_net.locate(pixels, self._mesh_net.crop_of_mesh(track.measured))
        track.age_frames += 1
        if presence < self._min_presence or _slipped(track.measured, mesh) or not _in_view(mesh, pixels):
            track.lost_s = now_s
            self._searched_calls = 0
        else:
            track.accept(mesh, presence, now_s)

    def _look(self, pixels: U8, now_s: float, lost: list[_Track]) -> None:
        """Run the detector once, confirm the faces that are followed, and follow those that are not."""
        with self._meter.lap("detect"):
            if self._next_id == 1 and not self._searched_calls:  # the first picture of all: no half measures
                found = self._detector.detect_everywhere(pixels)
                self._searched_calls = self._detector.calls_per_search(Size(pixels.shape[1], pixels.shape[0]))
            else:
                near = [geometry.bounds(t.mesh) for t in lost if t.mesh is not None]
                found = self._detector.detect(pixels, near)
        self._searched_calls += 1
        for detection in found:
            track = self._same(detection)
            if track is not None and track.lost_s is None:
                track.age_frames = 0
            elif track is not None or len(self._tracks) < MOST_FACES:
                self._start(detection, track, pixels, now_s)

    def _start(self, detection: Detection, track: _Track | None, pixels: U8, now_s: float) -> None:
        """Follow a detected face, under its old name where it has one."""
        mesh, _ = self._mesh_net.locate(pixels, self._mesh_net.crop_of_detection(detection))
        mesh, presence = self._mesh_net.locate(pixels, self._mesh_net.crop_of_mesh(mesh))
        if presence < self._min_presence or not _in_view(mesh, pixels):
            return
        if any(
            t.lost_s is None
            and t.mesh is not None
            and float(geometry.iou(geometry.bounds(mesh), geometry.bounds(t.mesh))[0]) > SAME_FACE_IOU
            for t in self._tracks
        ):
            return
        if track is None:
            track = _Track(self._next_id)
            self._next_id += 1
            self._tracks.append(track)
        track.accept(mesh, presence, now_s)
        track.age_frames = 0
        self._searched_calls = 0

    def _same(self, detection: Detection) -> _Track | None:
        """The track that a detection belongs to, followed ones before lost ones."""
        best, best_key = None, (False, 0.0)
        for track in self._tracks:
            if track.mesh is None:
                continue
            box = geometry.bounds(track.mesh)
            overlap = float(geometry.iou(detection.box_xyxy, box)[0])
            near = float(np.linalg.norm(_centre(detection.box_xyxy) - _centre(box))) < (box[3] - box[1])
            key = (track.lost_s is None, overlap)
            if (overlap > SAME_FACE_IOU or (track.lost_s is not None and near)) and (best is None or key > best_key):
                best, best_key = track, key
        return best

    def _drop_doubles(self) -> None:
        """Two tracks that ended up on one face: the older one keeps it."""
        kept: list[_Track] = []
        for track in self._tracks:
            if track.lost_s is None and track.mesh is not None:
                box = geometry.bounds(track.mesh)
                others = [geometry.bounds(t.mesh) for t in kept if t.lost_s is None and t.mesh is not None]
                if others and float(geometry.iou(box, others).max()) > 0.5:
                    continue
            kept.append(track)
        self._tracks = kept


def _centre(box: F32) -> F32:
    return (box[:2] + box[2:]) / 2


def _slipped(before: F32, after: F32) -> bool:
    """Whether a mesh moved or grew by more than a head can between two frames."""
    old, new = geometry.bounds(before), geometry.bounds(after)
    height = max(float(old[3] - old[1]), 1.0)
    moved = float(np.linalg.norm(_centre(new) - _centre(old))) / height
    grown = abs(float(new[3] - new[1]) / height - 1)
    return not np.isfinite(after).all() or moved > LARGEST_JUMP or grown > LARGEST_JUMP


def _in_view(mesh: F32, pixels: U8) -> bool:
    """Whether at least a third of the face is inside the picture."""
    x, y = mesh[:, 0], mesh[:, 1]
    return bool(((x >= 0) & (y >= 0) & (x < pixels.shape[1]) & (y < pixels.shape[0])).mean() > 1 / 3)
