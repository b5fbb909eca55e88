"""The nouns of the stage: frozen, slotted, host-side values; knows shapes and owners, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
U8 = NDArray[np.uint8]


class Size(NamedTuple):
    """A picture size in pixels, always (width, height)."""

    w: int
    h: int

    def __str__(self) -> str:
        return f"{self.w}x{self.h}"


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture on its way through the program.

    Attributes:
        seq: number given by the source, from 0; gaps are frames that were dropped.
        t_capture_s: ``time.perf_counter()`` when the driver or decoder handed the picture over. Stamped once by the
            source and never again; capture-to-sink latency is measured from it.
        film_s: seconds from the start of a film whose pictures come as fast as they are worked on; ``None`` for
            pictures that come when they are due.
        pixels: (H, W, 3) uint8 BGR, C-contiguous. Belongs to whoever holds the frame: a source never touches the
            array again after ``read()`` has returned it, the pipeline may paint into it, and once it is handed to the
            sinks nobody writes to it any more (several sinks read the same array).
    """

    seq: int
    t_capture_s: float
    pixels: U8
    film_s: float | None = None

    @property
    def scene_s(self) -> float:
        """Time in the scene, in seconds: what moves, fades and is forgotten goes by it, however long the work takes."""
        return self.t_capture_s if self.film_s is None else self.film_s

    @property
    def size(self) -> Size:
        """Width and height in pixels."""
        return Size(self.pixels.shape[1], self.pixels.shape[0])


@dataclass(frozen=True, slots=True)
class Face:
    """One face in one frame, in capture-size pixels (x right, y down, origin at the corner of the first pixel).

    Attributes:
        box_xyxy: (4,) float32, left, top, right, bottom; may reach outside the frame.
        score: 0..1, how sure the detector (new face) or the mesh network (tracked face) is.
        points5: (5, 2) float32: left eye, right eye, nose tip, left and right mouth corner, as seen in the picture
            (the order of every alignment template).
        mesh: (468, 3) float32, x and y in pixels, z in the same unit (negative towards the camera).
        track_id: stable while the same face is followed, from 1, never used again.
        age_frames: frames since a detector (not the tracker) last confirmed this face.
    """

    box_xyxy: F32
    score: float
    points5: F32
    mesh: F32
    track_id: int
    age_frames: int


@dataclass(frozen=True, slots=True)
class Quality:
    """How much work the next frames get; chosen by ``budget.py`` only.

    Attributes:
        scale: size of the working picture over the capture size, in (0, 1].
        detect_every_n: frames between two looks for newcomers, >= 1.
        steps: names of the optional steps that run (see ``swappers.OPTIONAL_STEPS``).
        in_flight: frames that are worked on at a time where the device works ahead: 1 for the least latency, 2 for more
            pictures per second.
    """

    scale: float
    detect_every_n: int
    steps: frozenset[str]
    in_flight: int = 1
