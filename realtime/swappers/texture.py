"""Turns a photo of a face into a texture of bare skin; knows the one photo, never the person in view.

Runs once for each source photo. What the photo does not show of the face, or shows covered (hair, fringe, hat), is
completed from the mirrored half and from the skin around it.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from realtime import topology
from realtime.masks import smoothstep
from realtime.types import F32, U8

TEXTURE_PX = 512
"""Side of the source texture. A face 500 px high in the picture fills it once."""

_WORK_PX = 256
"""Side of the maps on which skin is judged and filled: low frequencies only."""

SIDE_LIGHT = 0.03
"""Sigma of the tone that both halves get the same, as a share of the texture: finer than the shadow beside a nose,
coarser than a brow."""


@dataclass(frozen=True, slots=True)
class FaceTexture:
    """A source face, unwrapped.

    Attributes:
        levels: mip pyramid of (n, n, 3) uint8 BGR textures, n = 512, 256, 128, 64; made once, read-only.
        low: (64, 64, 3) float32 BGR 0..255, the texture averaged down, for the low-frequency colour transfer.
        mesh: (468, 3) float32, the mesh in the photo, in photo pixels.
    """

    levels: tuple[U8, ...]
    low: F32
    mesh: F32


def spread(values: F32, weight: F32) -> F32:
    """Fill the places of low weight smoothly from those of high weight (push-pull on an image pyramid).

    Args:
        values: (n, n, c) float32, n a power of two.
        weight: (n, n) float32, 0..1.

    Returns:
        (n, n, c) float32: ``values`` where the weight is 1, interpolated elsewhere.
    """
    if values.shape[0] <= 2:
        total = max(float(weight.sum()), 1e-6)
        mean = (values * weight[..., None]).sum((0, 1)) / total
        return np.broadcast_to(mean, values.shape).astype(np.float32)
    coarse_weight = cv2.pyrDown(weight)
    coarse = cv2.pyrDown(values * weight[..., None]) / np.maximum(coarse_weight, 1e-6)[..., None]
    filled = spread(coarse.astype(np.float32), np.clip(coarse_weight * 4, 0, 1))
    up = cv2.resize(filled, values.shape[1::-1], interpolation=cv2.INTER_LINEAR)
    return (values * weight[..., None] + up * (1 - weight[..., None])).astype(np.float32)


def unwrap_photo(photo: U8, mesh: F32, n: int) -> F32:
    """Lay the face of a photo out as a texture.

    Args:
        photo: (H, W, 3) uint8 BGR.
        mesh: (468, 3) float32 in photo pixels.
        n: side of the texture.

    Returns:
        (n, n, 3) float32 BGR 0..255; outside the surface the photo's first pixel, to be filled.
    """
    height_px = float(np.ptp(mesh[:, 1]))
    shrink = min(1.0, n / max(height_px, 1.0))
    if shrink < 1:
        photo = cv2.resize(photo, None, fx=shrink, fy=shrink, interpolation=cv2.INTER_AREA)
    # OpenCV counts from the centre of the first pixel, the mesh from its corner.
    place = topology.texel_map(n).interpolate(mesh[:, :2] * np.float32(shrink) - np.float32(0.5))
    texture = cv2.remap(photo, place[..., 0], place[..., 1], cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    return texture.astype(np.float32)


def _shown(mesh: F32, photo: U8, n: int) -> F32:
    """How well the photo shows each texel, 0..1: turned to the camera and inside the picture."""
    facing = -topology.broad_normals(mesh)[:, 2]
    height, width = photo.shape[:2]
    x, y = mesh[:, 0], mesh[:, 1]
    inside = (x >= 0) & (y >= 0) & (x <= width) & (y <= height)
    weight = smoothstep(facing, 0.35, 0.65) * inside
    return topology.texel_map(n).interpolate(weight[:, None].astype(np.float32))[..., 0]


def _complete_by_mirror(texture: F32, shown: F32) -> tuple[F32, F32]:
    """Take from the other half of the face what this half does not show, with the light of this half."""
    mirrored, mirrored_shown = texture[:, ::-1], shown[:, ::-1]
    n = texture.shape[0]
    blur = (0, 0), n / 8
    both = np.minimum(shown, mirrored_shown)
    norm = cv2.GaussianBlur(both, *blur)[..., None] + 1e-4
    here = cv2.GaussianBlur(texture * both[..., None], *blur) + 1e-2
    there = cv2.GaussianBlur(np.ascontiguousarray(mirrored) * both[..., None], *blur) + 1e-2
    trust = np.clip(norm * 4, 0, 1)
    ratio = np.clip(here / there, 0.6, 1.6) * trust + (1 - trust)
    take = (mirrored_shown * (1 - shown))[..., None]
    return (texture * (1 - take) + mirrored * ratio * take).astype(np.float32), np.maximum(shown, mirrored_shown)


def _skin_likeness(texture: F32) -> F32:
    """How much each texel looks like the skin of the cheeks, 0..1 (Mahalanobis distance in CIE Lab)."""
    n = texture.shape[0]
    lab = cv2.cvtColor(np.clip(texture, 0, 255).astype(np.float32) / 255, cv2.COLOR_BGR2Lab)
    uv = topology.face_mesh().uv[list(topology.CHEEKS)]
    mask = np.zeros((n, n), np.uint8)
    for u, v in uv:
        cv2.circle(mask, (int(u * n), int(v * n)), n // 20, 255, -1)
    samples = lab[mask > 0]
    centre = np.median(samples, 0)
    near = samples[np.abs(samples - centre).sum(1) <= np.percentile(np.abs(samples - centre).sum(1), 80)]
    # Floors: shading alone moves lightness by some 9 units and chroma by some 3 over one face.
    spread_lab = np.maximum(near.std(0), [9.0, 3.5, 3.5])
    distance = np.sqrt((((lab - centre) / spread_lab) ** 2).sum(-1))
    return 1 - smoothstep(distance.astype(np.float32), 2.2, 3.6)


def _covered(texture: F32) -> tuple[F32, F32]:
    """Judge which part of the forehead and temples is hair, hat or glasses.

    Args:
        texture: (n, n, 3) float32.

    Returns:
        (m, m) float32 0..1 covered, and (m, m) float32 0..1 likeness to skin, m = 256.
    """
    n = _WORK_PX
    small = cv2.resize(texture, (n, n), interpolation=cv2.INTER_AREA)
    likeness = _skin_likeness(cv2.GaussianBlur(small, (0, 0), n / 150))
    forehead = topology.region(n, topology.FOREHEAD)
    hair = ((1 - likeness) * (forehead > 127) > 0.5).astype(np.uint8)
    hair = cv2.morphologyEx(hair, cv2.MORPH_OPEN, _disc(5))  # a mole or a wrinkle is no hair
    hair = cv2.morphologyEx(cv2.dilate(hair, _disc(11)), cv2.MORPH_CLOSE, _disc(21))
    return hair.astype(np.float32), likeness


def _bare_skin(texture: F32, covered: F32, likeness: F32) -> F32:
    """Replace what covers the forehead and temples in the photo by skin spread from around it."""
    n = _WORK_PX
    small = cv2.resize(texture, (n, n), interpolation=cv2.INTER_AREA)
    features = topology.region(n, topology.EYE_LEFT, topology.EYE_RIGHT, topology.LIPS_OUTER) | _brows(n)
    features = cv2.dilate(features, _disc(9))
    surface = topology.texel_map(n).inside
    donor = (surface & (covered < 0.5) & (features == 0)) * likeness
    filled = spread(small, donor.astype(np.float32))
    replace = np.clip(cv2.GaussianBlur(covered, (0, 0), n / 70) * 1.6, 0, 1) * (1 - _soft(_brows(n), n / 120))
    big = texture.shape[1::-1]
    replace, filled = cv2.resize(replace, big)[..., None], cv2.resize(filled, big, interpolation=cv2.INTER_CUBIC)
    return (texture * (1 - replace) + filled * replace).astype(np.float32)


def _without_side_light(texture: F32, surface: F32) -> F32:
    """Give both halves of the face the same broad tone, so that the photo's lamp does not follow the person about."""
    sigma = SIDE_LIGHT * texture.shape[0]
    total = cv2.GaussianBlur(surface, (0, 0), sigma)[..., None] + 1e-3
    tone = (cv2.GaussianBlur(texture * surface[..., None], (0, 0), sigma) + 1) / total
    return (texture * np.clip(np.sqrt(tone[:, ::-1] / tone), 0.6, 1.6)).astype(np.float32)


def _disc(px: int) -> U8:
    return cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (px, px))


def _soft(mask: U8, sigma_px: float) -> F32:
    return cv2.GaussianBlur(mask, (0, 0), sigma_px).astype(np.float32) / 255


def _brows(n: int) -> U8:
    left = (*topology.BROW_LEFT_TOP, 55, 65, 52, 53, 46)
    right = (*topology.BROW_RIGHT_TOP, 276, 283, 282, 295, 285)
    return topology.region(n, left, right)


def build_texture(photo: U8, mesh: F32) -> FaceTexture:
    """Unwrap, complete and clean the face of a photo.

    Args:
        photo: (H, W, 3) uint8 BGR.
        mesh: (468, 3) float32 in photo pixels.

    Returns:
        The texture; independent of the arguments.
    """
    texture = unwrap_photo(photo, mesh, TEXTURE_PX)
    surface = topology.texel_map(TEXTURE_PX).inside.astype(np.float32)
    shown = _shown(mesh, photo, TEXTURE_PX) * surface
    covered, _ = _covered(texture)
    shown *= 1 - cv2.resize(covered, shown.shape, interpolation=cv2.INTER_LINEAR)
    texture, shown = _complete_by_mirror(texture, shown)
    covered, likeness = _covered(texture)
    covered = np.maximum(covered, (cv2.resize(shown, covered.shape) < 0.5).astype(np.float32))
    texture = _bare_skin(texture, covered, likeness)
    texture = _without_side_light(texture, surface)
    texture = spread(texture, surface)
    levels = [np.clip(texture + 0.5, 0, 255).astype(np.uint8)]
    while levels[-1].shape[0] > 64:
        levels.append(cv2.pyrDown(levels[-1]))
    low = cv2.resize(texture, (64, 64), interpolation=cv2.INTER_AREA).astype(np.float32)
    return FaceTexture(tuple(levels), low, mesh.copy())
