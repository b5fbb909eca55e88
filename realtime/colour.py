"""Gives the swapped face the light of the scene, in texture space; knows low frequencies, no features.

The factor between the two faces' blurred textures carries tone, exposure and the direction of the light; everything
finer, which is what makes the source face itself, is left alone.
"""

from __future__ import annotations

import cv2
import numpy as np

from realtime.types import F32

BLUR = 0.30
"""Sigma of the blur as a share of the texture. Measured on twenty clips: the wider, the more the result looks like the
source (a narrow blur paints the person's own shadows back); at 0.30 the light of a window at one side still arrives."""

SETTLE_S = 0.35
"""Time constant of the factors: longer than sensor noise and hands, shorter than a lamp is switched."""

FACTOR_RANGE = (0.15, 5.0)
"""Limits of the factors: beyond them the picture is too dark or burnt out to tell."""


def blurred(texture: F32, weight: F32) -> F32:
    """Blur a texture, counting only where the weight is.

    Args:
        texture: (n, n, 3) float32.
        weight: (n, n) float32, 0..1.

    Returns:
        (n, n, 3) float32; the overall mean where there is no weight near.
    """
    sigma = BLUR * texture.shape[0]
    mean = (texture * weight[..., None]).sum((0, 1)) / (weight.sum() + 1e-6)
    total = cv2.GaussianBlur(weight, (0, 0), sigma)[..., None]
    return (cv2.GaussianBlur(texture * weight[..., None], (0, 0), sigma) + 1e-3 * mean) / (total + 1e-3)


class LightTransfer:
    """Factors for one followed person, smoothed in time."""

    def __init__(self) -> None:
        self._scene: F32 | None = None

    def factors(self, person: F32, weight: F32, source_blurred: F32, dt_s: float) -> F32:
        """Say by what the source texture must be multiplied to stand in this person's light.

        Args:
            person: (n, n, 3) float32 BGR 0..255, the person's face unwrapped.
            weight: (n, n) float32 0..1: 1 on skin that is seen, 0 on hair, lips, eyes and whatever is in front.
            source_blurred: (n, n, 3) float32, ``blurred`` of the source texture.
            dt_s: since the last frame.

        Returns:
            (n, n, 3) float32.
        """
        scene = blurred(person, weight)
        if self._scene is None:
            self._scene = scene
        self._scene += np.float32(1 - np.exp(-dt_s / SETTLE_S)) * (scene - self._scene)
        return np.clip((self._scene + 2) / (source_blurred + 2), *FACTOR_RANGE)
