"""Says what part of the swapped face is shown, in texture space; knows opacity, never colour or place.

Two masks, multiplied: a border that is computed once (soft towards the outline, open at the eyes and the mouth, which
stay the person's own), and what stands in front of the face, found without another network by comparing each frame
with a running memory of what this person's face looks like.
"""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np

from realtime import topology
from realtime.types import F32, F64

BORDER = 0.05
"""Width of the soft outline, as a share of the texture."""
CHIN_BORDER = 0.16
"""The same at the lower end: chins differ more in tone (beard, shadow) than the broad light tells."""
EYE_BORDER = 0.022
"""Width of the soft edge around the person's own eyes."""
MOUTH_BORDER = 0.07
"""Width of the soft edge around the person's own inner mouth."""

MEMORY_S = 1.0
"""Time constant of the memory where nothing is in front."""
BLOCKED_MEMORY_S = 12.0
"""The same where something is: what stays for good becomes part of the face's look."""
RELEASE_S = 0.12
"""Time constant with which the mask closes again after something has gone."""
NOISE = 5.0
"""Grey levels that any texel may differ by: sensor noise and compression."""
SHADING = 0.05
"""Share of its own value that a texel may differ by: shading that moves with the head."""
PER_TURN = 2.0
"""What a turn by one radian away from where the memory was made adds to the tolerance, as a multiple of it: glints,
glasses and hair move over a face that turns. More would make it blind to hands, which push the mesh about."""
SUSPECT, CERTAIN = 0.9, 1.6
"""Difference over tolerance at which something may be, and surely is, in front."""
MOST_BLOCKED = 0.6
"""Share of the face above which the memory, not the scene, is taken to be wrong: it starts anew."""

_SMALL = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (5, 5))
_WIDE = cv2.getStructuringElement(cv2.MORPH_RECT, (13, 13))  # a third of the time of an ellipse
_CROSS = cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3))


def smoothstep(x: F32, low: float, high: float) -> F32:
    """Hermite step, float32: 0 at ``low`` and below, 1 at ``high`` and above."""
    t = np.clip((x - low) / (high - low), 0, 1)
    return (t * t * (3 - 2 * t)).astype(np.float32)


@lru_cache(maxsize=2)
def border(n: int) -> F32:
    """Opacity of the swapped face where nothing is in front of it.

    Args:
        n: texture size.

    Returns:
        (n, n) float32 0..1, read-only.
    """
    fine = 4 * n
    depth = topology.depth(fine)
    down = (np.arange(fine, dtype=np.float32)[:, None] + np.float32(0.5)) / np.float32(fine)
    width = BORDER + (CHIN_BORDER - BORDER) * smoothstep(down, 0.65, 0.9)
    opacity = smoothstep((depth - 0.004) / (width - 0.004), 0, 1)
    opacity *= smoothstep(topology.distance_to(fine, topology.EYE_LEFT, topology.EYE_RIGHT), 0, EYE_BORDER)
    opacity *= smoothstep(topology.distance_to(fine, topology.LIPS_INNER), 0, MOUTH_BORDER)
    small = cv2.resize(opacity, (n, n), interpolation=cv2.INTER_AREA)
    small.setflags(write=False)
    return small


class Appearance:
    """Running memory of one person's face in texture space, and what differs from it."""

    def __init__(self) -> None:
        self._mean = self._known = self._deviation = self._blocked = np.zeros((0, 0), np.float32)
        self._direction = np.zeros(3)
        self._age_s = 0.0

    def blocked(self, seen: F32, weight: F32, direction: F64, dt_s: float) -> F32:
        """Compare a frame with the memory, say what is in front of the face, and remember the rest.

        Args:
            seen: (n, n, 3) float32 BGR 0..255, the person's face unwrapped.
            weight: (n, n) float32 0..1, where ``seen`` is meaningful.
            direction: (3,) unit vector in which the face looks.
            dt_s: since the last frame.

        Returns:
            (n, n) float32 0..1, 1 where something is in front. Valid until the next call.
        """
        if not self._mean.size:
            return self._begin(seen, weight, direction)
        self._age_s += dt_s
        known = np.minimum(weight, self._known)
        gain = _exposure(seen, self._mean, known * (1 - self._blocked))
        expected = self._mean * gain
        # Compared with the range of the neighbourhood, so that a mesh that is off by a texel does not count.
        excess = np.maximum(cv2.erode(expected, _CROSS) - seen, seen - cv2.dilate(expected, _CROSS))
        difference = np.maximum(_largest(excess), 0)
        turned = float(np.linalg.norm(direction - self._direction))
        tolerance = (self._deviation + SHADING * _largest(expected)) * np.float32(1 + PER_TURN * turned)
        score = cv2.GaussianBlur(difference / tolerance * known, (0, 0), seen.shape[0] / 32)
        score = cv2.morphologyEx(score, cv2.MORPH_OPEN, _SMALL)  # a glint is nothing
        # A hand is one thing, also where it has the colour of the face.
        score = cv2.morphologyEx(score, cv2.MORPH_CLOSE, _WIDE)
        now = smoothstep(score, SUSPECT, CERTAIN)
        if np.vdot(now, weight) > MOST_BLOCKED * weight.sum():
            return self._begin(seen, weight, direction)
        self._blocked = np.maximum(now, self._blocked * np.float32(np.exp(-dt_s / RELEASE_S)))
        self._remember(seen / gain, difference, weight, dt_s)
        self._direction += (1 - np.exp(-dt_s / MEMORY_S)) * (direction - self._direction)
        return self._blocked

    def _begin(self, seen: F32, weight: F32, direction: F64) -> F32:
        self._direction = direction.copy()
        self._mean, self._known = seen.copy(), weight.copy()
        self._deviation = np.full(seen.shape[:2], NOISE, np.float32)
        self._blocked = np.zeros(seen.shape[:2], np.float32)
        self._age_s = 0.0
        return self._blocked

    def _remember(self, seen: F32, difference: F32, weight: F32, dt_s: float) -> None:
        memory_s = min(MEMORY_S, 0.1 + self._age_s)  # a young memory learns fast
        rate = (1 - np.exp(-dt_s / memory_s)) * (1 - self._blocked) + (1 - np.exp(-dt_s / BLOCKED_MEMORY_S))
        rate = np.clip(rate * weight, 0, 1).astype(np.float32)
        rate = np.maximum(rate, np.clip(weight - self._known, 0, 1))  # what was never seen is learnt at once
        self._known = np.maximum(self._known, weight)
        self._mean += rate[..., None] * (seen - self._mean)
        self._deviation += rate * (np.maximum(difference, NOISE) - self._deviation)


def _largest(picture: F32) -> F32:
    """Largest of three channels; numpy's own reduction over so short an axis is five times slower."""
    return np.maximum(np.maximum(picture[..., 0], picture[..., 1]), picture[..., 2])


def _exposure(seen: F32, expected: F32, weight: F32) -> F32:
    """Factor per channel that takes the memory to the present exposure, (3,): the median, which a hand cannot move."""
    known = weight[::2, ::2] > 0.5  # every second texel tells as much
    if not known.any():
        return np.ones(3, np.float32)
    ratio = (seen[::2, ::2][known] + 1) / (expected[::2, ::2][known] + 1)
    return np.clip(np.median(ratio, axis=0), 0.5, 2).astype(np.float32)
