"""Draws the room behind the person of the demo, out of focus; knows no person. Used by ``build`` only."""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np

from realtime.types import F32, U8

CASE: Final = (-70, 286)
"""Left and right side of the bookcase in the room of 1280x720 pixels."""
SHELVES: Final = (28, 196, 364, 532, 700)
HUES: Final = (8, 14, 20, 60, 105, 115, 172)
WOOD: Final = (82, 108, 134)
PICTURE: Final = (
    (930, 120, 1230, 300, (62, 78, 92)),
    (939, 129, 1221, 291, (205, 214, 218)),
    (966, 156, 1194, 264, (150, 150, 122)),
    (966, 222, 1194, 264, (118, 138, 120)),
)
"""What hangs on the wall: left, top, right, bottom, BGR. A broad one: the detector takes upright frames for faces."""


def draw_room() -> U8:
    """Draw a wall in the light of a window, shelves with books, a picture.

    Returns:
        (720, 1280, 3) uint8 BGR.
    """
    random = np.random.default_rng(2)  # of 24 seeds the one whose books look least like a face to the detector
    y, x = np.mgrid[0:720, 0:1280].astype(np.float32)
    light = 0.72 + 0.34 * np.exp(-(((x - 1180) / 620) ** 2) - ((y - 200) / 620) ** 2)
    room = light[..., None] * np.array((172, 186, 192), np.float32)
    _shelves(room, random)
    for left, top, right, bottom, colour in PICTURE:
        cv2.rectangle(room, (left, top), (right, bottom), colour, -1)
    room = cv2.GaussianBlur(room, (0, 0), 9.0) * np.minimum(light, 1.0)[..., None] ** 0.35
    room += random.normal(0, 1.2, room.shape)  # grain, against bands in the gradients
    return np.asarray(np.rint(room).clip(0, 255), np.uint8)


def _shelves(room: F32, random: np.random.Generator) -> None:
    """Paint a bookcase into the left of ``room`` (H, W, 3) BGR, in place."""
    left, right = CASE
    cv2.rectangle(room, (left, 0), (right, 720), (44, 58, 74), -1)
    for shelf_y in SHELVES:
        book = left + 14
        while book < right - 26:
            wide, tall = int(random.integers(14, 34)), int(random.integers(88, 138))
            hue, saturation, value = random.choice(HUES), random.integers(50, 130), random.integers(70, 190)
            colour = cv2.cvtColor(np.array([[[hue, saturation, value]]], np.uint8), cv2.COLOR_HSV2BGR)[0, 0]
            end = min(book + wide, right - 14)
            if random.random() < 0.88:
                cv2.rectangle(room, (book, shelf_y - tall), (end, shelf_y), colour.tolist(), -1)
            book = end + 2
        cv2.rectangle(room, (left, shelf_y), (right, shelf_y + 16), WOOD, -1)
    for post in (left, right - 14):
        cv2.rectangle(room, (post, 0), (post + 14, 720), WOOD, -1)
