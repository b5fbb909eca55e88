"""The pipeline with people who were named: who is swapped, by whom, and how seldom anybody is looked at."""

from __future__ import annotations

import numpy as np
import pytest

from realtime.errors import EngineError
from realtime.meter import Meter
from realtime.people.beat import AFTER_S
from realtime.people.cast import LEAST_FACE_PX, ONLY_STRANGERS, SOON_S, Everyone, NamedPeople, Reference, is_good_view
from realtime.people.embedding import Embedding
from realtime.track import Sighting
from realtime.types import F32, U8, Face

MATCH = 0.4
PEOPLE = np.eye(4, dtype=np.float32)
"""Directions of four people who have nothing in common."""
PIXELS: U8 = np.zeros((4, 4, 3), np.uint8)


def face(track_id: int, *, height: float = 100, nose: float = 0.5) -> Face:
    """A face at a place of its own; ``nose`` says where between the eyes its tip is."""
    points5 = np.array([[0, 0], [1, 0], [nose, 0.5], [0, 1], [1, 1]], np.float32) * 40 + 100 * track_id
    mesh = np.linspace(0, height, 468 * 3, dtype=np.float32).reshape(468, 3)
    return Face(np.full(4, track_id, np.float32), 1.0, points5, mesh, track_id, 0)


class Script:
    """A recogniser that sees whom the script puts in each face's place."""

    def __init__(self) -> None:
        self.who: dict[int, F32] = {}
        self.looks: list[int] = []
        self.error: Exception | None = None

    def embed(self, pixels: U8, points5: F32) -> Embedding:
        track_id = int(points5[0, 0] // 100)
        self.looks.append(track_id)
        if self.error:
            raise self.error
        return Embedding(self.who[track_id], 20.0)


class Stage:
    """Two people who were named, 0 and 1; ``shoot`` is one frame 1/30 s later."""

    def __init__(self, roles: tuple[int, ...] = (0, 1)) -> None:
        self.script, self.now_s = Script(), 10.0
        references = [Reference(Embedding(PEOPLE[n], 20.0), role) for n, role in enumerate(roles)]
        self.meter = Meter()
        self.cast = NamedPeople(self.script, references, MATCH, self.meter)

    def shoot(self, *faces: Face, lost: tuple[int, ...] = (), seconds: float = 1 / 30) -> dict[int, int]:
        """Roles of those who are in view and wanted, after the last of the frames of so many seconds."""
        until_s = self.now_s + seconds - 0.001
        while self.now_s < until_s:
            self.now_s += 1 / 30
            boxes = {n: np.zeros(4, np.float32) for n in lost}
            self.wanted = self.cast.wanted(PIXELS, Sighting(faces, boxes), self.now_s)
        return {one.track_id: self.cast.role(one.track_id) for one in self.wanted.faces}


def test_newcomers_are_known_in_their_first_frame_and_strangers_are_left_alone() -> None:
    stage = Stage()
    stage.script.who = {1: PEOPLE[1], 2: PEOPLE[2], 3: PEOPLE[0]}
    assert stage.shoot(face(1), face(2)) == {1: 1}
    assert stage.cast.has_room
    assert stage.shoot(face(1), face(2), face(3)) == {1: 1, 3: 0}
    assert not stage.cast.has_room
    assert stage.script.looks == [1, 2, 3]
    with pytest.raises(KeyError):
        stage.cast.role(2)


def test_frames_with_nobody_but_strangers_are_counted() -> None:
    stage = Stage()
    stage.script.who = {1: PEOPLE[2], 2: PEOPLE[0]}
    stage.shoot()  # an empty room has no strangers
    for faces in ((face(1),), (face(1),), (face(1), face(2))):
        stage.shoot(*faces)
    assert stage.meter.snapshot().counters == {ONLY_STRANGERS: 2}


def test_looks_are_few_and_never_two_in_one_frame_but_for_newcomers() -> None:
    stage = Stage()
    stage.script.who = {n: PEOPLE[n] for n in range(4)}
    stage.shoot(*(face(n) for n in range(4)))
    assert len(stage.script.looks) == 4
    for _ in range(300):
        before = len(stage.script.looks)
        stage.shoot(*(face(n) for n in range(4)))
        assert len(stage.script.looks) - before <= 1
    assert len(stage.script.looks) <= 4 * 6, "in ten seconds"


def test_a_role_goes_only_after_two_looks_that_speak_against_it() -> None:
    stage = Stage()
    stage.script.who = {1: PEOPLE[0]}
    stage.shoot(face(1))
    stage.script.who = {1: PEOPLE[3]}
    assert stage.shoot(face(1), seconds=AFTER_S[0] + 0.04) == {1: 0}
    assert len(stage.script.looks) == 2
    assert stage.shoot(face(1), seconds=SOON_S + 0.04) == {}, "soon, not at the slow beat"
    assert len(stage.script.looks) == 3


def test_people_who_cross_get_their_own_faces_back_with_the_next_look() -> None:
    stage = Stage()
    stage.script.who = {1: PEOPLE[0], 2: PEOPLE[1]}
    both = face(1), face(2)
    assert stage.shoot(*both, seconds=5) == {1: 0, 2: 1}
    stage.script.who = {1: PEOPLE[1], 2: PEOPLE[0]}  # the tracker took the one for the other
    looked = len(stage.script.looks)
    while len(stage.script.looks) == looked:
        stage.shoot(*both)
    assert stage.shoot(*both) == {1: 1, 2: 0}, "the other one is looked at in the very next frame"


def test_who_is_lost_stays_covered_if_they_were_named_and_is_looked_at_when_found() -> None:
    stage = Stage()
    stage.script.who = {1: PEOPLE[0], 2: PEOPLE[3]}
    stage.shoot(face(1), face(2), seconds=5)
    assert stage.shoot(lost=(1, 2)) == {}
    assert set(stage.wanted.lost) == {1}
    looked = len(stage.script.looks)
    assert stage.shoot(face(1), lost=(2,)) == {1: 0}
    assert stage.script.looks[looked:] == [1]


def test_a_stranger_who_is_found_in_the_place_of_somebody_named_is_found_out() -> None:
    stage = Stage()
    stage.script.who = {1: PEOPLE[0]}
    stage.shoot(face(1), seconds=5)
    stage.shoot(lost=(1,))
    stage.script.who = {1: PEOPLE[3]}
    stage.shoot(face(1), seconds=SOON_S + 0.1)
    assert stage.shoot(face(1)) == {}


@pytest.mark.parametrize("bad", [{"height": LEAST_FACE_PX - 1}, {"nose": -0.1}, {"nose": 1.1}])
def test_a_bad_view_proves_who_somebody_is_but_not_who_they_are_not(bad: dict[str, float]) -> None:
    stage = Stage()
    stage.script.who = {1: PEOPLE[0]}
    assert stage.shoot(face(1, **bad)) == {1: 0}
    stage.script.who = {1: PEOPLE[3]}
    assert stage.shoot(face(1, **bad), seconds=10) == {1: 0}
    assert stage.script.looks == [1]
    assert stage.shoot(face(1), seconds=1) == {}


def test_a_newcomer_in_a_bad_view_is_looked_at_again_and_again() -> None:
    stage = Stage()
    stage.script.who = {1: PEOPLE[3]}
    assert stage.shoot(face(1, nose=2), seconds=0.2) == {}
    stage.script.who = {1: PEOPLE[0]}
    assert stage.shoot(face(1, nose=2), seconds=0.2) == {1: 0}


def test_two_people_may_get_one_face() -> None:
    stage = Stage(roles=(0, 0))
    stage.script.who = {1: PEOPLE[0], 2: PEOPLE[1]}
    assert stage.shoot(face(1), face(2)) == {1: 0, 2: 0}


def test_a_recogniser_that_fails_lets_nobody_pass() -> None:
    stage = Stage()
    stage.script.who = {1: PEOPLE[0]}
    stage.script.error = EngineError("no numbers", "another model")
    for _ in range(3):
        with pytest.raises(EngineError):
            stage.shoot(face(1))
    stage.script.error = None
    assert stage.shoot(face(1)) == {1: 0}


def test_without_names_everyone_may_be_swapped_and_nobody_is_looked_at() -> None:
    sighting = Sighting((face(1),), {2: np.zeros(4, np.float32)})
    assert Everyone().wanted(PIXELS, sighting, 0.0) is sighting
    assert Everyone().role(1) == 0
    assert Everyone().has_room


def test_a_face_without_eyes_apart_is_no_good_view() -> None:
    flat = face(1)
    flat.points5[:] = 5
    assert not is_good_view(flat)
    assert is_good_view(face(1))
