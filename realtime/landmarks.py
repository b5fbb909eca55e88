"""Runs the face mesh network on one crop and says where the next crop lies; knows one face, no identities."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from pydantic import ConfigDict, with_config

from engines.card import ModelCard, decode_as
from engines.contract import Device, Engine
from realtime import geometry
from realtime.detect import Detection
from realtime.types import F32, F64, U8

LEFT_EYE = (33, 7, 163, 144, 145, 153, 154, 155, 133, 173, 157, 158, 159, 160, 161, 246)
"""Contour of the eye that is left in the picture (MediaPipe face mesh)."""

RIGHT_EYE = (263, 249, 390, 373, 374, 380, 381, 382, 362, 398, 384, 385, 386, 387, 388, 466)
"""Contour of the eye that is right in the picture (MediaPipe face mesh)."""

NOSE_TIP, LEFT_MOUTH, RIGHT_MOUTH = 1, 61, 291
"""Tip of the nose and corners of the mouth, left and right in the picture (MediaPipe face mesh)."""

_EYES = np.array([LEFT_EYE, RIGHT_EYE])
_NOSE_AND_MOUTH = np.array([NOSE_TIP, LEFT_MOUTH, RIGHT_MOUTH])


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True)
class MeshDecode:
    """What a card of the family "mesh" says about its crop and its output.

    Attributes:
        points: of the mesh.
        box_scale: side of the crop over the longer side of the face's box.
        level_points: two points of the mesh, left and right in the picture, that shall be level in the crop.
    """

    points: int
    box_scale: float
    level_points: tuple[int, int]


def decode(values: F32, frame_from_crop: F64) -> F32:
    """Turn the network's points into frame pixels.

    Args:
        values: n · 3 numbers: x, y, z of each point in crop pixels.
        frame_from_crop: (2, 3) similarity.

    Returns:
        (n, 3) float32, a fresh array: x, y in frame pixels, z in the same unit, negative towards the camera.
    """
    crop = values.reshape(-1, 3)
    mesh = np.empty(crop.shape, np.float32)
    mesh[:, :2] = geometry.apply(frame_from_crop, crop[:, :2])
    mesh[:, 2] = crop[:, 2] * np.hypot(frame_from_crop[0, 0], frame_from_crop[1, 0])
    return mesh


def points5(mesh: F32) -> F32:
    """Pick the five points of the alignment templates.

    Args:
        mesh: (468, 3).

    Returns:
        (5, 2) float32: left eye, right eye, nose tip, left and right mouth corner, as seen in the picture. An eye's
        point is the middle of its contour, which does not move with the gaze.
    """
    eyes = mesh[_EYES, :2].mean(axis=1)
    return np.concatenate([eyes, mesh[_NOSE_AND_MOUTH, :2]])


class MeshNet:
    """The face mesh network of a card. Used by one thread at a time."""

    def __init__(self, card: ModelCard, engine: Engine, device: Device) -> None:
        """Take over an opened engine.

        Args:
            card: of the family "mesh".
            engine: that has loaded the card's model; closed with this object.
            device: that cuts the crops out.

        Raises:
            ModelError: the card's ``[decode]`` is not one of a mesh network.
        """
        self._rule = decode_as(card, MeshDecode)
        self._engine, self._device = engine, device
        self._input = engine.inputs[0]
        self._side = self._input.size[0]
        self._tensor = np.zeros(self._input.shape, np.float32)

    def crop_of_detection(self, face: Detection) -> F64:
        """Say which crop shows a detected face, with level eyes.

        Args:
            face: in frame pixels.

        Returns:
            ``frame_from_crop``, (2, 3).
        """
        return self._crop_of_box(face.box_xyxy, face.points[1] - face.points[0])

    def crop_of_mesh(self, mesh: F32) -> F64:
        """Say which crop shows the face in the next frame.

        Args:
            mesh: (468, 3) of this frame, in frame pixels.

        Returns:
            ``frame_from_crop``, (2, 3).
        """
        left, right = self._rule.level_points
        return self._crop_of_box(geometry.bounds(mesh), mesh[right, :2] - mesh[left, :2])

    def locate(self, pixels: U8, frame_from_crop: F64) -> tuple[F32, float]:
        """Find the mesh of the face in a crop.

        Args:
            pixels: (H, W, 3) uint8 BGR. Only read.
            frame_from_crop: (2, 3) from one of the ``crop_of_...`` methods.

        Returns:
            (468, 3) float32 in frame pixels, a fresh array, and how sure the network is that there is a face, 0..1.
        """
        self._device.crop(pixels, geometry.between_centres(frame_from_crop), self._input, self._tensor)
        values, logit = self._engine.run(self._tensor)
        presence = (1 + math.tanh(float(logit.ravel()[0]) / 2)) / 2  # the sigmoid, in a form that cannot overflow
        return decode(values.ravel(), frame_from_crop), presence

    def close(self) -> None:
        """Free the network. Safe to call twice."""
        self._engine.close()

    def _crop_of_box(self, box_xyxy: F32, level: F32) -> F64:
        centre = (box_xyxy[:2] + box_xyxy[2:]) / 2
        side = float((box_xyxy[2:] - box_xyxy[:2]).max()) * self._rule.box_scale
        return geometry.square_crop(centre, side, level, self._side)
