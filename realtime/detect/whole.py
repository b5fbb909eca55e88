"""Finds faces with one run of a network on the whole picture; knows grids and overlaps, leaves decoding to families.

One run sees everyone, so there is no search over views, and where a face was lost is looked at anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, with_config

from engines.card import ModelCard, decode_as
from engines.conform import fits
from engines.contract import Device, Engine
from engines.errors import ModelError
from realtime import geometry
from realtime.detect import VIEWS_PER_CALL, Detection, prominence
from realtime.detect.letterbox import Letterbox, fixed_size
from realtime.types import F32, F64, U8, Size

KEY_POINTS = ("left_eye", "right_eye", "nose", "left_mouth", "right_mouth")
"""What the five points of these networks are, as seen in the picture."""


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True)
class GridDecode:
    """What a card of a network that sees the whole picture says about reading its outputs.

    Attributes:
        side: longer side of the input in pixels where the card leaves it free.
        strides: input pixels between the cells of each grid.
        anchors_per_cell: rows of the outputs for each cell.
        key_points: names, in order: ``KEY_POINTS``.
        min_score: below it a candidate is no face, 0..1.
        overlap_iou: of candidates that overlap this much the best alone is kept, 0..1.
        square_scale: side of the square from the brows to the chin over the longer side of the network's box, which
            reaches up to the hair.
    """

    side: int
    strides: tuple[int, ...]
    anchors_per_cell: int
    key_points: tuple[str, ...]
    min_score: float
    overlap_iou: float
    square_scale: float


class Candidates(NamedTuple):
    """What one run says, in input pixels.

    Attributes:
        scores: (n,), 0..1.
        boxes: (n, 4) left, top, right, bottom.
        points: (n, 5, 2).
    """

    scores: F32
    boxes: F32
    points: F32


Decode = Callable[[Sequence[NDArray[Any]], Sequence[F32], GridDecode], Candidates]
"""Reads the outputs of one run: outputs in the order of the card, cells of each grid as from ``cells``, the rule."""


def cells(size: Size, stride_px: int, per_cell: int) -> F32:
    """Compute the points that a grid's boxes and key points are relative to.

    Args:
        size: of the input.
        stride_px: input pixels between cells.
        per_cell: rows for each cell.

    Returns:
        (n, 2) float32 top left corners of the cells in input pixels, row by row, each ``per_cell`` times.
    """
    x, y = np.meshgrid(np.arange(size.w // stride_px), np.arange(size.h // stride_px))
    return np.repeat(np.stack([x, y], axis=-1).reshape(-1, 2) * stride_px, per_cell, axis=0).astype(np.float32)


def square(box_xyxy: F64, points: F64, scale: float) -> F64:
    """Turn a detector's box into the square from the brows to the chin.

    The middle between eyes and mouth is the middle of that square within 3 % of the box's height (measured against the
    face mesh in 20 clips), however the head is turned or tilted; the box's own middle is not, because the box begins at
    the hair.

    Args:
        box_xyxy: (4,).
        points: (5, 2) in the order of ``KEY_POINTS``.
        scale: see :class:`GridDecode`.

    Returns:
        (4,) left, top, right, bottom.
    """
    middle = (points[:2].mean(axis=0) + points[3:].mean(axis=0)) / 2
    half = float((box_xyxy[2:] - box_xyxy[:2]).max()) * scale / 2
    return np.concatenate([middle - half, middle + half])


def _check(card: ModelCard, rule: GridDecode, columns: Sequence[int]) -> None:
    """Raise ``ModelError`` where the card's numbers contradict each other: decoding would read nonsense."""
    size = fixed_size(card.inputs[0])
    rows = [len(cells(size, stride, rule.anchors_per_cell)) if size else -1 for stride in rule.strides]
    said = [(n, width) for width in columns for n in rows]
    have = [spec.shape[-2:] for spec in card.outputs]
    if len(have) != len(said) or not all(map(fits, have, said)):
        raise ModelError(
            f"model card {card.name!r}: its strides and anchors make outputs of shapes {said}, it states {have}",
            "correct [decode] or the outputs of the card",
        )
    if rule.key_points != KEY_POINTS:
        raise ModelError(
            f"model card {card.name!r}: its key points are {', '.join(rule.key_points)}",
            f"only networks with the key points {', '.join(KEY_POINTS)} can be used",
        )
    if rule.side % max(rule.strides):
        raise ModelError(
            f"model card {card.name!r}: side {rule.side} is no multiple of its largest stride {max(rule.strides)}",
            "correct [decode] of the card",
        )


class WholePictureDetector:
    """The ``Detector`` on a network that sees the whole picture at once."""

    def __init__(self, card: ModelCard, engine: Engine, device: Device, columns: Sequence[int], decode: Decode) -> None:
        """Take over an opened engine.

        Args:
            card: of the network.
            engine: that has loaded the card's model; closed with this detector.
            device: that scales the pictures.
            columns: width of each kind of output of its family; there is one of each kind for each grid.
            decode: how its family is read.

        Raises:
            ModelError: the card's ``[decode]`` is not complete, or does not fit its tensors.
        """
        rule = decode_as(card, GridDecode)
        _check(card, rule, columns)
        self._engine, self._rule, self._decode = engine, rule, decode
        self._letterbox = Letterbox(engine.inputs[0], rule.side, max(rule.strides), device)
        self._cells: tuple[F32, ...] = ()
        self._size = Size(0, 0)

    def detect(self, pixels: U8, near: Sequence[F32] = (), views: int = VIEWS_PER_CALL) -> list[Detection]:
        """See :class:`realtime.detect.Detector`; ``near`` and ``views`` make no difference."""
        return self.detect_everywhere(pixels)

    def detect_everywhere(self, pixels: U8) -> list[Detection]:
        """See :class:`realtime.detect.Detector`."""
        picture = Size(pixels.shape[1], pixels.shape[0])
        tensor, frame_from_input = self._letterbox.fill(pixels)
        if self._letterbox.size != self._size:
            self._lay_grids(self._letterbox.size)
        outputs = self._engine.run(tensor)
        faces = [self._face(*one, frame_from_input) for one in self._best(outputs)]
        return sorted(faces, key=lambda face: prominence(face.box_xyxy, picture), reverse=True)

    def close(self) -> None:
        """See :class:`realtime.detect.Detector`."""
        self._engine.close()

    def _lay_grids(self, size: Size) -> None:
        rule = self._rule
        self._cells = tuple(cells(size, stride, rule.anchors_per_cell) for stride in rule.strides)
        self._size = size

    def _best(self, outputs: Sequence[NDArray[Any]]) -> list[tuple[float, F64, F64]]:
        """Read the outputs: score, box (4,) and points (5, 2) of each face in input pixels, best first."""
        scores, boxes, points = self._decode(outputs, self._cells, self._rule)
        sound = np.isfinite(boxes).all(axis=1) & np.isfinite(points).all(axis=(1, 2))
        scores, boxes, points = scores[sound], boxes[sound], points[sound]
        best = [group[0] for group in geometry.groups(boxes, scores, self._rule.overlap_iou)]
        return [(float(scores[i]), boxes[i].astype(np.float64), points[i].astype(np.float64)) for i in best]

    def _face(self, score: float, box: F64, points: F64, frame_from_input: F64) -> Detection:
        """Take a face to frame pixels."""
        corners = square(box, points, self._rule.square_scale).reshape(2, 2)
        return Detection(
            geometry.apply(frame_from_input, corners).ravel().astype(np.float32),
            score,
            geometry.apply(frame_from_input, points).astype(np.float32),
        )
