"""The path of one frame, read top to bottom; knows the order of the steps, not what they are made of."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import replace

import cv2
import numpy as np

from realtime.choose import Chooser
from realtime.guard import Guard, Outcome, is_sound
from realtime.meter import Meter
from realtime.swappers import Swapper
from realtime.track import Tracker
from realtime.types import F32, U8, Face, Frame, Quality

log = logging.getLogger(__name__)


class Pipeline:
    """Locates the faces of a frame, swaps the chosen ones and settles what may be shown. Used by one thread.

    Args:
        tracker: finds and follows faces.
        chooser: says which of them are swapped.
        swapper: paints them over.
        guard: decides what is shown instead of a face that was not swapped.
        meter: gets the laps.
    """

    def __init__(self, tracker: Tracker, chooser: Chooser, swapper: Swapper, guard: Guard, meter: Meter) -> None:
        self._tracker, self._chooser, self._swapper = tracker, chooser, swapper
        self._guard, self._meter = guard, meter
        self._scale = 1.0
        self._work: U8 | None = None
        self.faces: tuple[Face, ...] = ()
        """Faces of the latest frame that were to be swapped, in capture-size pixels; a new tuple for each frame."""
        self.failure = ""
        """What went wrong in the latest frame that failed, in words; empty when none ever did."""

    def process(self, frame: Frame, quality: Quality, now_s: float) -> Frame:
        """Take one frame from the camera's picture to the one that may be shown.

        Args:
            frame: owned by the pipeline from here on; its pixels are painted into.
            quality: how much work it gets.
            now_s: time of the call; never decreases.

        Returns:
            A frame of the same size and number. Never one with a bare face that was to be swapped, whatever fails.
        """
        try:
            frame, outcome, lost_boxes = self._swapped(frame, quality)
        except Exception as error:
            self.failure = f"{type(error).__name__}: {error}"
            self._meter.count(f"failed {type(error).__name__}")
            log.debug("frame %d failed", frame.seq, exc_info=True)
            outcome, lost_boxes = Outcome.FAILED, ()
        with self._meter.lap("settle"):
            return self._guard.settle(now_s, frame, outcome, lost_boxes)

    def _swapped(self, frame: Frame, quality: Quality) -> tuple[Frame, Outcome, Sequence[F32]]:
        """Locate, then render."""
        work = self._shrunk(frame.pixels, quality.scale)
        sighting = self._tracker.follow(work, frame.t_capture_s, quality.detect_every_n)
        faces, lost_boxes = self._chooser.choose(sighting)
        self._swapper.forget([face.track_id for face in sighting.faces] + list(sighting.lost))
        self.faces = tuple(_scaled(face, 1 / self._scale) for face in faces)
        bare = list(lost_boxes)
        for face in faces:
            done = self._swapper.swap(work, face, frame.t_capture_s, quality.steps)
            if not done or not is_sound(_inside(work, face.box_xyxy)):
                bare.append(face.box_xyxy)
        if len(bare) == len(faces) + len(lost_boxes):
            return frame, Outcome.LOST if bare else Outcome.NO_FACE, ()
        if work is not frame.pixels:
            with self._meter.lap("enlarge"):
                cv2.resize(work, frame.size, dst=frame.pixels, interpolation=cv2.INTER_LINEAR)
        return frame, Outcome.SWAPPED, [box / np.float32(self._scale) for box in bare]

    def _shrunk(self, pixels: U8, scale: float) -> U8:
        """The working picture: the frame itself at full scale, else a smaller copy in a buffer that is kept."""
        if scale != self._scale:
            self._tracker.rescale(scale / self._scale)
            self._scale = scale
        if scale == 1.0:
            return pixels
        width, height = (max(2, math.ceil(side * scale)) for side in pixels.shape[1::-1])
        if self._work is None or self._work.shape[:2] != (height, width):
            self._work = np.empty((height, width, 3), np.uint8)
        with self._meter.lap("shrink"):
            cv2.resize(pixels, (width, height), dst=self._work, interpolation=cv2.INTER_AREA)
        return self._work


def _scaled(face: Face, factor: float) -> Face:
    if factor == 1:
        return face
    k = np.float32(factor)
    return replace(face, box_xyxy=face.box_xyxy * k, points5=face.points5 * k, mesh=face.mesh * k)


def _inside(pixels: U8, box_xyxy: F32) -> U8:
    """The part of the picture in a box."""
    height, width = pixels.shape[:2]
    left, top, right, bottom = np.clip(box_xyxy, 0, (width, height, width, height)).astype(int)
    return pixels[top : bottom + 1, left : right + 1]
