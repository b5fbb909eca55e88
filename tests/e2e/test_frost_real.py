"""What the guard frosts on real pictures is no face any more, for the networks that found one before."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from realtime.assets import demo_photo, sample_source
from realtime.detect.ssd import SsdDetector
from realtime.frost import frost, frost_box
from realtime.landmarks import MeshNet
from realtime.types import F32, U8, Size


def portrait(detector: SsdDetector, path: str, size: Size, part: float) -> tuple[U8, F32]:
    """A real face, ``part`` of the height tall, in the middle of a picture; and its box."""
    photo = np.asarray(cv2.imread(path), np.uint8)
    left, top, right, bottom = (float(side) for side in detector.detect_everywhere(photo)[0].box_xyxy)
    k = part * size.h / (bottom - top)
    shift = np.array(size) / 2 - k * np.array([left + right, top + bottom]) / 2
    picture = cv2.warpAffine(
        photo,
        np.array([[k, 0, shift[0]], [0, k, shift[1]]]),
        size,
        flags=cv2.INTER_AREA,
        borderMode=cv2.BORDER_REPLICATE,
    )
    half = k * np.array([right - left, bottom - top]) / 2
    return np.asarray(picture, np.uint8), np.concatenate([np.array(size) / 2 - half, np.array(size) / 2 + half]).astype(
        np.float32
    )


def faces(detector: SsdDetector, net: MeshNet, picture: U8) -> int:
    """Faces that both networks agree on."""
    calls = [detector.detect_everywhere(picture), *(detector.detect(picture) for _ in range(8))]
    found = [net.locate(picture, net.crop_of_detection(face)) for call in calls for face in call]
    return sum(presence > 0.5 for _, presence in found)


@pytest.mark.parametrize("path", [demo_photo(), sample_source()], ids=lambda path: str(path.stem))
@pytest.mark.parametrize("part", [0.08, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("whole", [True, False], ids=["whole picture", "box"])
def test_a_frosted_face_is_no_face_for_the_networks(
    detector: SsdDetector, net: MeshNet, path: object, part: float, whole: bool
) -> None:
    picture, box = portrait(detector, str(path), Size(1280, 720), part)
    assert faces(detector, net, picture)
    if whole:
        frost(picture)
    else:
        frost_box(picture, box)
    assert not faces(detector, net, picture)
