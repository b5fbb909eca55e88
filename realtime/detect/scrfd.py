"""Reads the outputs of SCRFD networks: distances from the cells of three grids; knows no pictures.

Source: J. Guo et al., "Sample and Computation Redistribution for Efficient Face Detection", ICLR 2022, and the
networks that the ``insightface`` package loads.
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

COLUMNS = (1, 4, 10)
"""Width of the outputs: the scores of all grids, then their boxes, then their key points."""


def decode(outputs: Sequence[NDArray[Any]], grids: Sequence[F32], rule: GridDecode) -> Candidates:
    """Turn one run's outputs into candidates.

    Args:
        outputs: for each grid scores (n, 1), then for each grid distances to left, top, right and bottom (n, 4), then
            for each grid offsets of the key points (n, 10), both in strides; with or without a leading axis of 1.
        grids: the cells of each grid.
        rule: the card's numbers.

    Returns:
        The candidates that reach ``min_score``, grid by grid.
    """
    found = []
    levels = len(rule.strides)
    for level, (stride, corner) in enumerate(zip(rule.strides, grids, strict=True)):
        scores = outputs[level].reshape(-1)
        good = np.flatnonzero(scores >= rule.min_score)
        at = corner[good]
        distances = outputs[level + levels].reshape(-1, 4)[good] * np.float32(stride)
        offsets = outputs[level + 2 * levels].reshape(-1, 5, 2)[good] * np.float32(stride)
        boxes = np.concatenate([at - distances[:, :2], at + distances[:, 2:]], axis=1)
        found.append((scores[good], boxes, at[:, None] + offsets))
    return Candidates(*(np.concatenate(part) for part in zip(*found, strict=True)))


class ScrfdDetector(WholePictureDetector):
    """The ``Detector`` on an SCRFD network of a card."""

    def __init__(self, card: ModelCard, engine: Engine, device: Device) -> None:
        """Take over an opened engine.

        Args:
            card: of the family "scrfd".
            engine: that has loaded the card's model; closed with this detector.
            device: that scales the pictures.

        Raises:
            ModelError: the card's ``[decode]`` is not one of an SCRFD network, or does not fit its tensors.
        """
        super().__init__(card, engine, device, COLUMNS, decode)
