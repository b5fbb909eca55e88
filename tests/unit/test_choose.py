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
