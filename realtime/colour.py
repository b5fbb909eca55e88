"""Gives the swapped face the light of the scene, in texture space; knows low frequencies, no features.

The factor between the two faces' blurred textures carries tone, exposure and the direction of the light; everything
finer, which is what makes the source face itself, is left alone.
"""

from __future__ import annotations

import cv2
import numpy as np

from realtime.types import F32

BLUR = 0.30
"""Sigma of the blur as a share of the texture. Measured on five clips: the wider, the more the result looks like the
source (a narrow blur paints the person's own shadows back); at 0.30 the light of a window at one side still arrives."""

SETTLE_S = 0.35
"""Time constant of the factors: longer than sensor noise and hands, shorter than a lamp is switched."""

FACTOR_RANGE = (0.15, 5.0)
"""Limits of the factors: beyond them the picture is too dark or burnt out to tell."""

CELLS = 16
"""Side of the blurred pictures: so wide a blur loses nothing in it, and costs a fiftieth of one at 64."""


def blurred(texture: F32, weight: F32) -> F32:
    """Blur a texture, counting only where the weight is.

    Args:
        texture: (n, n, 3) float32.
        weight: (n, n) float32, 0..1.

    Returns:
        (``CELLS``, ``CELLS``, 3) float32; the overall mean where there is no weight near.
    """
    weighted = cv2.resize(texture * weight[..., None], (CELLS, CELLS), interpolation=cv2.INTER_AREA)
    weight = cv2.resize(weight, (CELLS, CELLS), interpolation=cv2.INTER_AREA)
    mean = weighted.sum((0, 1)) / (weight.sum() + 1e-6)
    total = cv2.GaussianBlur(weight, (0, 0), BLUR * CELLS)[..., None]
    return (cv2.GaussianBlur(weighted, (0, 0), BLUR * CELLS) + 1e-3 * mean) / (total + 1e-3)


class LightTransfer:
    """The light that one followed person stands in, smoothed in time."""

    def __init__(self) -> None:
        self._scene: F32 | None = None

    def scene(self, person: F32, weight: F32, dt_s: float) -> F32:
        """Take in what is seen of the person.

        Args:
            person: (n, n, 3) float32 BGR 0..255, the person's face unwrapped.
            weight: (n, n) float32 0..1: 1 on skin that is seen, 0 on hair, lips, eyes and whatever is in front.
            dt_s: since the last frame.

        Returns:
            ``blurred`` of the person's face, steadied. Valid until the next call.
        """
        now = blurred(person, weight)
        if self._scene is None:
            self._scene = now
        self._scene += np.float32(1 - np.exp(-dt_s / SETTLE_S)) * (now - self._scene)
        return self._scene


def factors(scene: F32, source: F32, share: float) -> F32:
    """Say by what a source texture must be multiplied to stand in a scene's light.

    Args:
        scene: ``blurred`` of the person's face.
        source: ``blurred`` of the source texture.
        share: how much of the light it takes, 0..1.

    Returns:
        (``CELLS``, ``CELLS``, 3) float32.
    """
    ratio = np.clip((scene + 2) / (source + 2), *FACTOR_RANGE)
    return ratio if share == 1 else ratio ** np.float32(share)
