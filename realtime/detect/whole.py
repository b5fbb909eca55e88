"""Finds faces with a network that sees the whole picture; knows grids and overlaps, leaves decoding to families.

One run sees everyone but a face that fills the picture, which is larger than anything the network was taught. So where
a look finds nobody the picture is looked at once more, made small. There is no search over views, and where a face was
lost is looked at anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, with_config

from engines.card import ModelCard, decode_as
from engines.conform import fits
from engines.contract import CropPlan, Device, Engine, Lane
from engines.errors import ModelError
from engines.sizes import is_free
from realtime import geometry
from realtime.detect import VIEWS_PER_CALL, Detection, prominence
from realtime.detect.letterbox import MOST_SIZES, Letterbox, fixed_size
from realtime.types import F32, F64, U8, Size

KEY_POINTS = ("left_eye", "right_eye", "nose", "left_mouth", "right_mouth")
"""What the five points of these networks are, as seen in the picture."""


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True)
class GridDecode:
    """What a card of a network that sees the whole picture says about reading its outputs.

    Attributes:
        side: longer side of the picture in the input, in pixels; less where a fixed input is smaller.
        close_up_side: the same in the second look, which finds who fills the picture.
        strides: input pixels between the cells of each grid.
        anchors_per_cell: rows of the outputs for each cell.
        key_points: names, in order: ``KEY_POINTS``.
        min_score: below it a candidate is no face, 0..1.
        overlap_iou: of candidates that overlap this much the best alone is kept, 0..1.
        square_scale: side of the square from the brows to the chin over the longer side of the network's box, which
            reaches up to the hair.
    """

    side: int
    close_up_side: int
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


@lru_cache(maxsize=2 * MOST_SIZES)
def grids(size: Size, strides_px: tuple[int, ...], per_cell: int) -> tuple[F32, ...]:
    """Compute the cells of all grids of a network, see :func:`cells`; the same arrays each time, which nobody changes.

    Args:
        size: of the input.
        strides_px: input pixels between the cells of each grid.
        per_cell: rows for each cell.

    Returns:
        One (n, 2) float32 for each grid.
    """
    made = tuple(cells(size, stride, per_cell) for stride in strides_px)
    for grid in made:
        grid.setflags(write=False)
    return made


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
    rows = (
        [len(grid) for grid in grids(size, rule.strides, rule.anchors_per_cell)] if size else [-1] * len(rule.strides)
    )
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
    for side in (
        rule.side,
        rule.close_up_side,
        *(n for size in (card.sizes.corners if card.sizes else ()) for n in size),
    ):
        if side % max(rule.strides):
            raise ModelError(
                f"model card {card.name!r}: side {side} is no multiple of its largest stride {max(rule.strides)}",
                "correct [decode] or [sizes] of the card",
            )


def looked_at(card: ModelCard, picture: Size) -> Size | None:
    """Say how large the input is in which pictures are looked at, for an engine that takes one size only.

    Args:
        card: of a detector.
        picture: size of the pictures that will mostly come; of any others less of the input is used.

    Returns:
        Width and height in pixels; None where the card leaves nothing free.

    Raises:
        ModelError: the card's ``[decode]`` is not complete.
    """
    spec = card.inputs[0]
    if not is_free(spec):
        return None
    rule = decode_as(card, GridDecode)
    return Letterbox(spec, max(rule.strides)).size_for(picture, rule.side)


class _Look(NamedTuple):
    """A look that has begun: at a picture of this size, in an input of this size."""

    picture: Size
    size: Size
    lane: Lane
    frame_from_input: F64


def _size(pixels: U8) -> Size:
    return Size(pixels.shape[1], pixels.shape[0])


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
        self._name, self._engine, self._rule, self._decode, self._device = card.name, engine, rule, decode, device
        self._letterbox = Letterbox(engine.inputs[0], max(rule.strides))
        self._lanes: dict[Size, Lane] = {}
        self._ahead: _Look | None = None

    def detect(self, pixels: U8, near: Sequence[F32] = (), views: int = VIEWS_PER_CALL) -> list[Detection]:
        """See :class:`realtime.detect.Detector`; ``near`` makes no difference.

        In passing (one view) a device that works ahead is not waited for: it begins a look, and what is returned is
        what the one before saw, so that the only wait in a frame is for its picture.
        """
        if views == 1 and self._device.works_ahead:
            before, self._ahead = self._ahead, None
            found = self._read(before) if before is not None and before.picture == _size(pixels) else []
            self._ahead = self._begin(pixels, self._rule.side)
            return self._sorted(found, pixels)
        self._ahead = None
        return self._sorted(self._look(pixels, self._rule.side) or self._look(pixels, self._rule.close_up_side), pixels)

    def detect_everywhere(self, pixels: U8) -> list[Detection]:
        """See :class:`realtime.detect.Detector`."""
        self._ahead = None
        seen = [*self._look(pixels, self._rule.side), *self._look(pixels, self._rule.close_up_side)]
        best = geometry.groups([f.box_xyxy for f in seen], [f.score for f in seen], self._rule.overlap_iou)
        return self._sorted([seen[group[0]] for group in best], pixels)

    def close(self) -> None:
        """See :class:`realtime.detect.Detector`."""
        for lane in self._lanes.values():
            lane.close()
        self._lanes.clear()
        self._engine.close()

    def _look(self, pixels: U8, side_px: int) -> list[Detection]:
        """Look at the picture once, made so large; best first."""
        return self._read(self._begin(pixels, side_px))

    def _begin(self, pixels: U8, side_px: int) -> _Look:
        """Start a look."""
        picture = _size(pixels)
        spec, frame_from_input = self._letterbox.view(picture, side_px)
        size = Size(*spec.size)
        if size not in self._lanes:
            if len(self._lanes) == MOST_SIZES:
                self._lanes.pop(next(iter(self._lanes))).close()
            self._lanes[size] = self._device.lane(CropPlan(self._name, spec), self._engine)
        lane = self._lanes[size]
        lane.start(pixels, geometry.between_centres(frame_from_input), {})
        return _Look(picture, size, lane, frame_from_input)

    def _read(self, look: _Look) -> list[Detection]:
        """Wait for a look and say what it saw, best first."""
        best = self._best(look.lane.outputs(), look.size)
        return [self._face(*one, look.frame_from_input) for one in best]

    def _best(self, outputs: Sequence[NDArray[Any]], size: Size) -> list[tuple[float, F64, F64]]:
        """Read the outputs: score, box (4,) and points (5, 2) of each face in input pixels, best first."""
        laid = grids(size, self._rule.strides, self._rule.anchors_per_cell)
        scores, boxes, points = self._decode(outputs, laid, self._rule)
        sound = np.isfinite(boxes).all(axis=1) & np.isfinite(points).all(axis=(1, 2))
        scores, boxes, points = scores[sound], boxes[sound], points[sound]
        best = [group[0] for group in geometry.groups(boxes, scores, self._rule.overlap_iou)]
        return [(float(scores[i]), boxes[i].astype(np.float64), points[i].astype(np.float64)) for i in best]

    @staticmethod
    def _sorted(faces: list[Detection], pixels: U8) -> list[Detection]:
        """The most prominent first."""
        size = _size(pixels)
        return sorted(faces, key=lambda face: prominence(face.box_xyxy, size), reverse=True)

    def _face(self, score: float, box: F64, points: F64, frame_from_input: F64) -> Detection:
        """Take a face to frame pixels."""
        corners = square(box, points, self._rule.square_scale).reshape(2, 2)
        return Detection(
            geometry.apply(frame_from_input, corners).ravel().astype(np.float32),
            score,
            geometry.apply(frame_from_input, points).astype(np.float32),
        )
