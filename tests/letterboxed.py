"""Lays a picture into a network's input as the detectors do, for tests that look at the tensor itself."""

from __future__ import annotations

import numpy as np

from engines.contract import TensorSpec
from engines.cpu import CpuDevice
from realtime import geometry
from realtime.detect.letterbox import Letterbox
from realtime.types import F32, F64, U8, Size


def laid(spec: TensorSpec, picture: U8, side_px: int) -> tuple[F32, F64]:
    """The normalised tensor and ``frame_from_input``."""
    sized, frame_from_input = Letterbox(spec, 32).view(Size(picture.shape[1], picture.shape[0]), side_px)
    tensor = np.zeros(sized.shape, np.float32)
    CpuDevice().crop(picture, geometry.between_centres(frame_from_input), sized, tensor)
    return tensor, frame_from_input
