"""The 468-point face mesh as a surface: triangles, texture layout, symmetry and named loops; knows no picture.

The numbering is that of the MediaPipe face mesh (468 points). Triangles, layout and symmetry come from
``assets/face_mesh.npz``, which ``assets/build_face_mesh.py`` makes; left and right are as seen in the picture.

Sums over some hundred points are done with the compiled kernels directly and not through a ``Device``: they are over in
twenty microseconds, which no trip to another device could be.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from engines import raster
from realtime.types import F32

I32 = NDArray[np.int32]

OVAL = (
    10, 338, 297, 332, 284, 251, 389, 356, 454, 323, 361, 288, 397, 365, 379, 378, 400, 377,
    152, 148, 176, 149, 150, 136, 172, 58, 132, 93, 234, 127, 162, 21, 54, 103, 67, 109,
)  # fmt: skip
"""Outer border of the mesh, clockwise in the picture from the middle of the forehead."""

EYE_LEFT = (33, 246, 161, 160, 159, 158, 157, 173, 133, 155, 154, 153, 145, 144, 163, 7)
EYE_RIGHT = (362, 398, 384, 385, 386, 387, 388, 466, 263, 249, 390, 373, 374, 380, 381, 382)
"""Lid contours: the mesh has a hole there."""

LIPS_INNER = (78, 191, 80, 81, 82, 13, 312, 311, 310, 415, 308, 324, 318, 402, 317, 14, 87, 178, 88, 95)
"""Inner border of the lips: the mesh has a hole there."""

LIPS_OUTER = (61, 185, 40, 39, 37, 0, 267, 269, 270, 409, 291, 375, 321, 405, 314, 17, 84, 181, 91, 146)
"""Outer border of the lips."""

BROW_LEFT_TOP = (70, 63, 105, 66, 107)
BROW_RIGHT_TOP = (336, 296, 334, 293, 300)
"""Upper edges of the brows, left to right."""

FOREHEAD = (
    127, 162, 21, 54, 103, 67, 109, 10, 338, 297, 332, 284, 251, 389, 356,
    *reversed(BROW_RIGHT_TOP), 9, *reversed(BROW_LEFT_TOP),
)  # fmt: skip
"""Polygon of the forehead and temples above the brows."""

CHEEKS = (50, 280, 205, 425, 117, 346, 36, 266)
"""Points in the middle of the cheeks: skin on every face that shows any."""


@dataclass(frozen=True, slots=True)
class FaceMesh:
    """The surface.

    Attributes:
        triangles: (852, 3) int32; positive area in picture coordinates (y down) when turned to the camera.
        uv: (468, 2) float32, place in the texture, 0..1, origin at its top left; symmetric about u = 0.5.
        mirror: (468,) int32, the point on the other side of the face.
        canonical: (468, 3) float32, a neutral symmetric face, height 1, x right, y down, z away from the camera.
    """

    triangles: I32
    uv: F32
    mirror: I32
    canonical: F32


@lru_cache(maxsize=1)
def face_mesh() -> FaceMesh:
    """The one surface, loaded once; its arrays are read-only."""
    with np.load(Path(__file__).parent / "assets" / "face_mesh.npz") as data:
        mesh = FaceMesh(
            data["triangles"].astype(np.int32), data["uv"], data["mirror"].astype(np.int32), data["canonical"]
        )
    for array in (mesh.triangles, mesh.uv, mesh.mirror, mesh.canonical):
        array.setflags(write=False)
    return mesh


@dataclass(frozen=True, slots=True)
class TexelMap:
    """Which point of the surface every texel of a square texture shows.

    Attributes:
        corners: (n, n, 3) int32 mesh points of the texel's triangle; -1 outside the surface.
        weights: (n, n, 3) float32 barycentric weights.
    """

    corners: I32
    weights: F32

    @property
    def inside(self) -> NDArray[np.bool_]:
        """(n, n) bool, texels that lie on the surface."""
        return self.corners[..., 0] >= 0

    def interpolate(self, values: F32) -> F32:
        """Spread values of mesh points over the texture.

        Args:
            values: (468, k) float32.

        Returns:
            (n, n, k) float32; 0 outside the surface.
        """
        spread = np.einsum("yxc,yxck->yxk", self.weights, values[np.maximum(self.corners, 0)])
        return spread.astype(np.float32)


@lru_cache(maxsize=4)
def texel_map(n: int) -> TexelMap:
    """The texel map for an n x n texture (texel centres at (i + 0.5) / n)."""
    mesh = face_mesh()
    corners = np.full((n, n, 3), -1, np.int32)
    weights = np.zeros((n, n, 3), np.float32)
    for triangle in mesh.triangles:
        points = mesh.uv[triangle].astype(np.float64) * n - 0.5
        x0, y0 = np.maximum(np.ceil(points.min(0)).astype(int), 0)
        x1, y1 = np.minimum(np.floor(points.max(0)).astype(int), n - 1)
        if x1 < x0 or y1 < y0:
            continue
        xs, ys = np.meshgrid(np.arange(x0, x1 + 1), np.arange(y0, y1 + 1))
        (ax, ay), (bx, by), (cx, cy) = points
        area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
        if area <= 0:
            continue
        wb = ((xs - ax) * (cy - ay) - (ys - ay) * (cx - ax)) / area
        wc = ((ys - ay) * (bx - ax) - (xs - ax) * (by - ay)) / area
        bary = np.stack([1 - wb - wc, wb, wc], -1)
        hit = (bary >= -1e-6).all(-1)
        corners[ys[hit], xs[hit]] = triangle
        weights[ys[hit], xs[hit]] = bary[hit]
    return TexelMap(corners, weights)


def region(n: int, *loops: tuple[int, ...]) -> NDArray[np.uint8]:
    """Fill loops of mesh points in the texture.

    Args:
        n: texture size.
        loops: closed polygons of mesh points.

    Returns:
        (n, n) uint8, 255 inside a loop, 0 outside.
    """
    mask = np.zeros((n, n), np.uint8)
    uv = face_mesh().uv
    for loop in loops:
        cv2.fillPoly(mask, [np.round(uv[list(loop)] * n * 16 - 8).astype(np.int32)], 255, cv2.LINE_AA, shift=4)
    return mask


def depth(n: int) -> F32:
    """How far inside the outer border each texel lies, as a share of the texture.

    Args:
        n: texture size.

    Returns:
        (n, n) float32; 0 outside.
    """
    return _distance((region(n, OVAL) > 127).astype(np.uint8))


def distance_to(n: int, *loops: tuple[int, ...]) -> F32:
    """How far each texel lies from the inside of the loops, as a share of the texture.

    Args:
        n: texture size.
        loops: closed polygons of mesh points.

    Returns:
        (n, n) float32; 0 inside.
    """
    return _distance((region(n, *loops) < 128).astype(np.uint8))


def _distance(mask: NDArray[np.uint8]) -> F32:
    return cv2.distanceTransform(mask, cv2.DIST_L2, cv2.DIST_MASK_PRECISE) / np.float32(mask.shape[0])


MOUTH_SHARE = 0.75
"""Place on the fade that the lips have: they take 0.72 of the shift, the rest of a photo's smile stays in the photo."""


@lru_cache(maxsize=1)
def _fade() -> F32:
    """(468, 1) float32, a Hermite step: 0 at the border of the mesh, less than 1 at the lips, 1 well away from both."""
    n = 256
    column, row = np.clip((face_mesh().uv * n).astype(int), 0, n - 1).T
    fade = np.clip(depth(n)[row, column] / 0.12, 0, 1)
    fade *= MOUTH_SHARE + (1 - MOUTH_SHARE) * np.clip(distance_to(n, LIPS_OUTER)[row, column] / 0.10, 0, 1)
    return (fade * fade * (3 - 2 * fade)).astype(np.float32)[:, None]


@lru_cache(maxsize=1)
def _pairs() -> tuple[I32, I32]:
    """Points of the upper and lower edges of the eyes and the lips that lie above each other."""
    pairs = [
        pair
        for loop in (EYE_LEFT, EYE_RIGHT, LIPS_INNER, LIPS_OUTER)
        for pair in zip(loop[1 : len(loop) // 2], loop[:0:-1], strict=False)
    ]
    upper, lower = np.array(pairs, np.int32).T
    return upper, lower


def smooth_shifts(shifts: F32, rounds: int) -> F32:
    """Average shifts of points over their neighbours, leave openings alone and fade out towards the border.

    Openings: a point of an upper lid or lip and the one below it get the mean of their shifts, so the distance between
    them, which is the person's expression, stays.

    Args:
        shifts: (468, 3) float32; overwritten.
        rounds: how often the mean over neighbours is taken.

    Returns:
        (468, 3) float32, a fresh array.
    """
    upper, lower = _pairs()
    shifts[upper] = shifts[lower] = (shifts[upper] + shifts[lower]) / 2
    raster.relax(shifts, face_mesh().triangles, rounds, np.empty((468, 4), np.float32))
    shifts[upper] = shifts[lower] = (shifts[upper] + shifts[lower]) / 2
    return shifts * _fade()


@lru_cache(maxsize=1)
def steady_points() -> I32:
    """Points that expressions hardly move: everything above the mouth."""
    return np.flatnonzero(face_mesh().canonical[:, 1] < 0.12).astype(np.int32)


def broad_normals(mesh: F32, rounds: int = 9) -> F32:
    """Unit normals of the face's broad shape, towards the camera (negative z) where it is turned to it.

    Broad, because the underside of the nose and the lids point away from the camera and are seen all the same; what
    tells whether a side of the face is seen is its broad shape.

    Args:
        mesh: (468, 3) float32.
        rounds: how often each point takes the mean over its triangles; 0 for the normals themselves.

    Returns:
        (468, 3) float32.
    """
    normals = np.empty((468, 3), np.float32)
    raster.point_normals(mesh, face_mesh().triangles, normals)
    raster.relax(normals, face_mesh().triangles, rounds, np.empty((468, 4), np.float32))
    return normals / (np.linalg.norm(normals, axis=1, keepdims=True) + np.float32(1e-9))


def facing(mesh: F32) -> F32:
    """How well each point is seen, (468,) float32: 1 where the face looks at the camera, 0 from its profile on."""
    t = np.clip(-broad_normals(mesh, 3)[:, 2] / np.float32(0.35), 0, 1)
    return t * t * (3 - 2 * t)


def _strip(upper: tuple[int, ...], lower: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Triangles between two edges of a hole that share their first and last point, both left to right."""
    triangles = []
    for k in range(len(upper) - 1):
        triangles += [(upper[k], upper[k + 1], lower[k + 1]), (upper[k], lower[k + 1], lower[k])]
    return [t for t in triangles if len(set(t)) == 3]


@lru_cache(maxsize=1)
def closed_triangles() -> I32:
    """The surface's triangles and those that close the eyes and the mouth, (898, 3) int32."""
    holes: list[tuple[int, int, int]] = []
    for loop in (EYE_LEFT, EYE_RIGHT, LIPS_INNER):
        half = len(loop) // 2
        holes += _strip(loop[: half + 1], (loop[0], *reversed(loop[half:])))
    return np.concatenate([face_mesh().triangles, np.array(holes, np.int32)])
