"""The path of one frame, read top to bottom; knows the order of the steps, not what they are made of."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np

from realtime import reduced
from realtime.enhance import Enhancer
from realtime.errors import EngineError, LiveError
from realtime.guard import Guard, Outcome, is_sound
from realtime.meter import Meter
from realtime.people.cast import Cast
from realtime.people.choose import Chooser
from realtime.swappers import Swapper
from realtime.track import Sighting, Tracker
from realtime.types import F32, U8, Face, Frame, Quality

log = logging.getLogger(__name__)

EAGER = 5
"""How many times as often newcomers are looked for where they would be swapped: until found, they are shown bare. With
a look every 5 frames that is one in every frame: half a second for the 15 views of a 16:9 picture at 30 frames/s."""


class Pipeline:
    """Locates the faces of a frame, swaps the chosen ones and settles what may be shown. Used by one thread.

    Args:
        tracker: finds and follows faces.
        cast: says whose faces may be swapped, and by which swapper.
        chooser: says which of them are swapped.
        swappers: one for each face that is shown; they paint over.
        guard: decides what is shown instead of a face that was not swapped.
        meter: gets the laps, and a counter ``failed <kind>`` for each kind of failure.
        on_event: told in words of each kind of failure, the first time.
        enhancer: makes the new faces finer, where there is one.
    """

    def __init__(
        self,
        tracker: Tracker,
        cast: Cast,
        chooser: Chooser,
        swappers: Sequence[Swapper],
        guard: Guard,
        meter: Meter,
        on_event: Callable[[str], None] = lambda _: None,
        enhancer: Enhancer | None = None,
    ) -> None:
        self._tracker, self._cast, self._chooser, self._swappers = tracker, cast, chooser, swappers
        self._guard, self._meter, self._on_event, self._enhancer = guard, meter, on_event, enhancer
        self._failures: set[str] = set()
        self.faces: tuple[Face, ...] = ()
        """Faces of the latest frame that were to be swapped, in its pixels; a new tuple for each frame. Any thread."""
        self.failure = ""
        """What went wrong in the latest frame that failed, in words; empty when none ever did. Any thread."""

    def process(self, frame: Frame, quality: Quality, now_s: float) -> Frame:
        """Take one frame from the camera's picture to the one that may be shown.

        Args:
            frame: owned by the pipeline from here on; its pixels are painted into.
            quality: how much work it gets.
            now_s: time of the call; never decreases. A film goes by its own time instead.

        Returns:
            A frame of the same size and number. Never one with a bare face that was to be swapped, whatever fails.
        """
        try:
            outcome, bare = self._swap_chosen(frame, quality)
        except Exception as error:
            self.faces, outcome, bare = (), Outcome.FAILED, []
            self._note(type(error).__name__, error)
            log.debug("frame %d failed", frame.seq, exc_info=True)
        with self._meter.lap("settle"):
            return self._guard.settle(now_s if frame.film_s is None else frame.film_s, frame, outcome, bare)

    def _swap_chosen(self, frame: Frame, quality: Quality) -> tuple[Outcome, list[F32]]:
        """Locate, cast, choose and swap. Returns the outcome, and the boxes of bare faces in a swapped picture."""
        sighting = self._locate(frame, quality)
        wanted = self._cast.wanted(frame.pixels, sighting, frame.scene_s)
        self.faces, lost_boxes = self._chooser.choose(wanted)
        for swapper in self._swappers:
            swapper.forget([*(face.track_id for face in sighting.faces), *sighting.lost])
        bare = [*lost_boxes, *(face.box_xyxy for face in self.faces if not self._swap(frame, face, quality))]
        if len(bare) < len(self.faces) + len(lost_boxes):
            return Outcome.SWAPPED, bare
        if bare:
            return Outcome.LOST, []
        # People who are left alone on purpose may be seen; where nobody is, somebody may have been overlooked.
        return (Outcome.SWAPPED if sighting.faces else Outcome.NO_FACE), []

    def _locate(self, frame: Frame, quality: Quality) -> Sighting:
        every_n = quality.detect_every_n
        if self._chooser.has_room and self._cast.has_room:
            every_n = max(1, every_n // EAGER)
        return self._tracker.follow(frame.pixels, frame.scene_s, every_n)

    def _swap(self, frame: Frame, face: Face, quality: Quality) -> bool:
        """Swap one face. Says whether the person may be shown; a network that fails on one face spoils no other."""
        swapper = self._swappers[self._cast.role(face.track_id)]
        try:
            if not reduced.swap(swapper, frame.pixels, face, frame.scene_s, quality.steps, quality.scale):
                return False
        except EngineError as error:
            self._note(type(error).__name__, error)
            return False
        if not is_sound(_middle(frame.pixels, face.box_xyxy)):
            self._note("black picture", "the swapper painted a face black")
            return False
        if self._enhancer is not None:
            self._finish(self._enhancer, frame, face, swapper, quality)
        return True

    def _finish(self, enhancer: Enhancer, frame: Frame, face: Face, swapper: Swapper, quality: Quality) -> None:
        """Make a swapped face finer. Where that fails, the face is as good as before and may be shown."""
        try:
            enhancer.enhance(frame.pixels, face, swapper.painted, quality.steps)
        except EngineError as error:
            self._note("enhancer", error, "faces are shown as they are swapped, not made finer")

    def _note(
        self, kind: str, what: Exception | str, outcome: str = "pictures cannot be swapped and are not shown"
    ) -> None:
        """Remember and count a failure, and tell of it if it is the first of its kind."""
        self.failure = f"{what.message}; {what.hint}" if isinstance(what, LiveError) else f"{kind}: {what}"
        self._meter.count(f"failed {kind}")
        if kind not in self._failures:
            self._failures.add(kind)
            self._on_event(f"{outcome}: {self.failure}")


def _middle(pixels: U8, box_xyxy: F32) -> U8:
    """The middle third of what is in view of a face: every swapper paints there, and it holds no background."""
    height, width = pixels.shape[:2]
    left, top, right, bottom = (int(side) for side in np.clip(box_xyxy, 0, (width, height, width, height)))
    x, y = (right - left) // 3, (bottom - top) // 3
    return pixels[top + y : bottom - y + 1, left + x : right - x + 1]
