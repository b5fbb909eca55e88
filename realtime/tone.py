"""Gives a new face the tone of the one that it covers, steadied in time; knows means and deviations, no pictures."""

from __future__ import annotations

import math

import numpy as np

from realtime.types import F32

SETTLE_S = 0.35
"""Time constant: longer than sensor noise and hands, shorter than a lamp is switched (as in ``colour``)."""
MOST_GAIN = 1.3
"""Contrast is not raised or lowered by more than this: hair over a cheek is contrast, and no model to follow."""


class ToneTransfer:
    """The tone of one followed person against that of the face made of them."""

    def __init__(self) -> None:
        self._gain: F32 = np.ones(3, np.float32)
        self._offset: F32 = np.zeros(3, np.float32)
        self._begun = False

    def step(self, before: F32, after: F32, share: float, dt_s: float) -> tuple[F32, F32]:
        """Take in one frame.

        Args:
            before: (2, 3) float32, mean and standard deviation of blue, green and red of the person's face.
            after: (2, 3) float32, the same of the new face.
            share: how much of the tone is taken over, 0..1.
            dt_s: since the last frame.

        Returns:
            What the new face is multiplied by and what is added then, each (3,) float32 BGR. Valid until the next call.
        """
        contrast = (before[1] + 1) / (after[1] + 1)
        gain = np.minimum(np.maximum(contrast, 1 / MOST_GAIN), MOST_GAIN)  # half the time of np.clip, for so few
        gain = 1 + np.float32(share) * (gain - 1)
        made = np.minimum(np.maximum(after[0], 0), 255)  # one wild frame must not be remembered for seconds
        offset = made + np.float32(share) * (before[0] - made) - gain * made
        rate = np.float32(1 - math.exp(-dt_s / SETTLE_S)) if self._begun else np.float32(1)
        self._begun = True
        self._gain += rate * (gain - self._gain)
        self._offset += rate * (offset - self._offset)
        return self._gain, self._offset
