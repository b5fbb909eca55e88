"""The pipeline before scripted networks and swappers that fail in every way: the bare face is never emitted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.contract import Device, Failure, Report
from engines.cpu import CpuDevice
from realtime.enhance import Enhancer
from realtime.errors import DeviceError, EngineError
from realtime.guard import Guard, OnLost, Outcome
from realtime.meter import Meter
from realtime.people.cast import Cast, Everyone
from realtime.people.choose import Chooser, Which
from realtime.pipeline import EAGER, Painters, Pipeline
from realtime.swappers import Look, Painted
from realtime.track import Sighting, Tracker
from realtime.types import F32, U8, Face, Frame, Quality, Size
from realtime.works import Works
from tests.fakes import picture
from tests.stage import Actor, FakeDetector, FakeMeshNet, Scene

FPS = 30
VGA, HD = Size(640, 480), Size(1280, 720)
FULL = Quality(1.0, 15, frozenset({"obstacles"}))
HALF = Quality(0.5, 15, frozenset())
BARE = 0.5
"""Correlation of the emitted face with the camera's above which a person is recognised: noise that was painted over,
frosted or replaced has none."""


class FakeSwapper:
    """Paints new noise over a face, or fails as told."""

    painted: Painted | None = None

    def __init__(self) -> None:
        self.fault: Exception | str = ""
        self.faults_of: dict[int, Exception | str] = {}
        self.calls: list[tuple[Face, frozenset[str]]] = []
        self.times: list[float] = []
        self.known: set[int] = set()

    def swap(self, pixels: U8, face: Face, now_s: float, steps: Collection[str]) -> bool:
        self.calls.append((face, frozenset(steps)))
        self.times.append(now_s)
        fault = self.faults_of.get(face.track_id, self.fault)
        height, width = pixels.shape[:2]
        left, top, right, bottom = (int(v) for v in np.clip(face.box_xyxy, 0, (width, height, width, height)))
        part = pixels[top:bottom, left:right]
        if fault == "refuse" or not part.size:
            return False
        if fault == "not yet":  # a device that works ahead would paint later
            return True
        if isinstance(fault, Exception):
            part[: len(part) // 4] = 77  # it was half way through
            raise fault
        made = np.random.default_rng(len(self.calls)).uniform(20, 250, part.shape)
        if fault == "nan":
            made[:] = np.nan
        if fault == "black":
            made[:] = 0
        with np.errstate(invalid="ignore"):
            part[:] = np.nan_to_num(made).astype(np.uint8)
        return True

    def forget(self, followed: Collection[int]) -> None:
        self.known = set(followed)

    def relook(self, look: Look) -> bool:
        return True


class BypassedGuard(Guard):
    """What the program would be without a guard."""

    def settle(self, now_s: float, frame: Frame, outcome: Outcome, lost_boxes: Sequence[F32] = ()) -> Frame:
        return frame


@dataclass
class Studio:
    """A pipeline before a scene of noise; ``shoot`` is one frame through it."""

    which: Which = "largest"
    on_lost: OnLost = "blur"
    make_guard: Callable[[OnLost, float, Callable[[Size], U8]], Guard] = Guard
    cast: Cast = field(default_factory=Everyone)
    enhancer: Enhancer | None = None
    device: Device = field(default_factory=CpuDevice)

    def __post_init__(self) -> None:
        self.scene, self.meter = Scene(), Meter()
        self.swappers = FakeSwapper(), FakeSwapper()
        self.swapper = self.swappers[0]
        self.told: list[str] = []
        self.pipeline = Pipeline(
            Tracker(FakeDetector(self.scene), FakeMeshNet(self.scene), 0.5, self.meter),
            self.cast,
            Chooser(self.which),
            Painters(self.device, self.swappers, self.enhancer),
            self.make_guard(self.on_lost, 0.5, lambda size: picture(9, size)),
            self.meter,
            self.told.append,
        )
        self.seq, self.later_s = -1, 0.0
        self.size = VGA
        self.camera = picture(0)

    def shoot(self, quality: Quality = FULL) -> Frame:
        self.seq += 1
        random = np.random.default_rng(self.seq)
        self.camera = random.integers(20, 250, (self.size.h, self.size.w, 3), dtype=np.uint8)
        now_s = 5 + self.later_s + self.seq / FPS
        shown = self.pipeline.process(Frame(self.seq, now_s, self.camera.copy()), quality, now_s + 0.01)
        assert (shown.seq, shown.size) == (self.seq, self.size)
        return shown

    def settle(self) -> None:
        """Follow everyone for long enough to be remembered when lost."""
        self.shoot()
        self.later_s += 3
        self.shoot()

    def bareness(self, shown: Frame, actor: Actor) -> float:
        """Correlation of what is shown of a face with what the camera saw, -1..1; 0 where it is out of the picture."""
        left, top, right, bottom = (max(int(v), 0) for v in actor.box)
        a, b = (p[top:bottom, left:right].astype(np.float64) for p in (shown.pixels, self.camera))
        if a.size < 300:
            return 0.0
        a, b = a - a.mean(), b - b.mean()
        return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum() + 1e-9))

    def check(self, shown: Frame) -> None:
        for actor in self.scene.actors:
            assert self.bareness(shown, actor) < BARE


FAULTS: tuple[Exception | str, ...] = (
    "", "refuse", "nan", "black",
    RuntimeError("boom"), ValueError("boom"), MemoryError(), ZeroDivisionError(), IndexError(), AssertionError(),
    EngineError("the network failed", "open it again"),
)  # fmt: skip


@dataclass(frozen=True)
class Take:
    """What happens during some frames."""

    frames: int
    fault: Exception | str
    hidden: bool
    broken: bool
    size: Size
    scale: float
    move: float


TAKES = st.lists(
    st.builds(
        Take,
        frames=st.integers(1, 8),
        fault=st.sampled_from(FAULTS),
        hidden=st.sampled_from([False, False, True]),
        broken=st.sampled_from([False, False, False, True]),
        size=st.sampled_from([VGA, VGA, HD]),
        scale=st.sampled_from([1.0, 1.0, 0.7, 0.3]),
        move=st.floats(-60, 60),
    ),
    max_size=6,
)


def play(studio: Studio, takes: list[Take], check: Callable[[Frame], None]) -> None:
    """Two people who were followed for a while; the networks lose sight of one, for less than the tracker's memory.

    Nobody moves while nothing can see it: where an unseen face goes, nobody knows.
    """
    person, other = Actor(200, 200, 120), Actor(450, 200, 100)
    cast = [person, other] if studio.which == "all" else [person]
    studio.scene.actors = cast
    studio.settle()
    x = person.x
    for take in takes:
        x += 0 if take.hidden or take.broken else take.move
        x = min(max(x, 0), 330)
        studio.size = take.size
        kx, ky = take.size.w / VGA.w, take.size.h / VGA.h
        person.x, person.y, person.height = x * kx, 200 * ky, 120 * ky
        other.x, other.y, other.height = 450 * kx, 200 * ky, 100 * ky
        for _ in range(take.frames):
            studio.swapper.fault = take.fault
            person.hidden = take.hidden
            studio.scene.broken = RuntimeError("no answer") if take.broken else None
            check(studio.shoot(Quality(take.scale, 1, frozenset())))


@settings(max_examples=60)
@given(TAKES, st.sampled_from(["hold", "blur", "card"]), st.sampled_from(["largest", "all"]))
def test_whatever_fails_the_bare_face_is_never_shown(takes: list[Take], on_lost: OnLost, which: Which) -> None:
    studio = Studio(which, on_lost)
    play(studio, takes, studio.check)


@pytest.mark.parametrize("fault", FAULTS[1:], ids=str)
def test_the_check_turns_red_when_the_guard_is_bypassed(fault: Exception | str) -> None:
    studio = Studio(make_guard=BypassedGuard)
    take = Take(1, fault, hidden=False, broken=False, size=VGA, scale=1.0, move=0)
    if fault in {"nan", "black"}:
        play(studio, [take], lambda shown: None)
        assert studio.pipeline.failure.startswith("black picture")
    else:
        with pytest.raises(AssertionError):
            play(studio, [take], studio.check)


@pytest.mark.parametrize("fault", ["nan", "black"])
def test_a_black_face_is_no_swap(fault: str) -> None:
    studio = Studio()
    studio.scene.actors = [Actor(200, 200, 120)]
    good = studio.shoot()
    studio.swapper.fault = fault
    assert studio.shoot().pixels is good.pixels


def test_a_film_is_worked_on_in_its_own_time_however_long_that_takes() -> None:
    studio = Studio(on_lost="raw")  # which holds for half a second
    studio.scene.actors = [Actor(200, 200, 120)]
    held = []
    for number in range(40):
        studio.swapper.fault = "refuse" if number >= 10 else ""
        camera, now_s = picture(number, VGA), 100.0 * number
        shown = studio.pipeline.process(Frame(number, now_s, camera.copy(), number / FPS), FULL, now_s)
        held.append(not np.array_equal(shown.pixels, camera))
    assert studio.swapper.times == [number / FPS for number in range(40)]
    assert held == [number <= 9 + FPS // 2 for number in range(40)]


@pytest.mark.parametrize("which", ["largest", "all"])
def test_raw_shows_the_bare_face_only_after_the_hold(which: Which) -> None:
    studio = Studio(which, "raw")
    person = Actor(200, 200, 120)
    studio.scene.actors = [person]
    studio.settle()
    person.hidden = True
    for _ in range(FPS // 2 - 1):
        studio.check(studio.shoot())
    for _ in range(5):
        shown = studio.shoot()
    assert studio.bareness(shown, person) > 0.99


def test_someone_who_was_lost_is_frosted_beside_someone_who_is_swapped() -> None:
    studio = Studio("all")
    left, right = Actor(150, 200, 100), Actor(450, 200, 100)
    studio.scene.actors = [left, right]
    studio.settle()
    left.hidden = True
    shown = studio.shoot()
    assert [f.track_id for f in studio.pipeline.faces] == [2]
    studio.check(shown)
    np.testing.assert_array_equal(shown.pixels[400:], studio.camera[400:])


def test_people_who_were_not_chosen_are_left_alone() -> None:
    studio = Studio("largest")
    person, other = Actor(200, 200, 140), Actor(450, 200, 80)
    studio.scene.actors = [person, other]
    shown = studio.shoot()
    assert studio.bareness(shown, person) < BARE
    assert studio.bareness(shown, other) > 0.99


def test_newcomers_who_would_be_swapped_are_looked_for_more_often() -> None:
    bare_frames = []
    for which in ("all", "largest"):
        studio = Studio(which)
        studio.scene.actors = [Actor(200, 200, 120)]
        studio.shoot()
        studio.scene.actors.append(Actor(450, 200, 100))
        before = studio.scene.detections
        bare_frames.append(next(n for n in range(100) if studio.shoot() and studio.scene.detections > before))
    assert bare_frames == [FULL.detect_every_n // EAGER - 1, FULL.detect_every_n - 1]


def test_the_steps_that_the_budget_allows_reach_the_swapper() -> None:
    studio = Studio()
    studio.scene.actors = [Actor(200, 200, 200)]
    for quality in (FULL, HALF):
        studio.shoot(quality)
    assert [steps for _, steps in studio.swapper.calls] == [frozenset({"obstacles"}), frozenset()]


def test_a_smaller_working_size_changes_neither_the_output_nor_the_names_nor_the_faces_told() -> None:
    studio = Studio()
    person = Actor(200, 200, 200)
    studio.scene.actors = [person]
    for scale in (1.0, 0.5, 0.7, 1.0, 0.25):
        shown = studio.shoot(Quality(scale, 15, frozenset()))
        studio.check(shown)
        np.testing.assert_array_equal(shown.pixels[:, 400:], studio.camera[:, 400:])
        (face,) = studio.pipeline.faces
        assert face.track_id == 1
        np.testing.assert_allclose(face.box_xyxy, person.box, atol=1)
    assert float(np.ptp(studio.swapper.calls[1][0].mesh[:, 1])) == pytest.approx(100, abs=1)
    assert studio.scene.searches == 1
    assert studio.scene.detections == 0


def test_the_swapper_keeps_what_it_knows_of_everyone_who_may_come_back() -> None:
    studio = Studio("largest")
    studio.scene.actors = [Actor(200, 200, 140), Actor(450, 200, 80)]
    studio.settle()
    assert studio.swapper.known == {1, 2}
    studio.scene.actors[0].hidden = True
    studio.shoot()
    assert studio.swapper.known == {1, 2}
    for _ in range(3 * FPS):
        studio.shoot()
    assert studio.swapper.known == {2}


def test_a_person_is_told_once_of_each_kind_of_failure_and_all_are_counted() -> None:
    studio = Studio()
    studio.scene.actors = [Actor(200, 200, 120)]
    for fault in (RuntimeError("first"), RuntimeError("second"), EngineError("no answer", "open it again"), "black"):
        studio.swapper.fault = fault
        studio.shoot()
    assert studio.told == [
        "pictures cannot be swapped and are not shown: RuntimeError: first",
        "pictures cannot be swapped and are not shown: no answer; open it again",
        "pictures cannot be swapped and are not shown: black picture: the swapper painted a face black",
    ]
    counters = studio.meter.snapshot().counters
    assert counters == {"failed RuntimeError": 2, "failed EngineError": 1, "failed black picture": 1}
    studio.swapper.fault = ""
    studio.shoot()
    assert studio.pipeline.failure.startswith("black picture")


def test_a_frame_that_failed_has_no_faces() -> None:
    studio = Studio()
    studio.scene.actors = [Actor(200, 200, 120)]
    counts = []
    for studio.scene.broken in (None, RuntimeError("no answer")):
        studio.shoot()
        counts.append(len(studio.pipeline.faces))
    assert counts == [1, 0]


def test_an_interrupt_is_no_failure() -> None:
    studio = Studio()
    studio.scene.broken = None
    studio.scene.actors = [Actor(200, 200, 120)]
    studio.swapper.swap = lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)  # type: ignore[method-assign]  # a fault
    with pytest.raises(KeyboardInterrupt):
        studio.shoot()


def test_a_network_that_fails_on_one_face_spoils_no_other() -> None:
    studio = Studio("all")
    studio.scene.actors = [Actor(150, 200, 120), Actor(450, 200, 100)]
    studio.swapper.faults_of = {2: EngineError("made no numbers", "use float32")}
    shown = studio.shoot()
    studio.check(shown)
    np.testing.assert_array_equal(shown.pixels[400:], studio.camera[400:])  # swapped and frosted, not held or blurred
    assert len(studio.pipeline.faces) == 2
    assert studio.told == ["pictures cannot be swapped and are not shown: made no numbers; use float32"]
    assert studio.meter.snapshot().counters == {"failed EngineError": 1}


class ByTrack:
    """A cast that leaves out whom it is told to, and gives the others the swapper of their number."""

    has_room = True

    def __init__(self, strangers: Collection[int] = ()) -> None:
        self.strangers = strangers

    def wanted(self, pixels: U8, sighting: Sighting, now_s: float) -> Sighting:
        faces = tuple(face for face in sighting.faces if face.track_id not in self.strangers)
        return Sighting(faces, {n: box for n, box in sighting.lost.items() if n not in self.strangers})

    def role(self, track_id: int) -> int:
        return (track_id - 1) % 2


def test_everyone_is_swapped_by_the_swapper_of_their_role() -> None:
    studio = Studio("all", cast=ByTrack())
    studio.scene.actors = [Actor(120, 200, 120), Actor(320, 200, 110), Actor(520, 200, 100)]
    studio.check(studio.shoot())
    assert [[face.track_id for face, _ in swapper.calls] for swapper in studio.swappers] == [[1, 3], [2]]
    assert all(swapper.known == {1, 2, 3} for swapper in studio.swappers)


def test_a_stranger_is_left_alone_also_when_lost_and_takes_nobodys_place() -> None:
    studio = Studio("largest", cast=ByTrack(strangers={1}))
    stranger, person = Actor(150, 200, 140), Actor(450, 200, 80)
    studio.scene.actors = [stranger, person]
    studio.settle()
    shown = studio.shoot()
    assert studio.bareness(shown, stranger) > 0.99
    assert studio.bareness(shown, person) < BARE
    stranger.hidden = True
    shown = studio.shoot()
    assert studio.bareness(shown, stranger) > 0.99, "nothing is frosted where a stranger was"
    person.hidden = True
    shown = studio.shoot()
    assert studio.bareness(shown, person) < BARE
    assert studio.swapper.known == {1, 2}


@pytest.mark.parametrize("on_lost", ["hold", "blur", "card"])
def test_a_picture_of_strangers_alone_is_shown_but_not_while_somebody_who_was_named_is_lost(on_lost: OnLost) -> None:
    studio = Studio("all", on_lost, cast=ByTrack(strangers={1}))
    stranger, person = Actor(150, 200, 140), Actor(450, 200, 80)
    studio.scene.actors = [stranger]
    for _ in range(FPS):
        np.testing.assert_array_equal(studio.shoot().pixels, studio.camera)
    studio.scene.actors.append(person)
    studio.later_s += 1
    while len(studio.pipeline.faces) == 0:
        studio.shoot()
    studio.settle()
    person.hidden = True
    for _ in range(FPS):
        shown = studio.shoot()
        assert studio.bareness(shown, person) < BARE
        assert (shown.pixels != studio.camera).any()
    studio.later_s += 3
    np.testing.assert_array_equal(studio.shoot().pixels, studio.camera)


def test_nobody_is_looked_for_eagerly_when_all_who_were_named_are_found() -> None:
    cast = ByTrack()
    cast.has_room = False
    studio = Studio("all", cast=cast)
    studio.scene.actors = [Actor(200, 200, 120)]
    studio.shoot()
    before = studio.scene.detections
    frames = next(n for n in range(100) if studio.shoot() and studio.scene.detections > before)
    assert frames == FULL.detect_every_n - 1


class FakeEnhancer(Enhancer):
    """Notes what it is asked for, or fails as told."""

    def __init__(self, error: EngineError | None = None) -> None:
        self.error = error
        self.asked: list[tuple[int, frozenset[str]]] = []

    def enhance(self, pixels: U8, face: Face, painted: Painted | None, steps: Collection[str]) -> None:
        self.asked.append((face.track_id, frozenset(steps)))
        if self.error:
            raise self.error


def test_a_swapped_face_is_made_finer_and_one_that_was_not_swapped_is_left_alone() -> None:
    enhancer = FakeEnhancer()
    studio = Studio(enhancer=enhancer)
    studio.scene.actors = [Actor(200, 200, 120)]
    studio.settle()
    assert {steps for _, steps in enhancer.asked} == {FULL.steps}
    asked = len(enhancer.asked)
    studio.swapper.fault = "refuse"
    studio.shoot()
    assert len(enhancer.asked) == asked


def test_an_enhancer_that_fails_costs_no_face_and_is_told_once() -> None:
    studio = Studio(enhancer=FakeEnhancer(EngineError("gfpgan made nothing", "use another")))
    studio.scene.actors = [Actor(200, 200, 120)]
    studio.settle()
    shown = studio.shoot()
    studio.check(shown)
    assert shown.t_capture_s > 8  # a new picture, not one that was held
    assert studio.told == ["faces are shown as they are swapped, not made finer: gfpgan made nothing; use another"]
    assert studio.meter.snapshot().counters["failed enhancer"] == 3


class AheadDevice(CpuDevice):
    """A device that paints when a frame is finished, at most two at a time, and fails as told."""

    def __init__(self) -> None:
        super().__init__()
        self.in_flight: list[int] = []
        self.report = Report()
        self.error: Exception | None = None

    def begin(self, pixels: U8) -> None:
        assert len(self.in_flight) < 2
        self.in_flight.append(id(pixels))

    def finish(self, pixels: U8) -> Report:
        assert self.in_flight.pop(0) == id(pixels)
        if self.error is not None:
            raise self.error
        return self.report


def ahead() -> tuple[Studio, AheadDevice, Actor]:
    device = AheadDevice()
    studio, person = Studio(device=device), Actor(200, 200, 120)
    studio.scene.actors = [person]
    studio.settle()
    return studio, device, person


def test_a_face_that_the_device_could_not_paint_is_not_shown_bare() -> None:
    studio, device, _ = ahead()
    known = studio.pipeline.faces[0].track_id
    device.report = Report([Failure(known, EngineError("it made values that are no numbers", "use float32"), True)])
    studio.swapper.fault = "not yet"
    studio.check(studio.shoot())
    assert studio.told == [
        "pictures cannot be swapped and are not shown: it made values that are no numbers; use float32"
    ]


def test_an_enhancer_that_the_device_could_not_run_costs_no_face() -> None:
    studio, device, _ = ahead()
    known = studio.pipeline.faces[0].track_id
    device.report = Report([Failure(known, EngineError("gfpgan made nothing", "use another"), False)])
    shown = studio.shoot()
    studio.check(shown)
    assert studio.told == ["faces are shown as they are swapped, not made finer: gfpgan made nothing; use another"]
    assert (shown.pixels != studio.camera).any()


def test_a_device_that_fails_shows_no_bare_face_and_takes_the_next_frame() -> None:
    studio, device, _ = ahead()
    device.error = DeviceError("the driver is gone", "start again")
    studio.check(studio.shoot())
    device.error = None
    studio.check(studio.shoot())
    assert not device.in_flight
    assert studio.told == ["pictures cannot be swapped and are not shown: the driver is gone; start again"]


def test_two_frames_in_flight_come_out_as_one_after_the_other() -> None:
    studio, _, _ = ahead()
    twin, _, _ = ahead()
    scene = np.random.default_rng(0).integers(20, 250, (6, 480, 640, 3), np.uint8)
    frames = [Frame(n, 20 + n / FPS, pixels.copy()) for n, pixels in enumerate(scene)]
    copies = [Frame(frame.seq, frame.t_capture_s, frame.pixels.copy()) for frame in frames]
    single = [twin.pipeline.process(frame, FULL, frame.t_capture_s) for frame in copies]
    works = Works(studio.pipeline, lambda: 20.0)
    double = [done.frame for frame in frames for done in works.put(frame, replace(FULL, in_flight=2))]
    double += [done.frame for done in works.flush()]
    assert [frame.seq for frame in double] == list(range(6))
    for one, other in zip(single, double, strict=True):
        np.testing.assert_array_equal(one.pixels, other.pixels)


def test_the_device_times_its_steps() -> None:
    studio, device, _ = ahead()
    device.report = Report(laps_ms={"swap": 1.5})
    studio.shoot()
    assert studio.meter.snapshot().steps["gpu swap"].p50 == pytest.approx(1.5, rel=0.02)
