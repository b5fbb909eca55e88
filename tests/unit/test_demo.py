"""The built-in demo: a face in every picture that really acts, a loop without a seam, and a camera's manners."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.card import load_card
from engines.registry import open_device, open_engine
from realtime.assets import ASSETS, demo_photo, sample_source
from realtime.detect.ssd import SsdDetector
from realtime.errors import SourceError
from realtime.landmarks import MeshNet
from realtime.sources import SourceWish
from realtime.sources.demo import DemoSource, motion
from realtime.sources.demo.layer import paste, paste_warped, premultiply
from realtime.sources.demo.scene import Scene
from realtime.types import F32, U8, Size

TINY = Size(96, 64)
WEBCAM = Size(640, 480)


@dataclass
class Eyes:
    """The embedded networks, looking for the one face of a picture."""

    detector: SsdDetector
    net: MeshNet

    def mesh(self, pixels: U8) -> tuple[F32, float]:
        faces = self.detector.detect_everywhere(pixels)
        assert faces, "no face was detected"
        mesh, _ = self.net.locate(pixels, self.net.crop_of_detection(faces[0]))
        return self.net.locate(pixels, self.net.crop_of_mesh(mesh))


@pytest.fixture(scope="module")
def eyes() -> Iterator[Eyes]:
    device = open_device("cpu")
    ssd, mesh = load_card("face_detection_short_range"), load_card("face_landmark")
    both = Eyes(SsdDetector(ssd, open_engine(ssd), device), MeshNet(mesh, open_engine(mesh), device))
    yield both
    both.detector.close()
    both.net.close()


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene(WEBCAM)


def gap(mesh: F32, upper: int, lower: int) -> float:
    """Distance of two points of the mesh over the height of the face."""
    return float(np.hypot(*(mesh[upper] - mesh[lower])[:2]) / np.ptp(mesh[:, 1]))


def test_every_picture_of_a_period_shows_the_face_at_two_fifths_of_the_height(eyes: Eyes, scene: Scene) -> None:
    for t_s in np.arange(0, motion.PERIOD_S, 0.2):
        mesh, presence = eyes.mesh(scene.draw(t_s))
        assert presence > 0.8, f"the mesh network is not sure at {t_s:.1f} s"
        assert 0.33 < np.ptp(mesh[:, 1]) / WEBCAM.h < 0.43
        assert abs(mesh[1, 0] - WEBCAM.w / 2) < 0.12 * WEBCAM.w


def test_the_room_is_not_taken_for_a_face(eyes: Eyes) -> None:
    room = np.asarray(cv2.imread(str(ASSETS / "demo_room.jpg")), np.uint8)
    for gain in (0.8, 1.0, 1.1):
        assert not eyes.detector.detect_everywhere(cv2.convertScaleAbs(room, alpha=gain))


def test_the_network_sees_the_mouth_open_and_close(eyes: Eyes, scene: Scene) -> None:
    loudest = max(motion.SYLLABLES, key=lambda bump: bump.height)
    open_mesh, _ = eyes.mesh(scene.draw(loudest.at_s + loudest.up_s))
    closed_mesh, _ = eyes.mesh(scene.draw(5.2))
    assert motion.pose(5.2).mouth == 0
    assert gap(closed_mesh, 13, 14) < 0.02
    assert gap(open_mesh, 13, 14) > 0.045


def test_the_network_sees_the_head_turn_and_nod(eyes: Eyes, scene: Scene) -> None:
    times = np.arange(0, motion.PERIOD_S, 0.1)
    yaw = [motion.pose(t_s).yaw_deg for t_s in times]
    left, right = (eyes.mesh(scene.draw(times[pick(yaw)]))[0] for pick in (np.argmin, np.argmax))

    def nose(mesh: F32) -> float:
        """Where the nose is between the cheeks, 0 at the left one."""
        return float((mesh[1, 0] - mesh[234, 0]) / (mesh[454, 0] - mesh[234, 0]))

    assert nose(right) - nose(left) > 0.15
    assert max(yaw) > 8
    assert min(yaw) < -8


def test_a_blink_covers_the_iris_with_skin(eyes: Eyes, scene: Scene) -> None:
    blink = motion.BLINKS[1]
    before, shut = (scene.draw(t_s) for t_s in (blink.at_s, blink.at_s + blink.up_s))
    mesh, _ = eyes.mesh(before)
    shut_mesh, _ = eyes.mesh(shut)
    for lids in ((159, 145), (386, 374)):
        x, y = mesh[list(lids), :2].mean(axis=0).round().astype(int)
        iris, lid = (picture[y - 2 : y + 2, x - 2 : x + 3].mean() for picture in (before, shut))
        assert lid > iris + 25
    open_gap, shut_gap = (gap(m, 159, 145) + gap(m, 386, 374) for m in (mesh, shut_mesh))
    assert shut_gap < open_gap  # by little: the network hardly sees blinks behind glasses, real ones neither


def test_the_book_covers_the_mouth_and_leaves_the_eyes(eyes: Eyes, scene: Scene) -> None:
    up = motion.CARD[0]
    held = scene.draw(up.at_s + up.up_s + up.hold_s / 2)
    mesh, _ = eyes.mesh(held)

    def skin(points: tuple[int, ...]) -> bool:
        around = [held[y - 1 : y + 2, x - 1 : x + 2] for x, y in mesh[list(points), :2].round().astype(int)]
        blue, _, red = np.concatenate(around).reshape(-1, 3).mean(axis=0)
        return bool(red > blue)

    assert not skin((13, 14, 152))  # lips and chin
    assert skin((10, 151, 9))  # forehead


def test_a_picture_depends_on_its_time_alone(scene: Scene) -> None:
    fresh, used = Scene(TINY), Scene(TINY)
    for t_s in (3.0, 9.0, 0.5):
        used.draw(t_s)
    for t_s in (0.0, 1.2, 3.68, 9.0):
        assert np.array_equal(fresh.draw(t_s), used.draw(t_s))
    assert np.array_equal(scene.draw(1.2), scene.draw(np.float64(1.2)))


def test_the_loop_has_no_seam(scene: Scene) -> None:
    assert np.array_equal(scene.draw(0.7), scene.draw(0.7 + motion.PERIOD_S))
    steps = [motion.PERIOD_S + n / 30 for n in range(-4, 5)]
    changes = [np.abs(a.astype(int) - b).mean() for a, b in pairwise([scene.draw(t_s) for t_s in steps])]
    assert max(changes) < 3 * min(changes) + 0.2


CURVES = [name for name in motion.Pose.__dataclass_fields__ if name != "sway_px"]


@pytest.mark.parametrize("curve", CURVES)
def test_motion_has_no_jerk(curve: str) -> None:
    """Speed is continuous: halving the step halves how much it changes from step to step."""

    def kink(step_s: float) -> float:
        values = np.array([getattr(motion.pose(t_s), curve) for t_s in np.arange(0, motion.PERIOD_S, step_s)])
        return float(np.abs(np.diff(values, 2)).max() / step_s)

    assert kink(0.001) < 0.7 * kink(0.002)


@given(st.floats(-1e4, 1e4, allow_nan=False))
def test_shares_stay_shares_at_any_time(t_s: float) -> None:
    now = motion.pose(t_s)
    for share in (now.blink, now.mouth, now.smile, now.brow, now.card, now.light):
        assert -1e-9 <= share <= 1 + 1e-9


@pytest.mark.parametrize("size", [Size(1280, 720), WEBCAM, Size(1920, 1080), Size(641, 361), Size(333, 500)], ids=str)
def test_any_size_shows_the_face(eyes: Eyes, size: Size) -> None:
    pixels = Scene(size).draw(1.2)
    assert pixels.shape == (size.h, size.w, 3)
    assert pixels.dtype == np.uint8
    assert pixels.flags.c_contiguous
    assert eyes.mesh(pixels)[1] > 0.9


@pytest.mark.parametrize("size", [Size(64, 64), Size(65, 201), Size(2001, 64), Size(999, 333)], ids=str)
def test_odd_shapes_draw_at_every_moment(size: Size) -> None:
    scene = Scene(size)
    for t_s in (0.0, 0.9, 1.2, 3.68, 6.8, 9.0):
        assert scene.draw(t_s).shape == (size.h, size.w, 3)


def test_frames_belong_to_the_reader() -> None:
    source = DemoSource("", SourceWish(size=TINY, paced=False))
    first = source.read()
    kept = first.pixels.copy()
    second = source.read()
    assert not np.shares_memory(first.pixels, second.pixels)
    assert np.array_equal(first.pixels, kept)
    second.pixels[:] = 0
    assert source.read().pixels.mean() > 10
    assert np.array_equal(first.pixels, kept)


class ManualTime:
    """Time that passes only while somebody sleeps or when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 50.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now_s)
        monkeypatch.setattr(time, "sleep", self.pass_by)

    def pass_by(self, seconds: float) -> None:
        self.now_s += seconds


def test_paced_frames_come_at_their_beat_and_do_not_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualTime(monkeypatch)
    source = DemoSource("", SourceWish(size=TINY, fps=25))
    for n in range(150):
        frame = source.read()
        assert frame.seq == n
        assert frame.t_capture_s == pytest.approx(50 + n / 25, abs=1e-6)
        clock.pass_by(0.013)


def test_a_late_reader_skips_and_sees_the_present(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualTime(monkeypatch)
    source = DemoSource("", SourceWish(size=TINY, fps=30))
    source.read()
    clock.pass_by(1.0)
    late = source.read()
    assert late.seq == 30
    assert np.array_equal(late.pixels, Scene(TINY).draw(1.0))


def test_unpaced_it_draws_every_picture_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualTime(monkeypatch)
    source = DemoSource("", SourceWish(size=TINY, paced=False))
    assert not source.info.live
    frames = []
    for _ in range(4):
        frames.append(source.read())
        clock.pass_by(0.5)
    assert [frame.seq for frame in frames] == [0, 1, 2, 3]
    assert [frame.scene_s for frame in frames] == [n / 30 for n in range(4)], "and not every half second"
    assert np.array_equal(frames[3].pixels, Scene(TINY).draw(3 / 30))


def test_it_says_what_it_gives_and_refuses_what_it_cannot() -> None:
    source = DemoSource("", SourceWish())
    assert (source.info.name, source.info.size, source.info.fps) == ("demo", Size(1280, 720), 30)
    assert source.info.live
    source.close()
    source.close()
    with pytest.raises(SourceError, match="closed"):
        source.read()
    with pytest.raises(SourceError, match="no scene called 'beach'"):
        DemoSource("beach", SourceWish())
    with pytest.raises(SourceError, match="32x32"):
        DemoSource("", SourceWish(size=Size(32, 32)))


def test_a_cut_out_is_laid_over_exactly_and_clipped() -> None:
    frame = np.full((20, 30, 3), 100, np.uint8)
    colour, alpha = np.full((10, 10, 3), 200, np.uint8), np.full((10, 10), 255, np.uint8)
    alpha[:, :5] = 0
    paste(frame, premultiply(colour, alpha), 25, -4)
    assert (frame[:6, 25:30] == 100).all()  # the part that is see-through
    paste(frame, premultiply(colour, alpha), 15, 15)
    assert (frame[15:, 20:25] == 200).all()
    assert (frame[15:, 15:20] == 100).all()
    before = frame.copy()
    paste(frame, premultiply(colour, alpha), 40, 0)
    paste_warped(frame, premultiply(colour, alpha), np.array([[1, 0, 0], [0, 1, -50.0]]))
    assert np.array_equal(frame, before)


def test_the_pictures_are_small_and_their_origin_is_noted() -> None:
    notice = (ASSETS / "NOTICE").read_text(encoding="utf-8")
    pictures = [*ASSETS.glob("demo_*"), sample_source()]
    assert all(path.stat().st_size < 300_000 for path in pictures)
    assert all(path.name in notice for path in pictures)
    assert hashlib.sha256(demo_photo().read_bytes()).hexdigest() in notice


def test_the_sample_source_shows_one_face_from_the_front(eyes: Eyes) -> None:
    pixels = np.asarray(cv2.imread(str(sample_source())), np.uint8)
    assert len(eyes.detector.detect_everywhere(pixels)) == 1
    mesh, presence = eyes.mesh(pixels)
    assert presence > 0.99
    assert abs((mesh[1, 0] - mesh[234, 0]) / (mesh[454, 0] - mesh[234, 0]) - 0.5) < 0.1
