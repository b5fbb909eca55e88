"""The path of one frame, read top to bottom; knows the order of the steps, not what they are made of."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from engines.contract import Device
from realtime import reduced
from realtime.enhance import Enhancer
from realtime.errors import EngineError, LiveError
from realtime.guard import Guard, Outcome, is_sound
from realtime.meter import Meter
from realtime.people.cast import Cast
from realtime.people.choose import Chooser
from realtime.swappers import Swapper
from realtime.track import Sighting, Tracker
from realtime.types import F32, U8, Face, Frame, Quality, Size

log = logging.getLogger(__name__)

ONLY_AS_SWAPPED = "faces are shown as they are swapped, not made finer"
EAGER = 5
"""How many times as often newcomers are looked for where they would be swapped: until found, they are shown bare. With
a look every 5 frames that is one in every frame: half a second for the 15 views of a 16:9 picture at 30 frames/s."""


@dataclass(frozen=True, slots=True)
class Painters:
    """What paints.

    Attributes:
        device: that the frames are worked on.
        swappers: one for each face that is shown.
        enhancer: makes the new faces finer, where there is one.
    """

    device: Device
    swappers: Sequence[Swapper]
    enhancer: Enhancer | None = None


@dataclass(slots=True)
class Begun:
    """A frame in flight.

    Attributes:
        frame: as it came, until it is finished.
        painters: that work on it.
        faces: that were to be swapped.
        bare: boxes of those that were not, and of those that are lost.
        swapped: the others.
        anybody: whether any face was seen at all.
        failed: whether the work on it broke off.
    """

    frame: Frame
    painters: Painters
    faces: tuple[Face, ...] = ()
    bare: list[F32] = field(default_factory=list)
    swapped: list[Face] = field(default_factory=list)
    anybody: bool = False
    failed: bool = False


class Pipeline:
    """Locates the faces of a frame, swaps the chosen ones and settles what may be shown. Used by one thread.

    The path has two halves, because a device may work ahead: what ``begin`` has started, ``finish`` waits for, and in
    between another frame may begin.

    Args:
        tracker: finds and follows faces.
        cast: says whose faces may be swapped, and by which swapper.
        chooser: says which of them are swapped.
        painters: they paint over.
        guard: decides what is shown instead of a face that was not swapped.
        meter: gets the laps, and a counter ``failed <kind>`` for each kind of failure.
        on_event: told in words of each kind of failure, the first time, and of what the device remarks.
    """

    def __init__(
        self,
        tracker: Tracker,
        cast: Cast,
        chooser: Chooser,
        painters: Painters,
        guard: Guard,
        meter: Meter,
        on_event: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.tracker, self._cast, self.chooser = tracker, cast, chooser
        self.guard, self._meter, self._on_event = guard, meter, on_event
        self.on_begin: Callable[[Frame], None] | None = None
        """Called with each frame before anything is painted; may be replaced by any thread. It must be quick."""
        self._failures: set[str] = set()
        self.painters = painters
        """What paints the frames that begin from now on; may be replaced by any thread."""
        self.in_view: tuple[Face, ...] = ()
        """All faces of the latest frame, in its pixels; a new tuple for each frame. Any thread."""
        self.size = Size(0, 0)
        """Of the latest frame. Any thread."""
        self.faces: tuple[Face, ...] = ()
        """Faces of the latest frame that were to be swapped, in its pixels; a new tuple for each frame. Any thread."""
        self.failure = ""
        """What went wrong in the latest frame that failed, in words; empty when none ever did. Any thread."""

    def process(self, frame: Frame, quality: Quality, now_s: float) -> Frame:
        """Take one frame all the way: ``begin`` and ``finish``."""
        return self.finish(self.begin(frame, quality), now_s)

    def begin(self, frame: Frame, quality: Quality) -> Begun:
        """Locate the faces of a frame and start to swap them.

        Args:
            frame: owned by the pipeline from here on; its pixels are painted into.
            quality: how much work it gets.

        Returns:
            What ``finish`` takes.
        """
        begun = Begun(frame, self.painters)
        if look := self.on_begin:
            look(frame)
        self._attempt(begun, partial(self._start, begun, quality))
        self.faces = begun.faces
        return begun

    def finish(self, begun: Begun, now_s: float) -> Frame:
        """Wait for the work on a frame and settle what may be shown.

        Args:
            begun: from ``begin``, in the order of the calls.
            now_s: time of the call; never decreases. A film goes by its own time instead.

        Returns:
            A frame of the same size and number. Never one with a bare face that was to be swapped, whatever fails.
        """
        self._attempt(begun, partial(self._take_back, begun))
        self.faces, frame = begun.faces, begun.frame
        with self._meter.lap("settle"):
            film_or_now_s = now_s if frame.film_s is None else frame.film_s
            return self.guard.settle(film_or_now_s, frame, *_outcome(begun))

    def _attempt(self, begun: Begun, work: Callable[[], None]) -> None:
        """Do one half of the work; whatever breaks it off is a reason not to show the frame as it is."""
        try:
            work()
        except Exception as error:
            begun.failed, begun.faces = True, ()
            self._note(type(error).__name__, error)
            log.debug("frame %d failed", begun.frame.seq, exc_info=True)

    def _start(self, begun: Begun, quality: Quality) -> None:
        """Locate, cast, choose and swap."""
        frame, painters = begun.frame, begun.painters
        painters.device.begin(frame.pixels)
        sighting = self._locate(frame, quality)
        wanted = self._cast.wanted(frame.pixels, sighting, frame.scene_s)
        begun.faces, lost_boxes = self.chooser.choose(wanted)
        begun.bare += lost_boxes
        begun.anybody = bool(sighting.faces)
        self.in_view, self.size = sighting.faces, frame.size
        for swapper in painters.swappers:
            swapper.forget([*(face.track_id for face in sighting.faces), *sighting.lost])
        for face in begun.faces:
            if self._swap(begun, face, quality):
                begun.swapped.append(face)
            else:
                begun.bare.append(face.box_xyxy)
        painters.device.submit(frame.pixels)

    def _take_back(self, begun: Begun) -> None:
        """Wait for the device, and see whether the faces really were painted."""
        pixels = begun.frame.pixels
        report = begun.painters.device.finish(pixels)
        for step, cost_ms in report.laps_ms.items():
            self._meter.note_lap(f"gpu {step}", cost_ms)
        for remark in report.remarks:
            self._on_event(remark)
        failed = set()
        for who, error, bares in report.failures:
            if bares:
                failed.add(who)
                self._note(type(error).__name__, error)
            else:
                self._note("enhancer", error, ONLY_AS_SWAPPED)
        started, begun.swapped = begun.swapped, []
        for face in started:
            if face.track_id not in failed and self._is_sound(pixels, face):
                begun.swapped.append(face)
            else:
                begun.bare.append(face.box_xyxy)

    def _is_sound(self, pixels: U8, face: Face) -> bool:
        if is_sound(_middle(pixels, face.box_xyxy)):
            return True
        self._note("black picture", "the swapper painted a face black")
        return False

    def _locate(self, frame: Frame, quality: Quality) -> Sighting:
        every_n = quality.detect_every_n
        if self.chooser.has_room and self._cast.has_room:
            every_n = max(1, every_n // EAGER)
        return self.tracker.follow(frame.pixels, frame.scene_s, every_n)

    def _swap(self, begun: Begun, face: Face, quality: Quality) -> bool:
        """Swap one face. Says whether the person may be shown; a network that fails on one face spoils no other."""
        frame, painters = begun.frame, begun.painters
        swapper = painters.swappers[self._cast.role(face.track_id)]
        try:
            if not reduced.swap(swapper, frame.pixels, face, frame.scene_s, quality.steps, quality.scale):
                return False
        except EngineError as error:
            self._note(type(error).__name__, error)
            return False
        if painters.enhancer is not None:
            self._refine(painters.enhancer, frame, face, swapper, quality)
        return True

    def _refine(self, enhancer: Enhancer, frame: Frame, face: Face, swapper: Swapper, quality: Quality) -> None:
        """Make a swapped face finer. Where that fails, the face is as good as before and may be shown."""
        try:
            enhancer.enhance(frame.pixels, face, swapper.painted, quality.steps)
        except EngineError as error:
            self._note("enhancer", error, ONLY_AS_SWAPPED)

    def _note(
        self, kind: str, what: Exception | str, outcome: str = "pictures cannot be swapped and are not shown"
    ) -> None:
        """Remember and count a failure, and tell of it if it is the first of its kind."""
        self.failure = f"{what.message}; {what.hint}" if isinstance(what, LiveError) else f"{kind}: {what}"
        self._meter.count(f"failed {kind}")
        if kind not in self._failures:
            self._failures.add(kind)
            self._on_event(f"{outcome}: {self.failure}")


def _outcome(begun: Begun) -> tuple[Outcome, list[F32]]:
    """Say what became of a frame, and the boxes of bare faces in a swapped picture."""
    if begun.failed:
        return Outcome.FAILED, []
    if begun.swapped:
        return Outcome.SWAPPED, begun.bare
    if begun.bare:
        return Outcome.LOST, []
    # People who are left alone on purpose may be seen; where nobody is, somebody may have been overlooked.
    return (Outcome.SWAPPED if begun.anybody else Outcome.NO_FACE), []


def _middle(pixels: U8, box_xyxy: F32) -> U8:
    """The middle third of what is in view of a face: every swapper paints there, and it holds no background."""
    height, width = pixels.shape[:2]
    left, top, right, bottom = (int(side) for side in np.clip(box_xyxy, 0, (width, height, width, height)))
    x, y = (right - left) // 3, (bottom - top) // 3
    return pixels[top + y : bottom - y + 1, left + x : right - x + 1]
