"""Finds faces in a picture with an SSD network on square views of it; knows no tracks and no meshes.

Why views: the network sees 128x128 pixels and finds a face once it fills 15 % of the view. A view of the whole
picture misses a person who stands back, so a search also looks at smaller, overlapping squares. One look at everything
would cost eleven runs of the network; a call does three of them, so its cost is bounded and a complete search takes
``calls_per_search`` calls. A face that is large enough for the first call is found at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import NamedTuple, Protocol

import numpy as np
from pydantic import ConfigDict, with_config

from engines.card import ModelCard, decode_as
from engines.contract import Device, Engine
from realtime import geometry
from realtime.types import F32, F64, U8, Size


@dataclass(frozen=True, slots=True)
class Detection:
    """A face as the detector sees it, in frame pixels.

    Attributes:
        box_xyxy: (4,) float32, left, top, right, bottom: a square from the brows to the chin.
        score: 0..1.
        points: (6, 2) float32: left eye, right eye, nose tip, middle of the mouth, left and right ear, as seen in the
            picture.
    """

    box_xyxy: F32
    score: float
    points: F32


class Detector(Protocol):
    """Finds faces. Used by one thread at a time."""

    def detect(self, pixels: U8) -> list[Detection]:
        """Look at the next part of a search that never ends.

        Args:
            pixels: (H, W, 3) uint8 BGR. Only read.

        Returns:
            The faces in the part that was looked at, the most prominent first.
        """

    def detect_everywhere(self, pixels: U8) -> list[Detection]:
        """Do a complete search at once: for still pictures, where time does not count.

        Args:
            pixels: (H, W, 3) uint8 BGR. Only read.

        Returns:
            The faces, the most prominent first.
        """

    def calls_per_search(self, size: Size) -> int:
        """Return after how many calls of ``detect`` in a row a picture of this size has been looked at everywhere."""

    def close(self) -> None:
        """Free the network. Safe to call twice."""


class View(NamedTuple):
    """A square part of the frame, in frame pixels; it may reach outside the frame, where there is black."""

    x: float
    y: float
    side: float


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True)
class SsdDecode:
    """What a card of the family "ssd" says about reading its outputs.

    Attributes:
        strides: input pixels between the cells of each grid of anchors.
        anchors_per_cell: of each grid.
        key_points: names, in order.
        min_score: below it a candidate is no face, 0..1.
        overlap_iou: candidates that overlap this much are one face, 0..1.
        smallest_face: height of a box over the side of the view from which on faces are found reliably.
    """

    strides: tuple[int, ...]
    anchors_per_cell: tuple[int, ...]
    key_points: tuple[str, ...]
    min_score: float
    overlap_iou: float
    smallest_face: float


def anchors(side_px: int, strides: tuple[int, ...], per_cell: tuple[int, ...]) -> F32:
    """Compute the points that an SSD network's boxes are relative to.

    Args:
        side_px: width and height of the network's input.
        strides: input pixels between cells, one for each grid.
        per_cell: anchors in a cell, one for each grid.

    Returns:
        (n, 2) float32 centres of the cells in input pixels, row by row, grid by grid.
    """
    grids = []
    for stride, count in zip(strides, per_cell, strict=True):
        line = (np.arange(side_px // stride) + 0.5) * stride
        x, y = np.meshgrid(line, line)
        grids.append(np.repeat(np.stack([x, y], axis=-1).reshape(-1, 2), count, axis=0))
    return np.concatenate(grids).astype(np.float32)


def decode(regressors: F32, logits: F32, centres: F32, rule: SsdDecode) -> list[Detection]:
    """Turn one run's outputs into faces.

    Args:
        regressors: (n, 4 + 2k) box centre, width and height, then k key points; input pixels, positions relative to
            the anchor.
        logits: (n,) of "a face".
        centres: (n, 2) anchors.
        rule: the card's numbers.

    Returns:
        Faces in input pixels, best score first. Candidates of one face are averaged, weighted by their scores, which
        is steadier from frame to frame than the best one alone.
    """
    good = np.flatnonzero(logits > np.log(rule.min_score / (1 - rule.min_score)))
    if good.size == 0:
        return []
    scores = 1 / (1 + np.exp(-logits[good].astype(np.float64)))
    values = regressors[good].reshape(good.size, -1, 2).astype(np.float64)
    middle, half = values[:, 0] + centres[good], values[:, 1] / 2
    points = values[:, 2:] + centres[good, None]
    boxes = np.concatenate([middle - half, middle + half], axis=1)
    faces = []
    for group in geometry.groups(boxes, scores, rule.overlap_iou):
        weights = scores[group] / scores[group].sum()
        faces.append(
            Detection(
                (weights @ boxes[group]).astype(np.float32),
                float(scores[group[0]]),
                np.tensordot(weights, points[group], 1).astype(np.float32),
            )
        )
    return faces


def prominence(box_xyxy: F32, size: Size) -> float:
    """Say how much a face is the one that the picture is about.

    Args:
        box_xyxy: (4,) in frame pixels.
        size: of the frame.

    Returns:
        height of the box · (1 − d / 2), where d is the distance of the box's centre from the middle of the frame over
        half the frame's diagonal: size decides, and among faces of about the same size the central one wins.
    """
    left, top, right, bottom = (float(v) for v in box_xyxy)
    d = np.hypot((left + right - size.w) / 2, (top + bottom - size.h) / 2) / (np.hypot(size.w, size.h) / 2)
    return (bottom - top) * (1 - float(d) / 2)


def plan(size: Size, smallest_face: float) -> tuple[tuple[View, ...], ...]:
    """Lay out a complete search.

    Args:
        size: of the frame.
        smallest_face: see :class:`SsdDecode`.

    Returns:
        The views of each call: first the whole frame and the squares as high as the frame, then smaller squares, the
        central and upper ones first, where a face is most likely.
    """
    w, h = float(size.w), float(size.h)
    whole = View((w - max(w, h)) / 2, (h - max(w, h)) / 2, max(w, h))
    small = min(w, h) * SMALLEST_FACE_OF_FRAME / smallest_face
    near = _tiles(size, small, small * smallest_face * 1.5)
    near.sort(key=lambda v: np.hypot((v.x + v.side / 2 - w / 2) / w, (v.y + v.side / 2 - h / 3) / h))
    views = [whole, *_tiles(size, min(w, h), min(w, h) * 0.2), *near]
    return tuple(tuple(views[i : i + VIEWS_PER_CALL]) for i in range(0, len(views), VIEWS_PER_CALL))


VIEWS_PER_CALL = 3
"""Runs of the network in one call: three of about 1.1 ms stay under the 4 ms that a call may take."""

SMALLEST_FACE_OF_FRAME = 0.08
"""Height of the smallest box that a complete search shall find, over the shorter side of the frame."""


def _tiles(size: Size, side: float, overlap: float) -> list[View]:
    """Cover a frame evenly with squares that overlap by at least ``overlap`` pixels."""
    columns, rows = (1 + max(0, ceil((length - side) / (side - overlap))) for length in size)
    xs = np.linspace(0, size.w - side, columns) if columns > 1 else [(size.w - side) / 2]
    ys = np.linspace(0, size.h - side, rows) if rows > 1 else [(size.h - side) / 2]
    return [View(float(x), float(y), side) for y in ys for x in xs]


class SsdDetector:
    """The ``Detector`` on an SSD network of a card."""

    def __init__(self, card: ModelCard, engine: Engine, device: Device) -> None:
        """Take over an opened engine.

        Args:
            card: of the family "ssd".
            engine: that has loaded the card's model; closed with this detector.
            device: that cuts the views out.

        Raises:
            ModelError: the card's ``[decode]`` is not one of an SSD network.
        """
        self._rule = decode_as(card, SsdDecode)
        self._engine, self._device = engine, device
        self._input = engine.inputs[0]
        self._side = self._input.shape[1] if self._input.layout == "NHWC" else self._input.shape[2]
        self._tensor = np.zeros(self._input.shape, np.float32)
        self._anchors = anchors(self._side, self._rule.strides, self._rule.anchors_per_cell)
        self._calls: tuple[tuple[View, ...], ...] = ()
        self._size = Size(0, 0)
        self._next = 0

    def detect(self, pixels: U8) -> list[Detection]:
        """See :class:`Detector`."""
        size = Size(pixels.shape[1], pixels.shape[0])
        if size != self._size:
            self._size, self._calls, self._next = size, plan(size, self._rule.smallest_face), 0
        views = self._calls[self._next]
        self._next = (self._next + 1) % len(self._calls)
        return self._look(pixels, views)

    def detect_everywhere(self, pixels: U8) -> list[Detection]:
        """See :class:`Detector`."""
        calls = plan(Size(pixels.shape[1], pixels.shape[0]), self._rule.smallest_face)
        return self._look(pixels, tuple(view for views in calls for view in views))

    def calls_per_search(self, size: Size) -> int:
        """See :class:`Detector`."""
        return len(plan(size, self._rule.smallest_face))

    def close(self) -> None:
        """See :class:`Detector`."""
        self._engine.close()

    def _look(self, pixels: U8, views: tuple[View, ...]) -> list[Detection]:
        """Look at some views; one face for each that was seen, the most prominent first."""
        seen: list[Detection] = []
        for view in views:
            k = view.side / self._side
            frame_from_view: F64 = np.array([[k, 0.0, view.x], [0.0, k, view.y]])
            self._device.crop(pixels, geometry.between_centres(frame_from_view), self._input, self._tensor)
            regressors, logits = self._engine.run(self._tensor)
            for face in decode(regressors[0], logits[0, :, 0], self._anchors, self._rule):
                box = geometry.apply(frame_from_view, face.box_xyxy.reshape(2, 2)).ravel()
                points = geometry.apply(frame_from_view, face.points)
                seen.append(Detection(box.astype(np.float32), face.score, points.astype(np.float32)))
        if not seen:
            return []
        best = geometry.groups([f.box_xyxy for f in seen], [f.score for f in seen], self._rule.overlap_iou)
        faces = [seen[group[0]] for group in best]
        size = Size(pixels.shape[1], pixels.shape[0])
        return sorted(faces, key=lambda face: prominence(face.box_xyxy, size), reverse=True)
