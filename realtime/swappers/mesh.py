"""Swaps by drawing the source photo as a textured face mesh over the tracked face: the rung that needs no model.

Everything that is judged is judged in texture space, a picture of 64 x 64, so its cost does not depend on the size of
the face; only drawing touches pixels, and only those of the face.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from engines.contract import Device
from realtime import geometry, masks, topology
from realtime.colour import LightTransfer, blurred, factors
from realtime.identity import Portrait
from realtime.meter import Meter
from realtime.people.memory import Memory
from realtime.swappers import LEAST_FACE_PX, OBSTACLES, Kit, Look
from realtime.swappers.shape import Shape, ShapeTransfer
from realtime.swappers.texture import FaceTexture, build_texture
from realtime.types import F32, U8, Face

JUDGED_PX = 64
"""Side of the texture in which light and obstacles are judged."""
OPACITY_PX = 128
"""Side of the map of opacity that is drawn with; finer, for the edges at the eyes and the mouth."""
TEXELS_PER_PX = 2.0
"""Least texels of the source texture for each pixel of the face's height: two keep it sharp, four make it sparkle."""
LEAST_WEIGHT = np.float32(1e-3)
"""Weight of what is seen of the face and is no skin: nothing beside skin."""
FADE_S = 0.25
"""Seconds in which one source photo takes the place of another."""
SWITCH_RAD = np.deg2rad(8)
"""By how much another photo must face more the way the person does before it is taken."""
TAKES_PHOTOS = True
"""See :class:`realtime.swappers.Family`."""
_HALF_PIXEL = np.array([0.5, 0.5, 0], np.float32)
"""Faces count from the corner of the first pixel, devices from its centre."""


@dataclass(frozen=True, slots=True)
class MeshIdentity:
    """A source face, made once from one photo.

    Attributes:
        texture: the unwrapped photo.
        shape: of the face in it.
        light: its blurred texture, see ``colour.blurred``.
    """

    texture: FaceTexture
    shape: Shape
    light: F32


def skin_weight(n: int) -> F32:
    """Where a face shows skin that tells the light: not the border, the eyes or the lips. (n, n) float32 0..1."""
    features = topology.region(n, topology.EYE_LEFT, topology.EYE_RIGHT, topology.LIPS_OUTER)
    features = cv2.dilate(features, np.ones((3, 3), np.uint8)).astype(np.float32) / 255
    return (1 - features) * masks.smoothstep(topology.depth(n), 0.03, 0.10)


def identity_of(texture: FaceTexture) -> MeshIdentity:
    """Derive once what does not change from frame to frame."""
    return MeshIdentity(texture, Shape(texture.mesh), blurred(texture.low, skin_weight(JUDGED_PX)))


def identify(portraits: Sequence[Portrait], _kit: Kit) -> tuple[MeshIdentity, ...]:
    """See :class:`realtime.swappers.Family`."""
    return tuple(identity_of(build_texture(portrait.pixels, portrait.mesh)) for portrait in portraits)


def open_swapper(identity: tuple[MeshIdentity, ...], kit: Kit) -> MeshSwapper:
    """See :class:`realtime.swappers.Family`."""
    return MeshSwapper(kit.device, identity, kit.look, kit.meter)


class _Person:
    """What is remembered of one followed person."""

    def __init__(self) -> None:
        self.appearance = masks.Appearance()
        self.light = LightTransfer()
        self.shape = ShapeTransfer()
        self.photo = -1  # index of the photo that is shown, and of the one that it replaces
        self.former = -1
        self.since_switch_s = 0.0
        self.level = 0


class MeshSwapper:
    """Draws source faces over followed faces. Used by one thread; keeps one frame's scratch and each person's memory.

    Args:
        device: draws.
        photos: one or more of the source; the one that faces most the way the person does is shown.
        look: how the new face looks.
        meter: gets the laps "judge" and "draw".
    """

    def __init__(self, device: Device, photos: tuple[MeshIdentity, ...], look: Look, meter: Meter) -> None:
        self._device, self._photos, self._look, self._meter = device, photos, look, meter
        self._people = Memory(_Person)
        self._texels = topology.texel_map(JUDGED_PX)
        self._skin = skin_weight(JUDGED_PX)
        self._triangles = topology.closed_triangles()
        self._border = masks.border(OPACITY_PX)
        self._seen = np.zeros((JUDGED_PX, JUDGED_PX, 3), np.float32)
        self._known = np.zeros((JUDGED_PX, JUDGED_PX), np.float32)
        self._shown = np.ones((OPACITY_PX, OPACITY_PX, 2), np.float32)
        self._attributes = np.zeros((468, 8), np.float32)
        self._attributes[:, :2] = topology.face_mesh().uv

    @property
    def painted(self) -> None:
        """See :class:`realtime.swappers.Swapper`."""
        return

    def swap(self, pixels: U8, face: Face, now_s: float, steps: Collection[str]) -> bool:
        """See :class:`realtime.swappers.Swapper`."""
        if not np.isfinite(face.mesh).all():
            return False
        person, dt_s = self._people.meet(face.track_id, now_s)
        person.since_switch_s += dt_s
        mesh = face.mesh - _HALF_PIXEL
        shape = Shape(mesh)
        self._choose_photo(person, shape.yaw_rad)
        photo = self._photos[person.photo]
        moved = mesh + shape.to_picture(self._look.likeness * person.shape.offsets(photo.shape, shape, dt_s))
        box = _rectangle(moved, mesh, pixels.shape)
        if box is None or np.ptp(mesh[:, 1]) < LEAST_FACE_PX:
            return False
        left, top, right, bottom = box
        part = pixels[top:bottom, left:right]
        corner = np.array([left, top, 0], np.float32)
        facing = topology.facing(mesh)
        with self._meter.lap("judge"):
            scene = self._judge(part, mesh - corner, facing, shape, person, dt_s, OBSTACLES in steps)
        self._attributes[:, 2] = facing * self._look.opacity
        self._attributes[:, 3:5] = (mesh - moved)[:, :2]
        if not (np.isfinite(scene).all() and np.isfinite(self._attributes).all()):
            self._people.drop(face.track_id)  # what is remembered is spoilt; the next frame starts afresh
            return False
        with self._meter.lap("draw"):
            self._draw(part, moved - corner, person, scene)
        return True

    def forget(self, followed: Collection[int]) -> None:
        """See :class:`realtime.swappers.Swapper`."""
        self._people.forget(followed)

    def relook(self, look: Look) -> bool:
        """See :class:`realtime.swappers.Swapper`."""
        self._look = look
        return True

    def _choose_photo(self, person: _Person, yaw_rad: float) -> None:
        """Show the photo that faces most the way the person does, and change it only for a clearly better one."""
        off_rad = [abs(photo.shape.yaw_rad - yaw_rad) for photo in self._photos]
        best = int(np.argmin(off_rad))
        if person.photo < 0:
            person.photo, person.since_switch_s = best, FADE_S
        elif off_rad[best] < off_rad[person.photo] - SWITCH_RAD and person.since_switch_s >= FADE_S:
            person.former, person.photo, person.since_switch_s = person.photo, best, 0.0

    def _judge(
        self, part: U8, mesh: F32, facing: F32, shape: Shape, person: _Person, dt_s: float, obstacles: bool
    ) -> F32:
        """Note where the new face is shown, and return the light it stands in, see ``colour.LightTransfer.scene``."""
        corners, weights = self._texels.corners, self._texels.weights
        self._device.unwrap(part, mesh, facing, corners, weights, self._seen, self._known)
        weight = self._known
        self._shown[..., 0], self._shown[..., 1] = self._border, 1
        if obstacles:
            blocked = person.appearance.blocked(self._seen, weight, shape.rotation[:, 2], dt_s)
            weight = weight * (1 - blocked)
            self._shown *= 1 - cv2.resize(blocked, (OPACITY_PX, OPACITY_PX))[..., None]
        # Where no skin is seen at all, the rest of the face tells the light: a wrong tone is better than a black face.
        return person.light.scene(self._seen, np.maximum(weight * self._skin, LEAST_WEIGHT * self._known), dt_s)

    def _draw(self, part: U8, mesh: F32, person: _Person, scene: F32) -> None:
        """Draw the photo, and for a moment after a change the former one under it."""
        face_px = float(np.ptp(mesh[:, 1]))
        person.level = _level(self._photos[person.photo].texture, face_px, person.level)
        layers = [(person.photo, 1.0)]
        if person.since_switch_s < FADE_S:
            layers = [(person.former, 1.0), (person.photo, person.since_switch_s / FADE_S)]
        for photo, share in layers:
            identity = self._photos[photo]
            self._attributes[:, 5:] = at_points(factors(scene, identity.light, self._look.colour))
            self._attributes[:, 2] *= share
            texture = identity.texture.levels[person.level]
            self._device.draw(part, mesh, self._attributes, self._triangles, texture, self._shown)
            self._attributes[:, 3:5] = 0  # the first layer has already moved what lies under it


def at_points(picture: F32) -> F32:
    """Sample a picture that is laid out like the texture at the points of the mesh.

    Args:
        picture: (n, n, 3) float32.

    Returns:
        (468, 3) float32.
    """
    place = topology.face_mesh().uv * np.float32(picture.shape[0]) - np.float32(0.5)
    return cv2.remap(picture, place[:, None], None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)[:, 0]


def _rectangle(moved: F32, mesh: F32, shape: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    """The part of the picture that both meshes cover: left, top, right, bottom; ``None`` when it is empty."""
    first, second = geometry.bounds(moved), geometry.bounds(mesh)
    left, top = (max(math.floor(side) - 1, 0) for side in np.minimum(first, second)[:2])
    right, bottom = (math.ceil(side) + 2 for side in np.maximum(first, second)[2:])
    right, bottom = min(right, shape[1]), min(bottom, shape[0])
    return (left, top, right, bottom) if right - left >= 2 and bottom - top >= 2 else None


def _level(texture: FaceTexture, face_px: float, current: int) -> int:
    """The smallest mip level that still has enough texels for a face of this height; the current one if it will do."""

    def smallest(height_px: float) -> int:
        enough = [n for n, level in enumerate(texture.levels) if level.shape[0] >= TEXELS_PER_PX * height_px]
        return enough[-1] if enough else 0

    # A face that breathes about the edge between two levels must not flicker between them.
    finest, coarsest = smallest(face_px * 1.1), smallest(face_px * 0.9)
    return min(max(current, finest), coarsest)
