"""Steadies a face mesh in time; knows one face's points and speeds, no pictures."""

from __future__ import annotations

import math

import numpy as np

from realtime.types import F32

CUTOFF_HZ = 1.2
"""Cut-off for a face that keeps still: from frame to frame, the network's jitter (some 0.3 % of the face's height) is
less than a third of what it was, at 30 frames/s."""
CUTOFF_PER_SPEED = 26.0
"""Added cut-off in Hz for each face height per second: a moving face is followed within a hundredth of its height."""
SPEED_CUTOFF_HZ = 2.0
"""Cut-off of the speed estimate: low, so that jitter does not look like motion."""
LONGEST_GAP_S = 0.25
"""After a longer gap the past says nothing; the filter starts anew."""


def cutoff_hz(smoothing: float) -> float:
    """The cut-off for a face that keeps still.

    Args:
        smoothing: 0..1; 0.5 is ``CUTOFF_HZ``, 0 four times that, 1 a quarter of it.
    """
    return float(CUTOFF_HZ * 4 ** (1 - 2 * smoothing))


def _share(cutoff_hz: float | F32, dt_s: float) -> F32:
    """Share of the new value that a first-order low-pass takes in after ``dt_s``."""
    step = np.asarray(cutoff_hz, np.float32) * np.float32(2 * math.pi * dt_s)
    return step / (step + 1)


class MeshSmoother:
    """One-Euro filter over the points of one face.

    Source: G. Casiez, N. Roussel, D. Vogel, "1 Euro Filter", CHI 2012. Two changes: speeds are in face heights per
    second, so that near and far faces behave alike; and the whole face's motion counts for every point, because the
    mean over 468 points tells motion from jitter long before one point can.
    """

    def __init__(self) -> None:
        self._mesh: F32 | None = None
        self._speed: F32 | None = None
        self._last_s = 0.0

    def smooth(self, mesh: F32, now_s: float, cutoff_hz: float = CUTOFF_HZ) -> F32:
        """Take in a measured mesh.

        Args:
            mesh: (n, 3) float32 in pixels.
            now_s: when its frame was captured. A stamp that repeats or goes back counts as a gap.
            cutoff_hz: for a face that keeps still.

        Returns:
            (n, 3) float32, the steadied mesh; the caller's.
        """
        dt_s = now_s - self._last_s
        self._last_s = now_s
        if self._mesh is None or self._speed is None or not 0 < dt_s <= LONGEST_GAP_S:
            self._mesh, self._speed = mesh.copy(), np.zeros_like(mesh)
            return mesh.copy()
        height = max(float(np.ptp(mesh[:, 1])), 1.0)
        step = mesh - self._mesh
        self._speed += _share(SPEED_CUTOFF_HZ, dt_s) * (step / (height * dt_s) - self._speed)
        x, y = self._speed[:, 0], self._speed[:, 1]
        whole_x, whole_y = float(x.mean()), float(y.mean())
        speed = math.hypot(whole_x, whole_y) + np.hypot(x - whole_x, y - whole_y)
        self._mesh += _share(cutoff_hz + CUTOFF_PER_SPEED * speed, dt_s)[:, None] * step
        return self._mesh.copy()
