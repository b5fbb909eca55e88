from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.meter import Meter
from realtime.track import MOST_CANDIDATES, MOST_FACES, PROBATION_S, Sighting, Tracker
from realtime.trail import REMEMBER_S
from tests.stage import Actor, FakeDetector, FakeMeshNet, Scene

FPS = 30
PICTURE = np.zeros((480, 640, 3), np.uint8)


class Play:
    """A tracker before a scene; each step is one frame."""

    def __init__(self, *actors: Actor) -> None:
        self.scene = Scene(list(actors))
        self.tracker = Tracker(FakeDetector(self.scene), FakeMeshNet(self.scene), 0.5, Meter())
        self.now_s = 10.0
        self.pixels = PICTURE
        self.every_n = 10**6

    def step(self, frames: int = 1) -> Sighting:
        for _ in range(frames):
            self.now_s += 1 / FPS
            seen = self.tracker.follow(self.pixels, self.now_s, self.every_n)
        return seen

    def settle(self) -> Sighting:
        """Follow everyone for long enough to be trusted and remembered."""
        self.step()
        self.now_s += REMEMBER_S
        return self.step(2)

    def name_of(self, actor: Actor) -> int:
        """Step one frame; the name under which an actor is followed, 0 for none."""
        faces = [f for f in self.step().faces if np.abs(f.box_xyxy - actor.box).max() < 0.3 * actor.height]
        assert len(faces) < 2
        return faces[0].track_id if faces else 0


def test_the_first_picture_is_searched_everywhere_and_later_ones_need_no_detector() -> None:
    play = Play(Actor(200, 200), Actor(400, 250))
    assert {f.track_id for f in play.step().faces} == {1, 2}
    assert (play.scene.searches, play.scene.detections) == (1, 0)
    runs = play.scene.mesh_runs
    play.step(10)
    assert (play.scene.searches, play.scene.detections, play.scene.mesh_runs) == (1, 0, runs + 20)


def test_a_picture_in_which_all_of_several_people_have_jumped_is_searched_everywhere_at_once() -> None:
    play = Play(Actor(100, 100), Actor(300, 100))
    play.settle()
    for actor in play.scene.actors:
        actor.x, actor.y = actor.x + 200, actor.y + 200
    assert len(play.step().faces) == 2
    assert (play.scene.searches, play.scene.detections) == (2, 0)
    play.scene.actors[0].hidden = True
    play.step(3)
    assert (play.scene.searches, play.scene.detections) == (2, 3)


def test_a_newcomer_is_found_after_detect_every_n_frames() -> None:
    play = Play(Actor(200, 200))
    play.every_n = 5
    play.step()
    play.scene.actors.append(Actor(450, 200))
    assert [len(play.step().faces) for _ in range(5)] == [1, 1, 1, 1, 2]


def test_age_counts_from_the_detectors_last_word() -> None:
    play = Play(Actor(200, 200))
    play.every_n = 4
    assert [play.step().faces[0].age_frames for _ in range(9)] == [0, 1, 2, 3, 0, 1, 2, 3, 0]


@pytest.mark.parametrize(("score", "presence"), [(0.52, 0.96), (0.8, 0.8), (0.5, 0.98), (0.99, 0.4)])
def test_a_badge_never_becomes_a_face_although_a_face_behind_a_hand_stays_one(score: float, presence: float) -> None:
    badge = Actor(450, 300, score=score, presence=presence)
    play = Play(Actor(200, 150), badge)
    play.every_n = 1
    play.settle()
    for _ in range(20):
        assert [f.track_id for f in play.step().faces] == [1]
    person = play.scene.actors[0]
    person.score, person.presence = 0.4, 0.55
    assert [f.track_id for f in play.step().faces] == [1]


def test_a_print_that_convinced_once_is_gone_with_the_first_doubt_and_soon_forgotten() -> None:
    badge = Actor(450, 300)
    play = Play(Actor(200, 150), badge)
    assert len(play.step().faces) == 2
    badge.score, badge.presence = 0.6, 0.9
    assert len(play.step().faces) == 1
    assert play.step(2).lost == {}


def test_probation_ends() -> None:
    person = Actor(200, 200)
    play = Play(person)
    play.step(math.ceil(PROBATION_S * FPS) + 1)
    person.presence = 0.6
    assert [f.track_id for f in play.step().faces] == [1]


def test_examining_badges_takes_bounded_time_and_does_not_keep_a_face_from_being_found() -> None:
    play = Play(Actor(50, 50))
    play.every_n = 1
    play.step()
    play.scene.actors += [Actor(100 * i, 350, score=0.6, presence=0.3) for i in range(1, 7)]
    play.scene.actors.append(Actor(400, 100))
    before = play.scene.mesh_runs
    assert len(play.step().faces) == 2
    assert play.scene.mesh_runs - before == 1 + 2 * MOST_CANDIDATES


def test_no_more_faces_are_followed_than_the_limit() -> None:
    play = Play(*(Actor(60 + 120 * (i % 5), 60 + 150 * (i // 5)) for i in range(MOST_FACES + 3)))
    assert len(play.step().faces) == MOST_FACES


def test_who_comes_back_to_a_full_picture_brings_no_newcomers_along() -> None:
    places = [Actor(60 + 120 * (i % 5), 60 + 150 * (i // 5)) for i in range(MOST_FACES + 4)]
    absent, newcomers = places[0], places[MOST_FACES:]
    play = Play(*places[:MOST_FACES])
    play.settle()
    absent.hidden = True
    play.scene.actors.append(newcomers[0])
    assert len(play.step().faces) == MOST_FACES
    absent.hidden = False
    play.scene.actors += newcomers[1:]
    play.every_n = 1
    assert play.name_of(absent) == 1
    assert len(play.step(5).faces) == MOST_FACES + 1


def test_a_face_behind_a_hand_is_reported_lost_and_keeps_its_name() -> None:
    person = Actor(300, 200)
    play = Play(person)
    play.settle()
    person.hidden = True
    seen = play.step()
    assert seen.faces == ()
    np.testing.assert_allclose(seen.lost[1], person.box, atol=1)
    play.step(FPS)
    person.hidden, person.x = False, 340
    assert play.name_of(person) == 1
    assert play.step().lost == {}


def test_a_face_is_forgotten_in_the_end() -> None:
    person = Actor(300, 200)
    play = Play(person)
    play.settle()
    person.hidden = True
    play.step(math.floor(REMEMBER_S * FPS))
    assert list(play.step().lost) == [1]
    assert play.step(3).lost == {}
    person.hidden = False
    assert play.name_of(person) == 2


@pytest.mark.parametrize("height", [80.0, 40.0])
def test_a_newcomer_does_not_take_the_name_of_someone_behind_a_hand(height: float) -> None:
    person, other = Actor(300, 200), Actor(300 + 100 * (height == 80), 200, height=height)
    play = Play(person)
    play.settle()
    person.hidden = True
    play.step(3)
    play.scene.actors.append(other)
    assert play.name_of(other) == 2
    play.scene.actors.remove(other)
    person.hidden = False
    assert play.name_of(person) == 1


def test_two_who_are_lost_together_are_found_under_their_own_names() -> None:
    left, right = Actor(260, 200), Actor(350, 200)
    play = Play(left, right)
    play.settle()
    names = play.name_of(left), play.name_of(right)
    left.hidden = right.hidden = True
    play.step(10)
    left.hidden = right.hidden = False
    left.x, right.x = 300, 390  # each is nearer to where the other was than half the way
    play.scene.actors.reverse()
    assert (play.name_of(left), play.name_of(right)) == names


@pytest.mark.parametrize("speed", [120.0, 300.0])
@pytest.mark.parametrize("front_moves", [True, False])
def test_two_who_cross_keep_their_names(speed: float, front_moves: bool) -> None:
    front, back = Actor(320 - 150 * front_moves, 200), Actor(470, 200)
    play = Play(front, back)
    play.settle()
    names = play.name_of(front), play.name_of(back)
    hidden_once = False
    while back.x > 170:
        front.x += speed / FPS * front_moves
        back.x -= speed / FPS
        seen = {f.track_id: f for f in play.step().faces}
        hidden_once |= names[1] not in seen
        assert abs(float(seen[names[0]].box_xyxy[[0, 2]].mean()) - front.x) < 20, "the one in front keeps its name"
    assert hidden_once
    assert (play.name_of(front), play.name_of(back)) == names


def test_a_mesh_that_slips_to_another_place_is_not_believed() -> None:
    person = Actor(300, 200)
    play = Play(person)
    play.step(3)
    person.x += 0.7 * person.height
    seen = play.step()
    assert [f.track_id for f in seen.faces] == [1], "the detector finds it again in the same frame"
    assert play.scene.detections == 1


@pytest.mark.parametrize("size", [(960, 1280), (240, 320), (720, 1280), (480, 480), (2, 2), (1, 1)])
def test_pictures_of_another_size_are_searched_anew_and_names_are_kept(size: tuple[int, int]) -> None:
    person = Actor(300, 200)
    play = Play(person)
    play.settle()
    play.pixels = np.zeros((*size, 3), np.uint8)
    person.x, person.y, person.height = 300 * size[1] / 640, 200 * size[0] / 480, 80 * size[0] / 480
    seen = play.step()
    assert play.scene.searches == 2
    if min(size) > 2:
        assert [f.track_id for f in seen.faces] == [1]
        np.testing.assert_allclose(seen.faces[0].box_xyxy, person.box, atol=1)
    play.step(5)


@given(st.lists(st.sampled_from([0.0, -100.0, -0.01, 1e-9, 0.03, 1.0, 50.0]), max_size=12), st.booleans())
def test_no_time_stamp_breaks_the_tracker_or_makes_it_remember_for_ever(steps: list[float], lose: bool) -> None:
    person = Actor(300, 200)
    play = Play(person)
    play.step()
    person.hidden = lose
    for step_s in steps:
        play.now_s += step_s
        seen = play.tracker.follow(PICTURE, play.now_s, 15)
        assert [f.track_id for f in seen.faces] == ([] if lose else [1])
    play.tracker.follow(PICTURE, play.now_s, 15)
    play.now_s += 1000
    assert play.tracker.follow(PICTURE, play.now_s, 15).lost == {}


@given(st.lists(st.tuples(st.floats(-300, 900), st.floats(-300, 800), st.floats(1, 900)), max_size=8))
def test_faces_at_and_over_the_border_never_break_it(places: list[tuple[float, float, float]]) -> None:
    person = Actor(300, 200)
    play = Play(person)
    play.every_n = 2
    for person.x, person.y, person.height in places:
        for face in play.step(2).faces:
            assert np.isfinite(face.mesh).all()


@pytest.mark.parametrize("nonsense", [math.nan, math.inf])
def test_a_mesh_that_is_no_number_loses_the_face_only(nonsense: float) -> None:
    person = Actor(300, 200)
    play = Play(person)
    play.settle()
    right, person.x = person.x, nonsense
    seen = play.step()
    assert (seen.faces, list(seen.lost)) == ((), [1])
    person.x = right
    assert play.name_of(person) == 1
