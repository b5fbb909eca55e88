"""Finds faces with an SSD network on square views of a picture; knows its anchors, no tracks and no meshes.

Why this network: the full-range one (192x192, three times the time of a run) finds faces of the same size in its
input, 19 pixels, but misses those above half of its view; three runs of the short-range one see more for the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import ConfigDict, with_config

from engines.card import ModelCard, decode_as
from engines.contract import Device, Engine
from engines.errors import ModelError
from realtime import geometry
from realtime.detect import VIEWS_PER_CALL, Detection, prominence
from realtime.detect.search import View, around, plan
from realtime.types import F32, F64, U8, Size


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True)
class SsdDecode:
    """What a card of the family "ssd" says about reading its outputs.

    Attributes:
        strides: input pixels between the cells of each grid of anchors.
        anchors_per_cell: of each grid.
        key_points: names, in order; the first two are the eyes, which level the crop of the mesh network.
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
    scores = (1 + np.tanh(logits[good].astype(np.float64) / 2)) / 2  # the sigmoid, in a form that cannot overflow
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


class SsdDetector:
    """The ``Detector`` on an SSD network of a card."""

    def __init__(self, card: ModelCard, engine: Engine, device: Device) -> None:
        """Take over an opened engine.

        Args:
            card: of the family "ssd".
            engine: that has loaded the card's model; closed with this detector.
            device: that cuts the views out.

        Raises:
            ModelError: the card's ``[decode]`` is not one of an SSD network, or does not fit its tensors.
        """
        self._rule = decode_as(card, SsdDecode)
        self._engine, self._device = engine, device
        self._input = engine.inputs[0]
        self._side = self._input.size[0]
        self._tensor = np.zeros(self._input.shape, np.float32)
        self._anchors = anchors(self._side, self._rule.strides, self._rule.anchors_per_cell)
        self._check(card)
        self._plan: tuple[View, ...] = ()
        self._size = Size(0, 0)
        self._next = 0

    def detect(self, pixels: U8, near: Sequence[F32] = (), views: int = VIEWS_PER_CALL) -> list[Detection]:
        """See :class:`Detector`."""
        size = Size(pixels.shape[1], pixels.shape[0])
        if size != self._size:
            self._size, self._plan, self._next = size, plan(size, self._rule.smallest_face), 0
        looks = [around(box) for box in near[: views - 1]]
        while len(looks) < views:
            looks.append(self._plan[self._next])
            self._next = (self._next + 1) % len(self._plan)
        return self._look(pixels, looks)

    def detect_everywhere(self, pixels: U8) -> list[Detection]:
        """See :class:`Detector`."""
        return self._look(pixels, plan(Size(pixels.shape[1], pixels.shape[0]), self._rule.smallest_face))

    def close(self) -> None:
        """See :class:`Detector`."""
        self._engine.close()

    def _check(self, card: ModelCard) -> None:
        """Raise ``ModelError`` where the card's numbers contradict each other: decoding would read nonsense."""
        said = (1, len(self._anchors), 4 + 2 * len(self._rule.key_points))
        if card.outputs[0].shape != said:
            raise ModelError(
                f"model card {card.name!r}: its strides, anchors and key points make boxes of shape {said}, "
                f"its first output has {card.outputs[0].shape}",
                "correct [decode] of the card",
            )
        if self._rule.key_points[:2] != ("left_eye", "right_eye"):
            raise ModelError(
                f"model card {card.name!r}: its key points begin with {', '.join(self._rule.key_points[:2])}",
                "only networks whose key points begin with left_eye, right_eye can be used",
            )

    def _look(self, pixels: U8, views: Sequence[View]) -> list[Detection]:
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
