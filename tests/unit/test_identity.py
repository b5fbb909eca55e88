"""Source photos of every kind, with the real networks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

from engines.card import load_card
from engines.registry import open_device, open_engine
from realtime import geometry
from realtime.assets import demo_photo, sample_source
from realtime.detect.ssd import SsdDetector
from realtime.errors import IdentityError
from realtime.identity import LEAST_FACE_PX, Portrait, read_portrait
from realtime.landmarks import MeshNet, points5
from realtime.types import F32, U8


@pytest.fixture(scope="module")
def networks() -> Iterator[tuple[SsdDetector, MeshNet]]:
    detector_card, mesh_card = load_card("face_detection_short_range"), load_card("face_landmark")
    detector = SsdDetector(detector_card, open_engine(detector_card), open_device("cpu"))
    mesh_net = MeshNet(mesh_card, open_engine(mesh_card), open_device("cpu"))
    yield detector, mesh_net
    detector.close()
    mesh_net.close()


def read(path: Path) -> U8:
    picture = cv2.imread(str(path))
    assert picture is not None
    return np.asarray(picture, np.uint8)


def portrait_of(pixels: U8, folder: Path, networks: tuple[SsdDetector, MeshNet]) -> Portrait:
    path = folder / "photo.png"
    cv2.imwrite(str(path), pixels)
    return read_portrait(path, *networks)


def box_of(portrait: Portrait) -> F32:
    return geometry.bounds(portrait.mesh)


@pytest.mark.parametrize("path", [demo_photo(), sample_source()], ids=lambda path: str(path.stem))
def test_the_shipped_photos_show_one_face_each(path: Path, networks: tuple[SsdDetector, MeshNet]) -> None:
    portrait = read_portrait(path, *networks)
    assert portrait.faces == 1
    assert portrait.path == str(path)
    np.testing.assert_array_equal(portrait.pixels, read(path))
    left_eye, right_eye, nose, *_ = points5(portrait.mesh)
    assert left_eye[0] < nose[0] < right_eye[0]


@pytest.mark.data
def test_the_astronauts_face_is_taken_and_the_patch_on_the_suit_is_not_counted(
    data_dir: Path, networks: tuple[SsdDetector, MeshNet]
) -> None:
    portrait = read_portrait(data_dir / "faces" / "astronaut.png", *networks)
    assert portrait.faces == 1
    assert box_of(portrait)[3] < 230


@pytest.mark.data
@pytest.mark.parametrize("name", ["again", "bird", "book"])
def test_a_picture_of_a_clip_shows_one_face_whatever_is_on_the_shirt(
    data_dir: Path, networks: tuple[SsdDetector, MeshNet], name: str
) -> None:
    portrait = read_portrait(data_dir / "faces" / f"{name}.png", *networks)
    assert portrait.faces == 1
    assert box_of(portrait)[3] < 240


def test_of_several_faces_the_most_prominent_is_taken_and_all_are_counted(
    tmp_path: Path, networks: tuple[SsdDetector, MeshNet]
) -> None:
    photo = read(sample_source())
    height, width = photo.shape[:2]
    half = cv2.resize(photo, (width // 2, height // 2), interpolation=cv2.INTER_AREA)
    group = np.zeros((height, width * 2, 3), np.uint8)
    group[: height // 2, : width // 2] = half
    group[:, width:] = photo
    portrait = portrait_of(group, tmp_path, networks)
    assert portrait.faces == 2
    assert box_of(portrait)[0] > width


@pytest.mark.parametrize("turn", [cv2.ROTATE_90_CLOCKWISE, cv2.ROTATE_90_COUNTERCLOCKWISE])
@pytest.mark.parametrize("path", [demo_photo(), sample_source()], ids=lambda path: str(path.stem))
def test_a_sideways_photo_gives_the_sideways_face(
    path: Path, turn: int, tmp_path: Path, networks: tuple[SsdDetector, MeshNet]
) -> None:
    upright = read_portrait(path, *networks)
    portrait = portrait_of(np.asarray(cv2.rotate(upright.pixels, turn), np.uint8), tmp_path, networks)
    x, y = upright.mesh[:, 0], upright.mesh[:, 1]
    height, width = upright.pixels.shape[:2]
    turned = [height - y, x] if turn == cv2.ROTATE_90_CLOCKWISE else [y, width - x]
    off = np.hypot(*(portrait.mesh[:, :2] - np.stack(turned, axis=1)).T)
    assert off.mean() < 0.04 * float(np.ptp(y))


@pytest.mark.parametrize("path", [demo_photo(), sample_source()], ids=lambda path: str(path.stem))
@pytest.mark.parametrize("room", [0.0, 0.1, 0.3])
def test_a_face_that_fills_the_photo_is_found(
    path: Path, room: float, tmp_path: Path, networks: tuple[SsdDetector, MeshNet]
) -> None:
    whole = read_portrait(path, *networks)
    cut, corner = close_cut(whole, room)
    portrait = portrait_of(cut, tmp_path, networks)
    off = np.hypot(*(portrait.mesh[:, :2] + corner - whole.mesh[:, :2]).T)
    assert off.mean() < 0.04 * float(np.ptp(whole.mesh[:, 1]))


def close_cut(portrait: Portrait, room: float) -> tuple[U8, F32]:
    """Cut a photo ``room`` face heights around the face; also gives the corner of the cut."""
    left, top, right, bottom = box_of(portrait)
    room *= bottom - top
    x, y = max(int(left - room), 0), max(int(top - room), 0)
    cut = portrait.pixels[y : int(bottom + room), x : int(right + room)]
    return np.ascontiguousarray(cut), np.array([x, y], np.float32)


def test_a_face_that_is_too_small_is_refused_with_its_height(
    tmp_path: Path, networks: tuple[SsdDetector, MeshNet]
) -> None:
    whole = read_portrait(sample_source(), *networks)
    k = 0.8 * LEAST_FACE_PX / float(np.ptp(whole.mesh[:, 1]))
    small = cv2.resize(whole.pixels, None, fx=k, fy=k, interpolation=cv2.INTER_AREA)
    with pytest.raises(IdentityError, match=r"is only (3|4)\d pixels high") as error:
        portrait_of(np.asarray(small, np.uint8), tmp_path, networks)
    assert "at least 48" in error.value.hint


@pytest.mark.parametrize(
    "pixels",
    [
        np.full((300, 400, 3), 120, np.uint8),
        np.random.default_rng(0).integers(0, 256, (300, 400, 3), dtype=np.uint8),
        np.zeros((1, 1, 3), np.uint8),
        np.full((2, 3000, 3), 200, np.uint8),
    ],
    ids=["grey", "noise", "one pixel", "a line"],
)
def test_a_photo_without_a_face_is_refused(pixels: U8, tmp_path: Path, networks: tuple[SsdDetector, MeshNet]) -> None:
    with pytest.raises(IdentityError, match="shows no face") as error:
        portrait_of(pixels, tmp_path, networks)
    assert "upright" in error.value.hint


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "there is no file"), (b"", "empty"), (b"hello", "not a picture")],
)
def test_what_is_no_photo_is_refused(
    content: bytes | None, said: str, tmp_path: Path, networks: tuple[SsdDetector, MeshNet]
) -> None:
    path = tmp_path / "photo.jpg"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(IdentityError, match=said):
        read_portrait(path, *networks)


def test_a_damaged_photo_and_a_huge_one_are_refused(tmp_path: Path, networks: tuple[SsdDetector, MeshNet]) -> None:
    damaged, huge = tmp_path / "damaged.jpg", tmp_path / "huge.png"
    damaged.write_bytes(sample_source().read_bytes()[:3000])
    cv2.imwrite(str(huge), np.zeros((7200, 7200), np.uint8))
    with pytest.raises(IdentityError, match="damaged"):
        read_portrait(damaged, *networks)
    with pytest.raises(IdentityError, match="at most 50"):
        read_portrait(huge, *networks)
