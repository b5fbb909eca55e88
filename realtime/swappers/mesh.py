"""Swaps by drawing the source photo as a textured face mesh over the tracked face: the rung that needs no model.

Everything that is judged is judged in texture space, a picture of 64 x 64, so its cost does not depend on the size of
the face; only drawing touches pixels, and only those of the face.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import cv2
import numpy as np

from engines.contract import Device
from realtime import masks, topology
from realtime.colour import LightTransfer, blurred
from realtime.meter import Meter
from realtime.swappers import OBSTACLES
from realtime.swappers.shape import Shape, ShapeTransfer
from realtime.swappers.texture import FaceTexture
from realtime.types import F32, U8, Face

JUDGED_PX = 64
"""Side of the texture in which light and obstacles are judged."""
LIGHT_PX = 128
"""Side of the map of light and opacity that is drawn with; finer, for the edges at the eyes and the mouth."""
TEXELS_PER_PX = 1.8
"""Texels of the source texture for each pixel drawn: more than one keeps it sharp, much more makes it sparkle."""
LEAST_FACE_PX = 12
"""Faces lower than this are left to the policy for lost faces: there is nothing to recognise in them."""
_HALF_PIXEL = np.array(
    [0.5, 0.5, 0], np.float32
)  # faces count from the corner of the first pixel, devices from its centre


@dataclass(frozen=True, slots=True)
class MeshLook:
    """How the new face looks.

    Attributes:
        likeness: how far the features move to where the source has them, 0..1.
        colour: how far the face takes the tone and light of the scene, 0..1.
        opacity: of the new face, 0..1.
        obstacles: keep what is in front of the face in front.
    """

    likeness: float = 1.0
    colour: float = 1.0
    opacity: float = 1.0
    obstacles: bool = True


@dataclass(frozen=True, slots=True)
class MeshIdentity:
    """A source face, made once from one photo.

    Attributes:
        texture: the unwrapped photo.
        shape: of the face in it.
        light: (64, 64, 3) float32, its blurred texture.
    """

    texture: FaceTexture
    shape: Shape
    light: F32


def skin_weight(n: int) -> F32:
    """Where a face shows skin that tells the light: not the border, the eyes or the lips. (n, n) float32 0..1."""
    features = topology.region(n, topology.EYE_LEFT, topology.EYE_RIGHT, topology.LIPS_OUTER)
    features = cv2.dilate(features, np.ones((3, 3), np.uint8)).astype(np.float32) / 255
    inside = (topology.region(n, topology.OVAL) > 127).astype(np.uint8)
    depth = cv2.distanceTransform(inside, cv2.DIST_L2, cv2.DIST_MASK_PRECISE) / np.float32(n)
    return (1 - features) * masks.smoothstep(depth, 0.03, 0.10)


def identity_of(texture: FaceTexture) -> MeshIdentity:
    """Derive once what does not change from frame to frame."""
    return MeshIdentity(texture, Shape(texture.mesh), blurred(texture.low, skin_weight(JUDGED_PX)))


class _Person:
    """What is remembered of one followed person."""

    def __init__(self) -> None:
        self.appearance = masks.Appearance()
        self.light = LightTransfer()
        self.shape = ShapeTransfer()
        self.last_s: float | None = None


class MeshSwapper:
    """Draws source faces over followed faces. Used by one thread; keeps one frame's scratch and each person's memory."""

    def __init__(self, device: Device, photos: tuple[MeshIdentity, ...], look: MeshLook, meter: Meter) -> None:
        self._device, self._photos, self._look, self._meter = device, photos, look, meter
        self._people: dict[int, _Person] = {}
        self._texels = topology.texel_map(JUDGED_PX)
        self._skin = skin_weight(JUDGED_PX)
        self._triangles = topology.closed_triangles()
        self._border = masks.border(LIGHT_PX)
        self._seen = np.zeros((JUDGED_PX, JUDGED_PX, 3), np.float32)
        self._known = np.zeros((JUDGED_PX, JUDGED_PX), np.float32)
        self._light = np.ones((LIGHT_PX, LIGHT_PX, 4), np.float32)
        self._attributes = np.zeros((468, 5), np.float32)
        self._attributes[:, :2] = topology.face_mesh().uv

    def swap(self, pixels: U8, face: Face, now_s: float, steps: Collection[str]) -> bool:
        """See :class:`realtime.swappers.Swapper`."""
        person = self._people.setdefault(face.track_id, _Person())
        dt_s = 0.0 if person.last_s is None else max(0.0, now_s - person.last_s)
        person.last_s = now_s
        mesh = face.mesh - _HALF_PIXEL
        shape = Shape(mesh)
        photo = self._photos[0]
        moved = mesh + shape.to_picture(self._look.likeness * person.shape.offsets(photo.shape, shape, dt_s))
        box = _rectangle(moved, mesh, pixels.shape)
        if box is None or np.ptp(mesh[:, 1]) < LEAST_FACE_PX:
            return False
        left, top, right, bottom = box
        part = pixels[top:bottom, left:right]
        corner = np.array([left, top, 0], np.float32)
        facing = masks.smoothstep(-topology.broad_normals(mesh, 2)[:, 2], 0.0, 0.35)
        self._judge(part, mesh - corner, facing, person, photo, dt_s, OBSTACLES in steps)
        self._attributes[:, 2] = facing * self._look.opacity
        self._attributes[:, 3:] = (mesh - moved)[:, :2]
        with self._meter.lap("draw"):
            texture = _level(photo.texture, float(np.ptp(mesh[:, 1])))
            self._device.draw(part, moved - corner, self._attributes, self._triangles, texture, self._light)
        return True

    def forget(self, followed: Collection[int]) -> None:
        """See :class:`realtime.swappers.Swapper`."""
        for track_id in [track_id for track_id in self._people if track_id not in followed]:
            del self._people[track_id]

    def _judge(
        self, part: U8, mesh: F32, facing: F32, person: _Person, photo: MeshIdentity, dt_s: float, obstacles: bool
    ) -> None:
        """Fill the map of light and opacity from what is seen of the person."""
        with self._meter.lap("judge"):
            self._device.unwrap(part, mesh, self._texels.corners, self._texels.weights, self._seen, self._known)
            weight = self._known * self._texels.interpolate(facing[:, None])[..., 0]
            opacity = self._border
            if obstacles and self._look.obstacles:
                blocked = person.appearance.blocked(self._seen, weight, dt_s)
                weight = weight * (1 - blocked)
                opacity = opacity * (1 - cv2.resize(blocked, (LIGHT_PX, LIGHT_PX)))
            factors = person.light.factors(self._seen, weight * self._skin, photo.light, dt_s)
            if self._look.colour < 1:
                factors = factors**self._look.colour
            self._light[..., :3] = cv2.resize(factors, (LIGHT_PX, LIGHT_PX))
            self._light[..., 3] = opacity


def _rectangle(moved: F32, mesh: F32, shape: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    """The part of the picture that both meshes cover: left, top, right, bottom; ``None`` when it is empty."""
    low = np.floor(np.minimum(moved.min(0), mesh.min(0))[:2]).astype(int) - 1
    high = np.ceil(np.maximum(moved.max(0), mesh.max(0))[:2]).astype(int) + 2
    left, top = max(int(low[0]), 0), max(int(low[1]), 0)
    right, bottom = min(int(high[0]), shape[1]), min(int(high[1]), shape[0])
    return (left, top, right, bottom) if right - left >= 2 and bottom - top >= 2 else None


def _level(texture: FaceTexture, face_px: float) -> U8:
    """The smallest mip level that still has enough texels for a face of this height."""
    level = texture.levels[0]
    for smaller in texture.levels[1:]:
        if smaller.shape[0] * 0.89 < TEXELS_PER_PX * face_px:
            break
        level = smaller
    return level
