"""Compiled kernels that draw a textured triangle mesh into a picture; knows triangles and textures, not what they show.

Every kernel releases the GIL, allocates nothing and writes only into the arrays it is given. Compiled code is cached on
disk, so the compiler runs once on a machine (``doppelcam warm``), about two seconds.

Coordinates count from the centre of the first pixel. A mesh point is x, y in pixels and z in the same unit, smaller is
nearer; a triangle with positive area (x right, y down) faces the viewer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]

ATTRIBUTES = 5
"""Values carried by a mesh point: u and v in the texture (0..1), opacity (0..1), and the offset dx, dy in pixels from
the drawn place to the place in the original picture that belongs there."""

_FAR = np.float32(1e30)
_kernel = njit(cache=True, nogil=True, fastmath=True)


@_kernel
def rasterise(xyz: Array, attributes: Array, triangles: Array, out: Array, depth: Array) -> None:
    """Interpolate the attributes of the nearest triangle at every pixel.

    Args:
        xyz: (n, 3) float32 mesh points.
        attributes: (n, 5) float32, see ``ATTRIBUTES``.
        triangles: (m, 3) int32; those that face away are skipped.
        out: (h, w, 5) float32; written only where a triangle is drawn.
        depth: (h, w) float32; overwritten with the z of what is drawn, 1e30 where nothing is.
    """
    height, width = depth.shape
    depth[:] = _FAR
    for t in range(triangles.shape[0]):
        a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        ax, ay, bx, by, cx, cy = xyz[a, 0], xyz[a, 1], xyz[b, 0], xyz[b, 1], xyz[c, 0], xyz[c, 1]
        area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
        if area <= np.float32(1e-6):
            continue
        inverse = np.float32(1) / area
        x0, x1 = max(0, int(np.ceil(min(ax, bx, cx)))), min(width - 1, int(np.floor(max(ax, bx, cx))))
        y0, y1 = max(0, int(np.ceil(min(ay, by, cy)))), min(height - 1, int(np.floor(max(ay, by, cy))))
        step_b, step_c = (cy - ay) * inverse, (ay - by) * inverse  # barycentric weights are linear in x
        for y in range(y0, y1 + 1):
            px, py = np.float32(x0) - ax, np.float32(y) - ay
            wb = (px * (cy - ay) - py * (cx - ax)) * inverse
            wc = (py * (bx - ax) - px * (by - ay)) * inverse
            for x in range(x0, x1 + 1):
                wa = np.float32(1) - wb - wc
                if min(wa, wb, wc) >= np.float32(-1e-4):  # a hair of overlap closes the seams
                    z = wa * xyz[a, 2] + wb * xyz[b, 2] + wc * xyz[c, 2]
                    if z < depth[y, x]:
                        depth[y, x] = z
                        for k in range(ATTRIBUTES):
                            out[y, x, k] = wa * attributes[a, k] + wb * attributes[b, k] + wc * attributes[c, k]
                wb += step_b
                wc += step_c


@_kernel
def _corner(x: Any, y: Any, width: int, height: int) -> Any:
    """Top left pixel and the four weights of a bilinear sample, clamped to the picture."""
    x = min(max(x, np.float32(0)), np.float32(width) - np.float32(1.001))
    y = min(max(y, np.float32(0)), np.float32(height) - np.float32(1.001))
    i, j = int(x), int(y)
    fx, fy = x - np.float32(i), y - np.float32(j)
    gx, gy = np.float32(1) - fx, np.float32(1) - fy
    return i, j, gx * gy, fx * gy, gx * fy, fx * fy


@_kernel
def _sample(picture: Array, i: int, j: int, a: Any, b: Any, c: Any, d: Any, k: int) -> Any:
    """Channel ``k`` of a bilinear sample."""
    return a * picture[j, i, k] + b * picture[j, i + 1, k] + c * picture[j + 1, i, k] + d * picture[j + 1, i + 1, k]


@_kernel
def paint(picture: Array, original: Array, attributes: Array, depth: Array, texture: Array, light: Array) -> None:
    """Blend the texture, in the light of the scene, over the original where the mesh was drawn.

    Args:
        picture: (h, w, 3) uint8, a view of the part of the picture that the mesh covers; painted into.
        original: (h, w, 3) uint8, the same part before painting.
        attributes: (h, w, 5) float32 from ``rasterise``.
        depth: (h, w) float32 from ``rasterise``.
        texture: (n, n, 3) uint8.
        light: (m, m, 4) float32, laid out like the texture: a factor for each channel, and opacity 0..1.
    """
    height, width = depth.shape
    side, light_side = texture.shape[0], light.shape[0]
    half = np.float32(0.5)
    for y in range(height):
        for x in range(width):
            if depth[y, x] >= _FAR:
                continue
            u, v = attributes[y, x, 0], attributes[y, x, 1]
            li, lj, la, lb, lc, ld = _corner(u * light_side - half, v * light_side - half, light_side, light_side)
            opacity = attributes[y, x, 2] * _sample(light, li, lj, la, lb, lc, ld, 3)
            dx, dy = attributes[y, x, 3], attributes[y, x, 4]
            if opacity < np.float32(0.004) and abs(dx) + abs(dy) < np.float32(0.02):
                continue
            oi, oj, oa, ob, oc, od = _corner(np.float32(x) + dx, np.float32(y) + dy, width, height)
            ti, tj, ta, tb, tc, td = _corner(u * side - half, v * side - half, side, side)
            for k in range(3):
                below = _sample(original, oi, oj, oa, ob, oc, od, k)
                lit = _sample(texture, ti, tj, ta, tb, tc, td, k) * _sample(light, li, lj, la, lb, lc, ld, k)
                value = below + opacity * (min(lit, np.float32(255)) - below)
                picture[y, x, k] = np.uint8(value + half)


@_kernel
def unwrap(picture: Array, xy: Array, corners: Array, weights: Array, out: Array, seen: Array) -> None:
    """Lay what a mesh covers in a picture out as a texture.

    Args:
        picture: (h, w, 3) uint8, at least 2 pixels each way.
        xy: (n, 2) float32 mesh points in its pixels.
        corners: (m, m, 3) int32 mesh points of each texel's triangle, -1 where there is no surface.
        weights: (m, m, 3) float32 barycentric weights.
        out: (m, m, 3) float32; written only where the surface lies inside the picture.
        seen: (m, m) float32; overwritten with 1 where ``out`` was written, else 0.
    """
    height, width = picture.shape[0], picture.shape[1]
    for t in range(corners.shape[0]):
        for s in range(corners.shape[1]):
            a, b, c = corners[t, s, 0], corners[t, s, 1], corners[t, s, 2]
            seen[t, s] = 0
            if a < 0:
                continue
            wa, wb, wc = weights[t, s, 0], weights[t, s, 1], weights[t, s, 2]
            x = wa * xy[a, 0] + wb * xy[b, 0] + wc * xy[c, 0]
            y = wa * xy[a, 1] + wb * xy[b, 1] + wc * xy[c, 1]
            if x < 0 or y < 0 or x > width - 1 or y > height - 1:
                continue
            seen[t, s] = 1
            i, j, p, q, r, z = _corner(x, y, width, height)
            for k in range(3):
                out[t, s, k] = _sample(picture, i, j, p, q, r, z, k)
