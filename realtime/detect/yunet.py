"""Reads the outputs of YuNet networks: offsets and sizes in the cells of three grids; knows no pictures.

Source: W. Wu, H. Peng, S. Yu, "YuNet: A Tiny Millisecond-level Face Detector", Machine Intelligence Research 20,
2023, and ``cv2.FaceDetectorYN``, with which the tests compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.card import ModelCard
from engines.contract import Device, Engine
from realtime.detect.whole import Candidates, GridDecode, WholePictureDetector
from realtime.types import F32

COLUMNS = (1, 1, 4, 10)
"""Width of the outputs: how much a face, how much an object, box and key points, each for all grids."""


def decode(outputs: Sequence[NDArray[Any]], grids: Sequence[F32], rule: GridDecode) -> Candidates:
    """Turn one run's outputs into candidates.

    Args:
        outputs: for each grid the share of "a face" (n, 1), then of "an object" (n, 1), then boxes (n, 4): offset of
            the centre from the cell in strides, logarithm of width and height in strides; then key points (n, 10) as
            offsets in strides; with or without a leading axis of 1.
        grids: the cells of each grid.
        rule: the card's numbers.

    Returns:
        The candidates that reach ``min_score``, grid by grid. A score is the geometric mean of both shares.
    """
    found = []
    levels = len(rule.strides)
    for level, (stride, corner) in enumerate(zip(rule.strides, grids, strict=True)):
        face, thing = (np.clip(outputs[level + kind * levels].reshape(-1), 0, 1) for kind in (0, 1))
        scores = np.sqrt(face * thing)
        good = np.flatnonzero(scores >= rule.min_score)
        at = corner[good]
        values = outputs[level + 2 * levels].reshape(-1, 4)[good]
        centre, half = at + values[:, :2] * np.float32(stride), np.exp(values[:, 2:]) * np.float32(stride / 2)
        offsets = outputs[level + 3 * levels].reshape(-1, 5, 2)[good] * np.float32(stride)
        boxes = np.concatenate([centre - half, centre + half], axis=1)
        found.append((scores[good], boxes, at[:, None] + offsets))
    return Candidates(*(np.concatenate(part) for part in zip(*found, strict=True)))


class YuNetDetector(WholePictureDetector):
    """The ``Detector`` on a YuNet network of a card."""

    def __init__(self, card: ModelCard, engine: Engine, device: Device) -> None:
        """Take over an opened engine.

        Args:
            card: of the family "yunet".
            engine: that has loaded the card's model; closed with this detector.
            device: that scales the pictures.

        Raises:
            ModelError: the card's ``[decode]`` is not one of a YuNet network, or does not fit its tensors.
        """
        super().__init__(card, engine, device, COLUMNS, decode)
