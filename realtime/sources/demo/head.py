"""Turns the cut-out head in depth (2.5D); knows depth and angles, nothing of what is on the face."""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np

from realtime.sources.demo.motion import Pose
from realtime.types import F32, U8

PIVOT: Final = (265.0, 312.0, 12.0)
"""x, y in photo pixels and depth over the plane of the ears: the head turns on the top of the neck."""
DISTANCE: Final = 1900.0
"""From the camera, in photo pixels: about eight widths of the head, a webcam on a desk."""
CELL_PX: Final = 6
"""The way back is found for every sixth pixel and interpolated; it is smooth."""
ROUNDS: Final = 6
"""Fixed-point rounds: the displacement changes by at most half a pixel a pixel, so 30 px become half a pixel."""


class Turner:
    """Turns one head picture. Used by one thread at a time."""

    def __init__(self, depth: F32, x: int, y: int, scale: float) -> None:
        """Prepare the grid.

        Args:
            depth: (h, w) float32 over the plane of the ears, in photo pixels, for each pixel of the head picture.
            x: column of the head picture in the scaled photo.
            y: row likewise.
            scale: pixels of the head picture in one of the photo.
        """
        height, width = depth.shape
        self._size = (width, height)
        columns, rows = -(-width // CELL_PX), -(-height // CELL_PX)
        grid = np.mgrid[0:rows, 0:columns].astype(np.float32)
        # cv2.resize stretches the grid over the picture, pixel centres to pixel centres
        self._y = (grid[0] + 0.5) * (height / rows) - 0.5
        self._x = (grid[1] + 0.5) * (width / columns) - 0.5
        self._cells = (columns / width, rows / height)
        self._depth = cv2.resize(depth, (columns, rows), interpolation=cv2.INTER_AREA)
        self._centre = (PIVOT[0] * scale - x, PIVOT[1] * scale - y)
        self._scale = scale

    def turn(self, picture: U8, pose: Pose) -> U8:
        """Show the head from another side.

        Args:
            picture: (h, w, 4) uint8, the head seen from the front. Only read.
            pose: its yaw, pitch, roll and sway count.

        Returns:
            (h, w, 4) uint8, a fresh array.
        """
        rotation = _rotation(pose)
        right, down = (step * self._scale for step in pose.sway_px)
        u, v = self._x, self._y
        for _ in range(ROUNDS):
            moved_x, moved_y = self._move(u, v, rotation)
            u, v = self._x - moved_x - right, self._y - moved_y - down
        map_x, map_y = (cv2.resize(axis, self._size, interpolation=cv2.INTER_LINEAR) for axis in (u, v))
        return np.asarray(cv2.remap(picture, map_x, map_y, cv2.INTER_LINEAR), np.uint8)

    def _move(self, u: F32, v: F32, rotation: F32) -> tuple[F32, F32]:
        """Say how far the points ``u``, ``v`` of the picture move when the head turns."""
        cell_u, cell_v = (u + 0.5) * self._cells[0] - 0.5, (v + 0.5) * self._cells[1] - 0.5
        depth = cv2.remap(self._depth, cell_u, cell_v, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        x, y, z = u - self._centre[0], v - self._centre[1], (depth - PIVOT[2]) * self._scale
        turned_x, turned_y, turned_z = (row[0] * x + row[1] * y + row[2] * z for row in rotation)
        distance = DISTANCE * self._scale
        nearer = (distance - z) / (distance - turned_z)
        return turned_x * nearer - x, turned_y * nearer - y


def _rotation(pose: Pose) -> F32:
    """(3, 3) for x right, y down, z towards the camera: yaw first, then pitch, then roll."""
    yaw, pitch, roll = np.deg2rad([pose.yaw_deg, pose.pitch_deg, pose.roll_deg])
    about_y = np.array([[np.cos(yaw), 0, np.sin(yaw)], [0, 1, 0], [-np.sin(yaw), 0, np.cos(yaw)]])
    about_x = np.array([[1, 0, 0], [0, np.cos(pitch), np.sin(pitch)], [0, -np.sin(pitch), np.cos(pitch)]])
    about_z = np.array([[np.cos(roll), -np.sin(roll), 0], [np.sin(roll), np.cos(roll), 0], [0, 0, 1]])
    return np.asarray(about_z @ about_x @ about_y, np.float32)
