"""Makes ``face_mesh.npz``, the surface behind ``realtime.topology``; run by developers only, never by the program.

Knows where the triangles come from and how the texture is laid out; refuses to know what is drawn with it. The
triangles are taken from the source text of MediaPipe, the shape from one photo; the rest is computed from them.

``python -m realtime.assets.build_face_mesh WHEEL PHOTO``: the wheel of ``mediapipe==0.10.14`` for any system, and
``astronaut.png`` out of the wheel ``scikit-image==0.26.0`` (see NOTICE). That photo and not ``sample_source.jpg``: the
grain of a JPEG moves the mesh by a quarter of a pixel. The result is the same on every run.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import zipfile
from pathlib import Path
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from engines.card import load_card
from engines.registry import open_device, open_engine
from realtime import geometry
from realtime.assets import ASSETS
from realtime.landmarks import MeshNet
from realtime.swappers.shape import rigid_fit
from realtime.topology import LIPS_INNER
from realtime.types import F32, F64, U8

I16 = NDArray[np.int16]

MEMBER: Final = "mediapipe/python/solutions/face_mesh_connections.py"
MEMBER_SHA256: Final = "cc7171e44d0612db38720cb2fd2516c395992cdd7457efe341543be6f3c22d87"
PHOTO_SHA256: Final = "88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5"

CROP: Final = (225.6873, 120.9982, 162.9949)
"""Centre x, y and side in pixels of the upright square in which the network looks for the face of the photo: one and a
half times the mesh, about its middle."""
FOREHEAD, CHIN = 10, 152
"""Top and bottom of the middle line, one face height apart."""
EAR_LEFT, EAR_RIGHT = 234, 454
"""Border points before the ears."""
MIRRORED_EDGE: Final = (FOREHEAD, 338, 109)
"""The forehead's top and its neighbours on the border, right and left: all that is given about symmetry."""
DIAGONALS: Final = 6
"""Edges without an opposite: MediaPipe's halves split three quads differently (one at the outer corner of the eye,
two at the nostril)."""

AXIS_BEHIND_EARS: Final = 0.05
"""Place of the cylinder's axis behind the ears, in face heights, so that the border is not seen edge-on from it."""
HEIGHTS_PER_RADIAN: Final = 0.37
"""Width given to an angle on the cylinder, in face heights. Less than its mean radius, 0.51: the sides, which a camera
sees at a slant, get fewer texels."""
MOUTH_WIDTH, MOUTH_OPENING = 0.72, 0.02
"""The texture's mouth: its width over that of the photo's smile, and half its opening in face heights. It is all but
shut, so that the lips get their share of texels whatever the mouth of a source does."""
RELAXATIONS: Final = 7
"""Rounds in which each inner point goes half way to the middle of its neighbours. Shutting the mouth folds ten
triangles of the lips over; from the fifth round on two are left, tiny ones in the corners of the mouth, and from the
tenth on the shrinking lips fold anew."""
MARGIN: Final = 0.02
"""Free border of the texture, as a share of its side."""


def triangles_in(source: str) -> I16:
    """Read the triangles out of MediaPipe's list of edges, which names them three by three.

    Args:
        source: text of ``MEMBER``.

    Returns:
        (n, 3) int16, positive area in the picture (y down) when turned to the camera.

    Raises:
        ValueError: the edges are not those of one triangle after the other.
    """
    listed = source[source.index("FACEMESH_TESSELATION") :]
    edges = np.array(re.findall(r"\((\d+),\s*(\d+)\)", listed), np.int16).reshape(-1, 3, 2)
    if (edges[..., 1] != np.roll(edges[..., 0], -1, axis=1)).any():
        raise ValueError("the edges of FACEMESH_TESSELATION do not form one triangle after the other")
    return np.ascontiguousarray(edges[:, ::-1, 0])


def mirror_of(triangles: I16) -> I16:
    """Find the point opposite each point by walking over both halves of the face at once, nearest first.

    What lies beyond opposite edges is opposite, except at three pairs of quads that the halves split along different
    diagonals. A walk that came to one of these from the wrong side would pair points wrongly, and many edges with them;
    so the result is proved by counting the edges that have no opposite.

    Args:
        triangles: (n, 3) int16.

    Returns:
        (number of points,) int16, an involution.

    Raises:
        ValueError: more edges than the six diagonals have no opposite.
    """
    beyond = {}  # the third point of the triangle of each directed edge
    for a, b, c in triangles.tolist():
        beyond.update({(a, b): c, (b, c): a, (c, a): b})
    middle, right, left = MIRRORED_EDGE
    mirror = {middle: middle, right: left, left: right}
    waiting, walked = [(right, middle), (middle, right)], set()
    for a, b in waiting:  # grows on the way
        opposite = mirror[b], mirror[a]
        if (a, b) in walked or (a, b) not in beyond or opposite not in beyond:
            continue
        walked.add((a, b))
        c, d = beyond[a, b], beyond[opposite]
        if mirror.get(c, d) == d and mirror.get(d, c) == c:
            mirror[c], mirror[d] = d, c
            waiting += [(a, c), (c, a), (c, b), (b, c)]
    edges = {frozenset(edge) for edge in beyond}
    alone = sum(frozenset(mirror.get(point, -1) for point in edge) not in edges for edge in edges)
    if alone > DIAGONALS:
        raise ValueError(f"{alone} edges of the mesh have no opposite, expected {DIAGONALS}")
    return np.array([mirror[point] for point in range(len(mirror))], np.int16)


def mesh_of(photo: U8) -> F32:
    """Find the face of the photo with the embedded network.

    Args:
        photo: (H, W, 3) uint8 BGR.

    Returns:
        (468, 3) float32 in photo pixels, z negative towards the camera.
    """
    card = load_card("face_landmark")
    net = MeshNet(card, open_engine(card), open_device("cpu"))
    mesh, _ = net.locate(photo, geometry.square_crop(CROP[:2], CROP[2], (1, 0), card.inputs[0].shape[1]))
    net.close()
    return mesh


def symmetric(mesh: F32, mirror: I16) -> F32:
    """Average a face with its mirror image and turn it to the camera.

    Args:
        mesh: (468, 3) of a face turned almost to the camera.
        mirror: from ``mirror_of``.

    Returns:
        (468, 3) float32 about its centre, x right, y down, z away from the camera, height 1.
    """
    shape = mesh - mesh.mean(axis=0, dtype=np.float64)
    for _ in range(20):  # the best fitting mirror plane moves a little with each average
        reflected = shape[mirror] * (-1, 1, 1)
        rotation, scale, shift = rigid_fit(reflected, shape)
        shape = (shape + scale * reflected @ rotation.T + shift) / 2
    across, down = shape[EAR_RIGHT] - shape[EAR_LEFT], shape[CHIN] - shape[FOREHEAD]
    x, y, height = across / np.linalg.norm(across), down / np.linalg.norm(down), np.linalg.norm(down)
    return (shape @ np.stack([x, y, np.cross(x, y)], axis=1) / height).astype(np.float32)


def layout(canonical: F32, triangles: I16, mirror: I16) -> F32:
    """Lay the face out as a texture: on a cylinder, with the mouth shut, relaxed.

    Args:
        canonical: (468, 3) from ``symmetric``.
        triangles: (n, 3).
        mirror: (468,).

    Returns:
        (468, 2) float32 u, v in 0..1, symmetric about u = 0.5.
    """
    x, y, z = canonical.astype(np.float64).T
    axis_z = z[[EAR_LEFT, EAR_RIGHT]].mean() + AXIS_BEHIND_EARS
    uv = np.stack([np.arctan2(x, axis_z - z) * HEIGHTS_PER_RADIAN, y], axis=1)
    _shut_mouth(uv)
    uv = _relaxed(uv, triangles, mirror)
    low, high = uv.min(axis=0), uv.max(axis=0)
    return ((uv - (low + high) / 2) * ((1 - 2 * MARGIN) / (high - low).max()) + 0.5).astype(np.float32)


def _shut_mouth(uv: F64) -> None:
    """Give the mouth's hole the form of a thin lens, in place."""
    half = len(LIPS_INNER) // 2
    corners = uv[[LIPS_INNER[0], LIPS_INNER[half]]]
    left, right = corners.mean(axis=0) + MOUTH_WIDTH * (corners - corners.mean(axis=0))
    across = np.linspace(0, 1, half + 1)[:, None]
    line = left + across * (right - left)
    opening = MOUTH_OPENING * np.sin(np.pi * across) * (0, 1)
    uv[list(LIPS_INNER[: half + 1])] = line - opening
    uv[[LIPS_INNER[0], *LIPS_INNER[: half - 1 : -1]]] = line + opening


def _relaxed(uv: F64, triangles: I16, mirror: I16) -> F64:
    """Even out the sizes of the triangles while the border, the lids and the lips keep their place."""
    linked = np.zeros((len(uv), len(uv)))
    for k in range(3):
        linked[triangles[:, k], triangles[:, k - 2]] = 1
    fixed = (linked != linked.T).any(axis=1)  # an edge without a way back is the edge of a hole
    linked = np.maximum(linked, linked.T)
    mean = linked / linked.sum(axis=1, keepdims=True)
    for _ in range(RELAXATIONS):
        moved = np.where(fixed[:, None], uv, (uv + mean @ uv) / 2)
        uv = (moved + moved[mirror] * (-1, 1)) / 2
    return uv


def _verified(data: bytes, sha256: str, name: str) -> bytes:
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise SystemExit(f"{name} has sha256 {found}, expected {sha256}")
    return data


def main(arguments: list[str] | None = None) -> None:
    """Write ``face_mesh.npz`` into the folder of the assets.

    Args:
        arguments: of the command line, without the program; ``None`` for the real ones.
    """
    parser = argparse.ArgumentParser(prog="python -m realtime.assets.build_face_mesh", description=__doc__)
    parser.add_argument("wheel", type=Path, help="of mediapipe 0.10.14")
    parser.add_argument("photo", type=Path, help="astronaut.png of scikit-image 0.26.0")
    given = parser.parse_args(arguments)
    with zipfile.ZipFile(given.wheel) as archive:
        source = _verified(archive.read(MEMBER), MEMBER_SHA256, MEMBER).decode()
    photo = np.frombuffer(_verified(given.photo.read_bytes(), PHOTO_SHA256, given.photo.name), np.uint8)
    triangles = triangles_in(source)
    mirror = mirror_of(triangles)
    canonical = symmetric(mesh_of(np.asarray(cv2.imdecode(photo, cv2.IMREAD_COLOR), np.uint8)), mirror)
    uv = layout(canonical, triangles, mirror)
    np.savez_compressed(ASSETS / "face_mesh.npz", triangles=triangles, uv=uv, mirror=mirror, canonical=canonical)


if __name__ == "__main__":
    main()
