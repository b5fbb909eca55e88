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

ATTRIBUTES = 8
"""Values carried by a mesh point: u and v in the texture (0..1); opacity (0..1); the offset dx, dy in pixels from the
drawn place to the place in the original picture that belongs there; a factor for each channel of the texture."""

_ONE = np.uintp(1)
_NONE = np.float32(1 / 256)  # a share below it changes no grey level
_kernel = njit(cache=True, nogil=True, fastmath=True)


@_kernel
def rasterise(xyz: Array, triangles: Array, nearest: Array, depth: Array) -> None:
    """Find the nearest triangle at every pixel.

    Args:
        xyz: (n, 3) float32 mesh points.
        triangles: (m, 3) int32; those that face away are skipped.
        nearest: (h, w) int16; overwritten with the number of the triangle, -1 where there is none.
        depth: (h, w) float32; scratch, overwritten.
    """
    height, width = depth.shape
    depth[:] = np.float32(1e30)
    nearest[:] = -1
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
        za, zb, zc = xyz[a, 2], xyz[b, 2] - xyz[a, 2], xyz[c, 2] - xyz[a, 2]
        for y in range(y0, y1 + 1):
            px, py = np.float32(x0) - ax, np.float32(y) - ay
            wb = (px * (cy - ay) - py * (cx - ax)) * inverse
            wc = (py * (bx - ax) - px * (by - ay)) * inverse
            for x in range(x0, x1 + 1):
                if min(np.float32(1) - wb - wc, wb, wc) >= np.float32(-1e-4):  # a hair of overlap closes the seams
                    z = za + wb * zb + wc * zc
                    if z < depth[y, x]:
                        depth[y, x] = z
                        nearest[y, x] = t
                wb += step_b
                wc += step_c


@_kernel
def planes(xyz: Array, attributes: Array, triangles: Array, out: Array) -> None:
    """Write each attribute of each triangle as a linear function of the pixel: p * x + q * y + r.

    A picture of interpolated attributes would be a hundred times larger than these numbers and fall out of the cache.

    Args:
        xyz: (n, 3) float32 mesh points.
        attributes: (n, 8) float32, see ``ATTRIBUTES``.
        triangles: (m, 3) int32.
        out: (m, 8, 3) float32; overwritten with p, q, r where the triangle faces the viewer.
    """
    for t in range(triangles.shape[0]):
        a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        ux, uy, vx, vy = xyz[b, 0] - xyz[a, 0], xyz[b, 1] - xyz[a, 1], xyz[c, 0] - xyz[a, 0], xyz[c, 1] - xyz[a, 1]
        area = ux * vy - uy * vx
        if area <= np.float32(1e-6):
            continue
        inverse = np.float32(1) / area
        for k in range(ATTRIBUTES):
            value = attributes[a, k]
            along_b, along_c = attributes[b, k] - value, attributes[c, k] - value
            p, q = (along_b * vy - along_c * uy) * inverse, (along_c * ux - along_b * vx) * inverse
            out[t, k, 0], out[t, k, 1], out[t, k, 2] = p, q, value - p * xyz[a, 0] - q * xyz[a, 1]


@_kernel
def _corner(x: Any, y: Any, width: Any, height: Any) -> Any:
    """Top left pixel and the four weights of a bilinear sample, clamped to the picture."""
    x = min(max(x, np.float32(0)), width - np.float32(1.001))
    y = min(max(y, np.float32(0)), height - np.float32(1.001))
    i, j = np.uintp(x), np.uintp(y)  # unsigned: no check for Python's negative indices
    fx, fy = x - np.float32(np.int64(i)), y - np.float32(np.int64(j))
    gx, gy = np.float32(1) - fx, np.float32(1) - fy
    return i, j, gx * gy, fx * gy, gx * fy, fx * fy


@_kernel
def _sample(picture: Array, i: int, j: int, a: Any, b: Any, c: Any, d: Any, k: int) -> Any:
    """Channel ``k`` of a bilinear sample. Single precision: numba makes integer times float a double, twice as slow."""
    right, below = i + _ONE, j + _ONE
    upper = a * np.float32(picture[j, i, k]) + b * np.float32(picture[j, right, k])
    return upper + c * np.float32(picture[below, i, k]) + d * np.float32(picture[below, right, k])


@_kernel
def _at(planes: Array, t: int, k: int, x: Any, y: Any) -> Any:
    """Attribute ``k`` of triangle ``t`` at a pixel."""
    return planes[t, k, 0] * x + planes[t, k, 1] * y + planes[t, k, 2]


@_kernel
def paint(picture: Array, original: Array, nearest: Array, planes: Array, texture: Array, opacity: Array) -> None:
    """Blend the texture, in the light of the scene, over the original where the mesh was drawn.

    Args:
        picture: (h, w, 3) uint8, a view of the part of the picture that the mesh covers; painted into.
        original: (h, w, 3) uint8, the same part before painting.
        nearest: (h, w) int16 from ``rasterise``.
        planes: (m, 8, 3) float32 from ``planes``.
        texture: (n, n, 3) uint8.
        opacity: (o, o, 2) float32 0..1, laid out like the texture: its opacity, and how much of the offset applies.
    """
    height, width = nearest.shape
    side, fine = np.float32(texture.shape[0]), np.float32(opacity.shape[0])  # an integer would make it all double
    right, bottom = np.float32(width), np.float32(height)
    half, full = np.float32(0.5), np.float32(255)
    for row in range(height):
        for column in range(width):
            t = nearest[row, column]
            if t < 0:
                continue
            x, y = np.float32(column), np.float32(row)
            u, v = _at(planes, t, 0, x, y), _at(planes, t, 1, x, y)
            mi, mj, ma, mb, mc, md = _corner(u * fine - half, v * fine - half, fine, fine)
            share = _at(planes, t, 2, x, y) * _sample(opacity, mi, mj, ma, mb, mc, md, 0)
            moved = _sample(opacity, mi, mj, ma, mb, mc, md, 1)
            dx, dy = moved * _at(planes, t, 3, x, y), moved * _at(planes, t, 4, x, y)
            if share < _NONE and abs(dx) + abs(dy) < np.float32(0.02):
                continue
            ti, tj, ta, tb, tc, td = _corner(u * side - half, v * side - half, side, side)
            if share > np.float32(1) - _NONE:
                for k in range(3):
                    lit = _sample(texture, ti, tj, ta, tb, tc, td, k) * _at(planes, t, 5 + k, x, y)
                    picture[row, column, k] = np.uint8(min(lit, full) + half)
                continue
            oi, oj, oa, ob, oc, od = _corner(x + dx, y + dy, right, bottom)
            for k in range(3):
                below = _sample(original, oi, oj, oa, ob, oc, od, k)
                lit = _sample(texture, ti, tj, ta, tb, tc, td, k) * _at(planes, t, 5 + k, x, y)
                picture[row, column, k] = np.uint8(below + share * (min(lit, full) - below) + half)


@_kernel
def unwrap(picture: Array, xy: Array, facing: Array, corners: Array, weights: Array, out: Array, seen: Array) -> None:
    """Lay what a mesh covers in a picture out as a texture.

    Args:
        picture: (h, w, 3) uint8, at least 2 pixels each way.
        xy: (n, 2) float32 mesh points in its pixels.
        facing: (n,) float32, how well each point is seen.
        corners: (m, m, 3) int32 mesh points of each texel's triangle, -1 where there is no surface.
        weights: (m, m, 3) float32 barycentric weights.
        out: (m, m, 3) float32; written only where the surface lies inside the picture.
        seen: (m, m) float32; overwritten with ``facing`` where ``out`` was written, else 0.
    """
    width, height = np.float32(picture.shape[1]), np.float32(picture.shape[0])
    for t in range(corners.shape[0]):
        for s in range(corners.shape[1]):
            a, b, c = corners[t, s, 0], corners[t, s, 1], corners[t, s, 2]
            seen[t, s] = 0
            if a < 0:
                continue
            wa, wb, wc = weights[t, s, 0], weights[t, s, 1], weights[t, s, 2]
            x = wa * xy[a, 0] + wb * xy[b, 0] + wc * xy[c, 0]
            y = wa * xy[a, 1] + wb * xy[b, 1] + wc * xy[c, 1]
            if x < 0 or y < 0 or x > width - np.float32(1) or y > height - np.float32(1):
                continue
            seen[t, s] = wa * facing[a] + wb * facing[b] + wc * facing[c]
            i, j, p, q, r, z = _corner(x, y, width, height)
            for k in range(3):
                out[t, s, k] = _sample(picture, i, j, p, q, r, z, k)


@_kernel
def point_normals(xyz: Array, triangles: Array, out: Array) -> None:
    """Sum the normals of the triangles at each point, weighted by their areas.

    Args:
        xyz: (n, 3) float32 mesh points.
        triangles: (m, 3) int32.
        out: (n, 3) float32; overwritten, not of unit length, towards the viewer (negative z) on what faces it.
    """
    out[:] = 0
    for t in range(triangles.shape[0]):
        a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        ux, uy, uz = xyz[c, 0] - xyz[a, 0], xyz[c, 1] - xyz[a, 1], xyz[c, 2] - xyz[a, 2]
        vx, vy, vz = xyz[b, 0] - xyz[a, 0], xyz[b, 1] - xyz[a, 1], xyz[b, 2] - xyz[a, 2]
        nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
        for k in range(3):
            p = triangles[t, k]
            out[p, 0] += nx
            out[p, 1] += ny
            out[p, 2] += nz


@_kernel
def relax(values: Array, triangles: Array, rounds: int, scratch: Array) -> None:
    """Replace each point's values by the mean over the triangles that it belongs to, several times.

    Args:
        values: (n, 3) float32; overwritten.
        triangles: (m, 3) int32.
        rounds: how often.
        scratch: (n, 4) float32; overwritten.
    """
    for _ in range(rounds):
        scratch[:] = 0
        for t in range(triangles.shape[0]):
            a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
            for k in range(3):
                mean = (values[a, k] + values[b, k] + values[c, k]) / np.float32(3)
                scratch[a, k] += mean
                scratch[b, k] += mean
                scratch[c, k] += mean
            scratch[a, 3] += 1
            scratch[b, 3] += 1
            scratch[c, 3] += 1
        for p in range(values.shape[0]):
            if scratch[p, 3] > 0:
                for k in range(3):
                    values[p, k] = scratch[p, k] / scratch[p, 3]
