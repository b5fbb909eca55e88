"""Draws the demo at any time and size: room, shoulders, head, book, one over the other; knows no clock.

Photo pixels are the unit of everything that was measured in the portrait; the view shows ``VIEW_PX`` rows of it.
"""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np

from realtime.assets import ASSETS
from realtime.sources.demo.book import MARGIN_PX, SIZE_PX, draw_book
from realtime.sources.demo.face import Brows, Feature, Lid, Mouth, Place
from realtime.sources.demo.head import Turner
from realtime.sources.demo.layer import paste, paste_warped, premultiply
from realtime.sources.demo.motion import Pose, pose
from realtime.types import F32, F64, U8, Size

VIEW_PX: Final = 520.0
"""Photo rows in the view: the face (205 of them, forehead to chin) fills 39 % of the height."""
VIEW_CENTRE: Final = (265.0, 247.0)
"""Photo point in the middle of the view."""
HEAD_BOX: Final = (108, 0, 420, 372)
"""Left, top, right, bottom of the head with room to turn, in photo pixels."""
BODY_TOP: Final = 262
"""First photo row of the body."""
LEAN_ABOUT: Final = (265.0, 560.0)
"""Photo point about which the shoulders lean."""
BOOK_AT: Final = (264.0, 247.0)
"""Photo point of the middle of the book's upper edge when it is up."""


class Scene:
    """The demo at one size. Everything but the frame itself is prepared once."""

    def __init__(self, size: Size) -> None:
        """Prepare the layers.

        Args:
            size: of the frames; the height is always filled, a wider frame shows more of the room.
        """
        self.size = size
        self._scale = scale = size.h / VIEW_PX
        self._origin = tuple(c * scale - half / 2 for c, half in zip(VIEW_CENTRE, size, strict=True))
        room = _lights(_cover(_read("demo_room.jpg"), size))
        matte = _scaled(_read("demo_matte.png"), scale)
        left, top, right, bottom = (round(edge * scale) for edge in HEAD_BOX)
        head_area, body_area = np.s_[top:bottom, left:right], np.s_[round(BODY_TOP * scale) :]
        head, body = _scaled(_read("demo_head.jpg"), scale), _scaled(_read("demo_body.jpg"), scale)
        self._room = room
        self._head = _cut(head, matte[..., 1], head_area)
        self._body = _cut(body, matte[..., 0], body_area)
        self._book = draw_book(scale)
        with np.load(ASSETS / "demo_shape.npz") as shape:
            depth = cv2.resize(shape["depth"].astype(np.float32), matte.shape[1::-1], interpolation=cv2.INTER_CUBIC)
            place = Place(left, top, scale)
            lids = zip(shape["upper_lids"], shape["lower_lids"], strict=True)
            eyes = [Lid(place, upper, lower) for upper, lower in lids]
            self._features: tuple[Feature, ...] = (Brows(place), *eyes, Mouth(place, shape["lips"]))
        self._place = place
        self._turner = Turner(depth[head_area], left, top, scale)

    def draw(self, t_s: float) -> U8:
        """Draw one picture.

        Args:
            t_s: time in the loop; any number.

        Returns:
            (H, W, 3) uint8 BGR, a fresh array; a pure function of ``t_s``.
        """
        now = pose(t_s)
        frame = _lit(self._room, now.light)
        paste_warped(frame, _lit(self._body, now.light), self._frame_from_body(now))
        head = _lit(self._head, now.light)
        for feature in self._features:
            feature.act(head, now)
        x, y = round(self._place.x - self._origin[0]), round(self._place.y - self._origin[1])
        paste(frame, self._turner.turn(head, now), x, y)
        if now.card > 0:
            paste_warped(frame, self._book, self._frame_from_book(now))
        return frame

    def _frame_from_body(self, now: Pose) -> F64:
        about = np.array(LEAN_ABOUT) * self._scale
        lean = cv2.getRotationMatrix2D(about.tolist(), -now.lean_deg, 1.0)
        lean[:, 2] += lean[:, :2] @ (0, round(BODY_TOP * self._scale))
        lean[:, 2] += np.array(now.sway_px) * self._scale - self._origin
        return np.asarray(lean)

    def _frame_from_book(self, now: Pose) -> F64:
        hidden = (1 - now.card) * (VIEW_PX - BOOK_AT[1] + 40)
        at = np.array((BOOK_AT[0] + 0.12 * hidden, BOOK_AT[1] + hidden)) * self._scale - self._origin
        tilt = cv2.getRotationMatrix2D((0, 0), 5.0 - 9.0 * now.card, 1.0)
        tilt[:, 2] = at - tilt[:, :2] @ ((SIZE_PX[0] / 2 + MARGIN_PX) * self._scale, MARGIN_PX * self._scale)
        return np.asarray(tilt)


def _read(name: str) -> U8:
    return np.asarray(cv2.imread(str(ASSETS / name)), np.uint8)


def _scaled(picture: U8, scale: float) -> U8:
    how = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    size = (round(picture.shape[1] * scale), round(picture.shape[0] * scale))
    return np.asarray(cv2.resize(picture, size, interpolation=how), np.uint8)


def _cover(room: U8, size: Size) -> U8:
    """Fit the room into the frame: all of its height, the middle of its width, its edges drawn out where too narrow."""
    room = _scaled(room, size.h / room.shape[0])
    side = max(0, -(-(size.w - room.shape[1]) // 2))
    room = cv2.copyMakeBorder(room, 0, 0, side, side, cv2.BORDER_REFLECT_101)
    left = (room.shape[1] - size.w) // 2
    return np.ascontiguousarray(room[: size.h, left : left + size.w])


def _cut(colour: U8, alpha: U8, area: tuple[slice, slice] | slice) -> tuple[U8, U8]:
    covered = premultiply(np.ascontiguousarray(colour[area]), np.ascontiguousarray(alpha[area]))
    return _lights(covered)


def _lights(picture: U8) -> tuple[U8, U8]:
    """Show a picture in both lights of the room: a warm lamp on the left, a window on the right."""
    side = np.linspace(-1, 1, picture.shape[1], dtype=np.float32)[:, None]
    lamp = (0.90 - 0.10 * side) * np.array((0.90, 0.94, 1.0), np.float32)
    window = (1.02 + 0.10 * side) * np.array((1.03, 1.01, 0.98), np.float32)
    return _times(picture, lamp), _times(picture, window)


def _times(picture: U8, gain: F32) -> U8:
    """Multiply the colours of (h, w, 3 or 4) by the gain (w, 3) of their column."""
    lit = picture.copy()
    lit[..., :3] = np.rint(picture[..., :3] * gain).clip(0, 255)
    return lit


def _lit(lights: tuple[U8, U8], share: float) -> U8:
    """Mix the two lights into a fresh picture."""
    return np.asarray(cv2.addWeighted(lights[0], 1 - share, lights[1], share, 0), np.uint8)
