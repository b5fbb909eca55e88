from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.people.choose import Chooser, Which
from realtime.track import Sighting
from realtime.types import F32, Face

ANYWHERE: F32 = np.zeros(4, np.float32)


def a_face(track_id: int) -> Face:
    return Face(ANYWHERE, 0.9, np.zeros((5, 2), np.float32), np.zeros((468, 3), np.float32), track_id, 0)


def sighting(in_view: list[int], lost: list[int]) -> Sighting:
    return Sighting(tuple(a_face(i) for i in in_view), {i: ANYWHERE for i in lost if i not in in_view})


SIGHTINGS = st.lists(
    st.builds(
        sighting,
        st.lists(st.integers(1, 6), unique=True, max_size=5),
        st.lists(st.integers(1, 6), unique=True, max_size=3),
    ),
    max_size=20,
)
WHICH = st.one_of(st.sampled_from(["largest", "all"]), st.integers(1, 5))


@given(WHICH, SIGHTINGS)
def test_whoever_was_chosen_stays_so_until_forgotten_and_never_too_many_are(
    which: Which, story: list[Sighting]
) -> None:
    chooser, before = Chooser(which), set[int]()
    most = which if isinstance(which, int) else {"largest": 1, "all": 99}[which]
    for scene in story:
        faces, lost = chooser.choose(scene)
        in_view = [face.track_id for face in scene.faces]
        chosen = [face.track_id for face in faces]
        known = before & (set(in_view) | set(scene.lost))
        kept_lost = known - set(in_view)
        assert known & set(in_view) <= set(chosen)
        assert len(lost) == len(kept_lost), "who was never chosen is not reported as lost"
        assert len(chosen) + len(lost) <= most
        newcomers = [i for i in in_view if i not in known]
        taken = [i for i in chosen if i not in known]
        assert sorted(taken) == sorted(newcomers[: len(taken)]), "the most prominent newcomers first"
        assert len(chosen) + len(lost) == min(most, len(known | set(newcomers))), "no place stays empty"
        assert chooser.has_room == (len(chosen) + len(lost) < most)
        before = set(chosen) | kept_lost


def test_a_larger_face_does_not_take_the_mask_of_one_behind_a_hand() -> None:
    chooser = Chooser("largest")
    assert [f.track_id for f in chooser.choose(sighting([1, 2], []))[0]] == [1]
    assert [f.track_id for f in chooser.choose(sighting([2, 1], []))[0]] == [1]
    faces, lost = chooser.choose(sighting([2], [1]))
    assert (faces, len(lost)) == ((), 1)
    assert [f.track_id for f in chooser.choose(sighting([2], []))[0]] == [2]


def test_an_unknown_choice_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(KeyError):
        Chooser("leftmost")  # type: ignore[arg-type]  # on purpose


def chosen(chooser: Chooser, in_view: list[int], lost: list[int] | None = None) -> list[int]:
    return [face.track_id for face in chooser.choose(sighting(in_view, lost or []))[0]]


def test_a_face_that_is_picked_is_swapped_too_and_one_that_is_picked_again_is_left_alone() -> None:
    chooser = Chooser("largest")
    assert chosen(chooser, [1, 2, 3]) == [1]
    chooser.pick(2)
    assert chooser.picked
    assert chosen(chooser, [1, 2, 3]) == [1, 2]
    chooser.pick(1)
    assert chosen(chooser, [1, 2, 3]) == [2]
    assert chosen(chooser, [1, 3], [2]) == [], "a hand before the face hands its mask to nobody"
    assert chosen(chooser, [1, 2, 3]) == [2]
    chooser.unpick()
    assert not chooser.picked
    assert chosen(chooser, [1, 2, 3]) == [2], "who is swapped stays so"


def test_a_picked_face_that_is_gone_for_good_gives_its_place_to_a_newcomer() -> None:
    chooser = Chooser("largest")
    chosen(chooser, [1, 2])
    chooser.pick(2)
    chooser.pick(1)
    assert chosen(chooser, [1, 2]) == [2]
    assert chosen(chooser, [1]) == [], "who was left alone stays so"
    assert chosen(chooser, [1, 7]) == [7], "the same person, perhaps"


def test_where_all_are_swapped_newcomers_are_too_whoever_was_left_alone() -> None:
    chooser = Chooser("all")
    chosen(chooser, [1, 2])
    chooser.pick(1)
    assert chosen(chooser, [1, 2]) == [2]
    assert chosen(chooser, [1, 2, 9]) == [2, 9]


def test_another_number_of_faces_holds_from_the_next_frame_on() -> None:
    chooser = Chooser("all")
    assert chosen(chooser, [1, 2, 3]) == [1, 2, 3]
    chooser.unpick(1)
    assert chosen(chooser, [1, 2, 3]) == [1]
    chooser.unpick("all")
    assert chosen(chooser, [1, 2, 3]) == [1, 2, 3]


@given(WHICH, st.lists(st.tuples(SIGHTINGS, st.integers(1, 6)), max_size=8))
def test_who_is_left_alone_is_never_swapped_until_picked_again(
    which: Which, story: list[tuple[list[Sighting], int]]
) -> None:
    chooser, alone, before = Chooser(which), set[int](), set[int]()
    for scenes, track_id in story:
        for scene in scenes:
            faces, lost = chooser.choose(scene)
            now = {face.track_id for face in faces}
            assert not now & alone
            before = now | {i for i in before if i in scene.lost}
            assert len(lost) == len(before - now)
        if track_id in before:
            alone.add(track_id)
        chooser.pick(track_id)
        in_view = sighting([track_id], [i for i in before if i != track_id])
        faces, _ = chooser.choose(in_view)
        if track_id not in before:
            alone.discard(track_id)
            assert [face.track_id for face in faces] == [track_id]
        else:
            assert not faces
        before = {face.track_id for face in faces} | {i for i in before if i != track_id}
