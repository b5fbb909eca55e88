"""The two embedded networks on real pictures: who is in view is found, and what is no face is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

from realtime import geometry
from realtime.assets import demo_photo, sample_source
from realtime.detect import Detection
from realtime.detect.ssd import SsdDetector
from realtime.landmarks import MeshNet, points5
from realtime.types import F64, U8, Size

CLIPS = ("again", "bird", "book", "brother", "eat", "help", "hungry", "learn", "milk", "night",
         "no", "please", "school", "sister", "sorry", "student", "thanks", "walk", "want", "yes")  # fmt: skip


CALLS = 5
"""Calls of the detector that make a complete search, at most (tests/unit/test_ssd.py)."""


def read(path: Path) -> U8:
    picture = cv2.imread(str(path))
    assert picture is not None
    return np.asarray(picture, np.uint8)


def pictures(path: Path) -> Iterator[U8]:
    clip = cv2.VideoCapture(str(path))
    while (got := clip.read())[0]:
        yield np.asarray(got[1], np.uint8)
    clip.release()


def scene(photo: U8, face: Detection, size: Size, part: float, at: tuple[float, float]) -> tuple[U8, F64]:
    """Put a photo into an empty room so that its face has a given height and place; returns its centre too."""
    left, top, right, bottom = (float(v) for v in face.box_xyxy)
    k = part * size.h / (bottom - top)
    reach = np.array([0.5 * part * size.h] * 2)
    centre = reach + np.array(at) * (np.array(size) - 2 * reach)
    shift = centre - k * np.array([left + right, top + bottom]) / 2
    room = np.full((size.h, size.w, 3), (150, 160, 140), np.uint8)
    soft = photo if k >= 1 else cv2.GaussianBlur(photo, (0, 0), 0.45 * (1 / k - 1) + 0.01)
    frame_from_photo = geometry.between_centres(np.array([[k, 0, shift[0]], [0, k, shift[1]]]))
    cv2.warpAffine(soft, frame_from_photo, size, dst=room, borderMode=cv2.BORDER_TRANSPARENT)
    return room, centre


def is_at(face: Detection, centre: F64) -> bool:
    """Say whether a point is near the middle of a face."""
    left_top, right_bottom = face.box_xyxy[:2], face.box_xyxy[2:]
    return bool(np.abs((left_top + right_bottom) / 2 - centre).max() < 0.3 * float(right_bottom[1] - left_top[1]))


@pytest.mark.parametrize("size", [Size(1280, 720), Size(640, 480), Size(720, 1280)])
@pytest.mark.parametrize("part", [0.08, 0.1, 0.14, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("path", [demo_photo(), sample_source()], ids=lambda path: str(path.stem))
def test_a_face_is_found_from_8_to_90_percent_of_the_frames_height(
    detector: SsdDetector, net: MeshNet, path: Path, size: Size, part: float
) -> None:
    if part * size.h > size.w:
        pytest.skip("wider than the frame")
    photo = read(path)
    original = detector.detect_everywhere(photo)[0]
    for at in ((0.5, 0.3), (0.1, 0.7), (0.8, 0.5)):
        frame, centre = scene(photo, original, size, part, at)
        calls = [detector.detect(frame) for _ in range(CALLS)]
        found = [face for faces in calls for face in faces if is_at(face, centre)]
        assert found, at
        assert max(net.locate(frame, net.crop_of_detection(f))[1] for f in found) > 0.9


@pytest.mark.data
@pytest.mark.parametrize("name", CLIPS)
def test_the_person_in_a_clip_is_found_and_both_networks_agree(
    detector: SsdDetector, net: MeshNet, data_dir: Path, name: str
) -> None:
    for picture in list(pictures(data_dir / "clips" / f"{name}.mkv"))[::16]:
        found = {face: net.locate(picture, net.crop_of_detection(face)) for face in detector.detect_everywhere(picture)}
        faces = [(face, mesh) for face, (mesh, presence) in found.items() if presence > 0.5]
        assert faces
        for face, mesh in faces:
            side = float(face.box_xyxy[3] - face.box_xyxy[1])
            five = points5(mesh)
            assert np.abs(five[:3] - face.points[:3]).max() < 0.25 * side
            assert np.abs(five[3:].mean(axis=0) - face.points[3]).max() < 0.25 * side
            assert geometry.iou(face.box_xyxy, geometry.bounds(mesh))[0] > 0.5


@pytest.mark.data
def test_a_face_printed_on_a_shirt_is_a_candidate_that_the_mesh_network_refuses(
    detector: SsdDetector, net: MeshNet, data_dir: Path
) -> None:
    picture = next(pictures(data_dir / "clips" / "yes.mkv"))
    faces = detector.detect_everywhere(picture)
    presences = [net.locate(picture, net.crop_of_detection(face))[1] for face in faces]
    assert len(faces) == 2
    assert sorted(presence > 0.5 for presence in presences) == [False, True]
    person = faces[presences.index(max(presences))]
    assert person.box_xyxy[3] < 200  # the head; the shirt is below


@pytest.mark.data
@pytest.mark.parametrize("name", ["book", "milk", "walk"])
def test_the_mesh_of_one_frame_leads_to_the_face_in_the_next(
    detector: SsdDetector, net: MeshNet, data_dir: Path, name: str
) -> None:
    frames = pictures(data_dir / "clips" / f"{name}.mkv")
    first = next(frames)
    crop = net.crop_of_detection(detector.detect_everywhere(first)[0])
    for frame in frames:
        mesh, presence = net.locate(frame, crop)
        assert presence > 0.5
        crop = net.crop_of_mesh(mesh)


@pytest.mark.data
def test_a_face_that_moved_by_its_own_size_is_found_where_it_was_lost(detector: SsdDetector, data_dir: Path) -> None:
    picture = next(pictures(data_dir / "clips" / "book.mkv"))
    face = detector.detect_everywhere(picture)[0]
    side = float(face.box_xyxy[3] - face.box_xyxy[1])
    for shift in ((side, 0), (-side, 0), (0, side), (0, -side)):
        lost = face.box_xyxy + np.tile(np.array(shift, np.float32), 2)
        seen = detector.detect(picture, near=[lost])
        assert max(float(geometry.iou(face.box_xyxy, f.box_xyxy)[0]) for f in seen) > 0.6


def test_an_empty_room_holds_nobody(detector: SsdDetector) -> None:
    for colour in (0, 128, 255):
        assert detector.detect_everywhere(np.full((480, 640, 3), colour, np.uint8)) == []


@pytest.mark.parametrize("shape", [(1, 1, 3), (2, 300, 3), (300, 2, 3), (17, 31, 3)])
def test_no_size_of_picture_is_too_strange(detector: SsdDetector, net: MeshNet, shape: tuple[int, int, int]) -> None:
    picture = np.full(shape, 90, np.uint8)
    for _ in range(3):
        detector.detect(picture)
    mesh, presence = net.locate(picture, geometry.square_crop((1000.0, -1000.0), 50.0, (1.0, 0.0), 192))
    assert np.isfinite(mesh).all()
    assert 0 <= presence <= 1
