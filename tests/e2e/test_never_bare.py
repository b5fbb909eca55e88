"""The whole path of a frame, with the real networks and the mesh swap on real people: swapped, or not shown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import cv2
import numpy as np
import pytest

from engines.registry import open_device
from realtime.assets import sample_source
from realtime.guard import Guard, OnLost, Outcome
from realtime.identity import read_portrait
from realtime.meter import Meter
from realtime.people.cast import Everyone
from realtime.people.choose import Chooser, Which
from realtime.pipeline import Painters, Pipeline
from realtime.placard import placard
from realtime.swappers import Look
from realtime.swappers.mesh import MeshSwapper, identity_of
from realtime.swappers.texture import build_texture
from realtime.track import Tracker
from realtime.types import F32, U8, Face, Frame, Quality, Size
from tests.real import CLIPS, Networks, bareness, clip, face_of, open_networks

pytestmark = pytest.mark.data
BARE = 0.9
"""An untouched face has 1, a mesh swap (own eyes, own mouth, own surroundings in the box) 0.5 to 0.8, frost 0.1."""
FULL = Quality(1.0, 15, frozenset({"obstacles"}))


@pytest.fixture(scope="module")
def networks() -> Iterator[Networks]:
    with open_networks() as opened:
        yield opened


class Faulty(MeshSwapper):
    """The real swapper, with a fault that comes and goes."""

    fault: Exception | None = None

    def swap(self, pixels: U8, face: Face, now_s: float, steps: Collection[str]) -> bool:
        if self.fault:
            raise self.fault
        return super().swap(pixels, face, now_s, steps)


class BypassedGuard(Guard):
    def settle(self, now_s: float, frame: Frame, outcome: Outcome, lost_boxes: Sequence[F32] = ()) -> Frame:
        return frame


def a_card(size: Size) -> U8:
    return placard(size, "No face in view").copy()


def a_pipeline(
    networks: Networks, which: Which = "largest", on_lost: OnLost = "blur", guard: Callable[..., Guard] = Guard
) -> tuple[Pipeline, Faulty]:
    portrait, meter = read_portrait(sample_source(), *networks), Meter()
    identity = identity_of(build_texture(portrait.pixels, portrait.mesh))
    device = open_device("cpu")
    swapper = Faulty(device, (identity,), Look(), meter)
    painters = Painters(device, [swapper])
    tracker = Tracker(*networks, 0.5, meter)
    return Pipeline(tracker, Everyone(), Chooser(which), painters, guard(on_lost, 0.2, a_card), meter), swapper


def shoot(pipeline: Pipeline, pictures: Sequence[U8], quality: Quality = FULL, start: int = 0) -> list[U8]:
    shown = []
    for number, picture in enumerate(pictures, start):
        frame = pipeline.process(Frame(number, number / 30, picture.copy()), quality, number / 30 + 0.01)
        assert (frame.seq, frame.pixels.shape) == (number, picture.shape)
        shown.append(frame.pixels)
    return shown


def worst(networks: Networks, shown: Sequence[U8], pictures: Sequence[U8]) -> float:
    return max(bareness(s, c, face_of(networks[0], c)) for s, c in zip(shown, pictures, strict=True))


@pytest.mark.parametrize("name", CLIPS)
def test_every_frame_is_swapped_from_the_first_on(networks: Networks, data_dir: Path, name: str) -> None:
    pictures = clip(data_dir, name, 20)
    pipeline, _ = a_pipeline(networks)
    shown = shoot(pipeline, pictures)
    assert worst(networks, shown, pictures) < BARE
    assert pipeline.failure == ""
    for was, now in zip(pictures, shown, strict=True):
        np.testing.assert_array_equal(was[440:], now[440:])  # swapped, not frosted: the rest is as it was


def story(networks: Networks, pipeline: Pipeline, swapper: Faulty, pictures: list[U8]) -> float:
    """Good frames, then every frame fails, then the picture grows too; says how bare the barest face was."""
    large = [np.asarray(cv2.resize(p, (960, 720)), np.uint8) for p in pictures[20:]]
    shown = shoot(pipeline, pictures[:10])
    swapper.fault = RuntimeError("no answer")
    shown += shoot(pipeline, pictures[10:20], start=10)
    shown_large = shoot(pipeline, large, start=20)
    return max(worst(networks, shown, pictures[:20]), worst(networks, shown_large, large))


@pytest.mark.parametrize("on_lost", ["hold", "blur", "card"])
@pytest.mark.parametrize("name", ["help", "walk"])
def test_a_failing_swapper_shows_no_bare_face(networks: Networks, data_dir: Path, name: str, on_lost: OnLost) -> None:
    pipeline, swapper = a_pipeline(networks, on_lost=on_lost)
    assert story(networks, pipeline, swapper, clip(data_dir, name, 30)) < BARE
    assert pipeline.failure == "RuntimeError: no answer"


def test_without_the_guard_the_same_check_sees_a_bare_face(networks: Networks, data_dir: Path) -> None:
    pipeline, swapper = a_pipeline(networks, guard=BypassedGuard)
    assert story(networks, pipeline, swapper, clip(data_dir, "help", 30)) > BARE


def test_two_people_are_swapped_and_one_who_is_covered_is_not_shown_beside_the_other(
    networks: Networks, data_dir: Path
) -> None:
    left, right = clip(data_dir, "book", 30), clip(data_dir, "milk", 30)
    pictures = [np.hstack(pair) for pair in zip(left, right, strict=True)]
    pipeline, _ = a_pipeline(networks, "all")
    for number, shown in enumerate(shoot(pipeline, pictures)):
        halves = ((shown[:, :640], left[number]), (shown[:, 640:], right[number]))
        assert max(bareness(half, was, face_of(networks[0], was)) for half, was in halves) < BARE
    assert len(pipeline.faces) == 2


def test_a_film_becomes_the_same_on_a_slow_and_on_a_busy_machine(networks: Networks, data_dir: Path) -> None:
    made = []
    for pause_s in (0.01, 0.3):
        pipeline, _ = a_pipeline(networks)
        frames = [Frame(n, n * pause_s, p.copy(), n / 30) for n, p in enumerate(clip(data_dir, "walk", 20))]
        made.append([pipeline.process(frame, FULL, frame.t_capture_s).pixels for frame in frames])
    np.testing.assert_array_equal(made[0], made[1])


@pytest.mark.parametrize("scale", [0.5, 0.7])
def test_a_smaller_working_size_leaves_the_background_and_the_name(
    networks: Networks, data_dir: Path, scale: float
) -> None:
    pictures = [np.asarray(cv2.resize(p, (1920, 1440)), np.uint8) for p in clip(data_dir, "again", 12)]
    pipeline, _ = a_pipeline(networks)
    shown = shoot(pipeline, pictures[:4])
    shown += shoot(pipeline, pictures[4:8], Quality(scale, 15, frozenset()), start=4)
    shown += shoot(pipeline, pictures[8:], start=8)
    assert worst(networks, shown, pictures) < BARE
    assert [f.track_id for f in pipeline.faces] == [1]
    for was, now in zip(pictures, shown, strict=True):
        np.testing.assert_array_equal(was[1200:], now[1200:])
    np.testing.assert_allclose(pipeline.faces[0].box_xyxy.mean(), face_of(networks[0], pictures[-1]).mean(), atol=60)
    off = np.abs(shown[4].astype(float) - shown[3].astype(float))
    assert off.mean() < 3, "the picture does not jump when the working size changes"
