"""The tracker with the real networks on real people: who is in view is followed, under one name, and nobody else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import cv2
import numpy as np
import pytest

from realtime.meter import Meter
from realtime.track import Sighting, Tracker
from realtime.types import F32, U8
from tests.real import CLIPS, Networks, clip, face_of, open_networks

pytestmark = pytest.mark.data


@pytest.fixture
def networks() -> Iterator[Networks]:
    """Fresh for each test: where the detector looks next depends on where it looked before."""
    with open_networks() as opened:
        yield opened


def follow(networks: Networks, pictures: Sequence[U8], detect_every_n: int = 15) -> list[Sighting]:
    tracker = Tracker(*networks, 0.5, Meter())
    return [tracker.follow(picture, number / 30, detect_every_n) for number, picture in enumerate(pictures)]


def names(seen: Sighting) -> list[int]:
    return sorted(face.track_id for face in seen.faces)


def is_on(box: F32, truth: F32) -> bool:
    """Whether two boxes have about the same middle."""
    off = np.abs((box[:2] + box[2:]) / 2 - (truth[:2] + truth[2:]) / 2).max()
    return bool(off < 0.5 * float(truth[3] - truth[1]))


@pytest.mark.parametrize("name", CLIPS)
@pytest.mark.parametrize("detect_every_n", [1, 15])
def test_the_person_is_followed_from_the_first_frame_to_the_last_and_nothing_else_is(
    networks: Networks, data_dir: Path, name: str, detect_every_n: int
) -> None:
    pictures = clip(data_dir, name)
    seen = follow(networks, pictures, detect_every_n)
    assert {tuple(names(s)) for s in seen} == {(1,)}
    for picture, sighting in list(zip(pictures, seen, strict=True))[::10]:
        assert is_on(sighting.faces[0].box_xyxy, face_of(networks[0], picture))


@pytest.mark.parametrize("name", ["book", "help", "night", "student"])
def test_a_covered_face_is_lost_and_found_under_its_name(networks: Networks, data_dir: Path, name: str) -> None:
    pictures = clip(data_dir, name, 50)
    for picture in pictures[20:40]:
        left, top, right, bottom = (int(v) for v in face_of(networks[0], picture))
        reach = (right - left) // 4
        cv2.rectangle(picture, (left - reach, top - reach), (right + reach, bottom + reach), (110, 140, 190), -1)
    seen = follow(networks, pictures)
    assert [names(s) for s in seen] == [[1]] * 20 + [[]] * 20 + [[1]] * 10
    assert all(list(s.lost) == [1] for s in seen[20:40])


@pytest.mark.parametrize("way", [(-1, 0), (1, 0), (0, -1)])
def test_who_leaves_and_comes_back_in_time_has_the_old_name(
    networks: Networks, data_dir: Path, way: tuple[int, int]
) -> None:
    pictures = clip(data_dir, "book", 40)
    shifts = [*[0] * 45, *range(0, 480, 16), *[480] * 5, *range(480, -1, -32)]
    moved = [slide(pictures[n % 40], way[0] * shift, way[1] * shift) for n, shift in enumerate(shifts)]
    seen = follow(networks, moved)
    assert [1] not in [names(s) for s in seen[75:80]], "the person is gone"
    assert names(seen[-1]) == [1]


def slide(picture: U8, x: int, y: int) -> U8:
    shift = np.array([[1, 0, x], [0, 1, y]], np.float32)
    return np.asarray(cv2.warpAffine(picture, shift, (640, 480), borderValue=(90, 100, 95)), np.uint8)


@pytest.mark.parametrize("name", ["book", "help", "walk"])
@pytest.mark.parametrize("way", ["shake", "hop", "sway"])
def test_a_head_that_moves_too_fast_is_lost_or_followed_but_never_taken_to_be_beside_itself(
    networks: Networks, data_dir: Path, name: str, way: str
) -> None:
    pictures = clip(data_dir, name, 50)
    turn = np.arange(len(pictures)) / 4
    shifts = {
        "shake": [(25 * (-1) ** n, 0) for n in range(len(pictures))],
        "hop": [(0, 45 * (n // 4 % 2)) for n in range(len(pictures))],
        "sway": [(int(x), int(y)) for x, y in zip(200 * np.sin(turn), 60 * np.cos(turn), strict=True)],
    }[way]
    moved = [slide(picture, *shift) for picture, shift in zip(pictures, shifts, strict=True)]
    seen = follow(networks, moved)
    assert sum(len(s.faces) for s in seen) > 20
    for picture, sighting in zip(moved, seen, strict=True):
        assert all(is_on(face.box_xyxy, face_of(networks[0], picture)) for face in sighting.faces)


@pytest.mark.parametrize(("left", "right"), [("book", "milk"), ("student", "yes"), ("help", "brother")])
def test_two_people_side_by_side_are_two(networks: Networks, data_dir: Path, left: str, right: str) -> None:
    pairs = zip(clip(data_dir, left, 40), clip(data_dir, right, 40), strict=True)
    seen = follow(networks, [np.hstack(pair) for pair in pairs])
    assert {tuple(names(s)) for s in seen} == {(1, 2)}
    sides = [{f.track_id: f.box_xyxy[0] < 640 for f in s.faces} for s in seen]
    assert all(side == sides[0] for side in sides)


@pytest.mark.parametrize(("back", "front"), [("book", "milk"), ("again", "walk"), ("sister", "yes")])
def test_two_people_who_cross_keep_their_names(networks: Networks, data_dir: Path, back: str, front: str) -> None:
    heads = [head(networks, clip(data_dir, name, 1)[0]) for name in (back, front)]
    y, x = np.mgrid[:200, :200]
    oval = ((((x - 100) / 78) ** 2 + ((y - 100) / 96) ** 2) < 1)[..., None]
    pictures, places = [], []
    for number in range(90):
        picture = np.full((480, 960, 3), (120, 125, 130), np.uint8)
        places.append((60 + 7 * number, 700 - 7 * number))
        for left, one in zip(places[-1], heads, strict=True):
            picture[140:340, left : left + 200] = np.where(oval, one, picture[140:340, left : left + 200])
        pictures.append(picture)
    seen = follow(networks, pictures)
    who = [
        {f.track_id: abs(float(f.points5[2, 0]) - a - 100) < abs(float(f.points5[2, 0]) - b - 100) for f in s.faces}
        for s, (a, b) in zip(seen, places, strict=True)
    ]
    assert len(who[0]) == len(who[-1]) == 2
    assert min(len(w) for w in who) == 1, "one was behind the other"
    assert who[0] == who[-1]


def head(networks: Networks, picture: U8) -> U8:
    """The head of the person in a picture, 200x200."""
    left, top, right, bottom = face_of(networks[0], picture)
    reach = int(0.85 * (bottom - top))
    x, y = int((left + right) / 2), int(top + 0.4 * (bottom - top))
    return np.asarray(cv2.resize(picture[max(y - reach, 0) : y + reach, x - reach : x + reach], (200, 200)), np.uint8)


def test_frames_of_another_size_keep_the_name_and_lose_no_frame(networks: Networks, data_dir: Path) -> None:
    pictures = clip(data_dir, "walk", 40)
    pictures[10:20] = [np.asarray(cv2.resize(p, (1280, 960)), np.uint8) for p in pictures[10:20]]
    pictures[20:30] = [np.ascontiguousarray(p[:, 80:560]) for p in pictures[20:30]]
    seen = follow(networks, pictures)
    assert {tuple(names(s)) for s in seen} == {(1,)}


def test_a_face_cut_by_each_border_never_breaks_the_tracker(networks: Networks, data_dir: Path) -> None:
    picture = clip(data_dir, "milk", 1)[0]
    left, top, right, bottom = (int(v) for v in face_of(networks[0], picture))
    tracker = Tracker(*networks, 0.5, Meter())
    middle = ((left + right) // 2 - 320, (top + bottom) // 2 - 240)
    for number, turn in enumerate(np.linspace(0, 8 * np.pi, 120)):
        x, y = (330 * np.cos(turn) - middle[0], 250 * np.sin(turn) - middle[1])
        seen = tracker.follow(slide(picture, int(x), int(y)), number / 30, 5)
        assert all(np.isfinite(face.mesh).all() for face in seen.faces)
