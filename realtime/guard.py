"""Decides what is shown when a face is not swapped; the one place that does, and pure in time.

The rule: a picture in which not every wanted face was swapped is never shown as it is, unless the person asked for
that (``raw``), and then only after ``hold_s``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from realtime.frost import frost, frost_box
from realtime.types import F32, U8, Frame, Size

OnLost = Literal["hold", "blur", "card", "raw"]

BLACK_BELOW = 4.0
"""A picture (0..255) with no brighter value is black: what a broken network gives. Sensor noise alone is brighter."""


class Outcome(Enum):
    """What became of the wanted faces of one frame."""

    SWAPPED = "swapped"  # every wanted face that is in the picture, or all but those named as lost
    NO_FACE = "no face"  # no face is in view, as far as is known
    LOST = "lost"  # a wanted face was followed and is not found any more
    FAILED = "failed"  # a step raised, or made a broken picture


def is_sound(picture: NDArray[Any]) -> bool:
    """Whether what a step made can be a picture: finite, and not black.

    Args:
        picture: any shape, values in 0..255.
    """
    if picture.dtype.kind == "f" and not np.isfinite(picture).all():
        return False
    return bool(picture.size) and float(picture.max()) >= BLACK_BELOW


class Guard:
    """Holds, blurs or replaces what must not be shown.

    Args:
        on_lost: what follows the held picture. ``blur``: the picture, frosted beyond recognition. ``card``: a placard.
            ``hold``: the last swapped picture for as long as it takes. ``raw``: the bare picture.
        hold_s: seconds for which the last swapped picture stays first.
        make_card: a new picture (H, W, 3) uint8 BGR of the size asked for, for ``card``.
        make_blank: the same, for ``blank``.

    Attributes:
        on_lost: see above; this and the two below may be changed by any thread.
        hold_s: see above.
        blank: show a card instead of any picture.
    """

    def __init__(
        self,
        on_lost: OnLost,
        hold_s: float,
        make_card: Callable[[Size], U8],
        make_blank: Callable[[Size], U8] | None = None,
    ) -> None:
        self.on_lost: OnLost = on_lost
        self.hold_s = hold_s
        self.blank = False
        self._make_card, self._make_blank = make_card, make_blank or make_card
        self._card: U8 | None = None
        self._held: Frame | None = None
        self._swapped_s = -math.inf  # last picture that was swapped; at first, the first picture at all
        self._complete_s = -math.inf  # the same, without a lost face in it

    def settle(self, now_s: float, frame: Frame, outcome: Outcome, lost_boxes: Sequence[F32] = ()) -> Frame:
        """Make the picture that may be shown.

        A swapped picture comes back as it is, the parts of ``lost_boxes`` frosted. Anything else comes back as:

        - the last swapped picture, with the new ``seq`` and its own old ``t_capture_s``. It is not a new picture, and
          an old stamp says so: whoever measures latency counts a frame only when its stamp is newer than the last;
        - this picture, frosted in place, or (``raw``) as it is: it is new, with its own stamp;
        - the card, with this frame's stamp.

        Args:
            now_s: time of the decision; never decreases from call to call.
            frame: the pipeline's picture, not shown to anyone yet. The guard may paint into it; afterwards it belongs
                to the sinks, and nothing the guard returned is ever painted again.
            outcome: what became of it.
            lost_boxes: faces (4,) left, top, right, bottom in pixels that are in a ``SWAPPED`` picture unswapped.

        Returns:
            A frame of the same ``seq`` and size.
        """
        if self._swapped_s == -math.inf:
            self._swapped_s = self._complete_s = now_s
        if self.blank:
            self._held = None  # what was shown before comes back when it is swapped again, and not before
            return replace(frame, pixels=self._make_blank(frame.size))
        if outcome is not Outcome.SWAPPED:
            return self._instead(now_s, frame)
        self._swapped_s = now_s
        if not lost_boxes:
            self._complete_s = now_s
        elif self._bare_allowed(now_s - self._complete_s):
            return frame  # and not kept: what the person allowed to be shown once is not shown again
        for box in lost_boxes:
            frost_box(frame.pixels, box)
        self._held = frame
        return frame

    def _instead(self, now_s: float, frame: Frame) -> Frame:
        waited_s = now_s - self._swapped_s
        held = self._held
        if held is not None and held.size == frame.size and (self.on_lost == "hold" or waited_s <= self.hold_s):
            return replace(held, seq=frame.seq)
        if self._bare_allowed(waited_s):
            return frame
        if self.on_lost == "card":
            return replace(frame, pixels=self._card_of(frame.size))
        frost(frame.pixels)
        return frame

    def _bare_allowed(self, waited_s: float) -> bool:
        return self.on_lost == "raw" and waited_s > self.hold_s

    def _card_of(self, size: Size) -> U8:
        if self._card is None or self._card.shape[:2] != (size.h, size.w):
            self._card = self._make_card(size)
        return self._card
