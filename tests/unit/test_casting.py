"""Who is who, and when anybody looks: pure policies, driven by scripts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.people.beat import AFTER_S, EVERY_S, Beat
from realtime.people.casting import DOUBTS, KEEP, Casting

MATCH = 0.4
SURE, UNSURE, NOT = 0.6, (KEEP * MATCH + MATCH) / 2, 0.1


def seen(
    casting: Casting, looks: Mapping[int, Sequence[float]], lost: Sequence[int] = (), absent: Sequence[int] = ()
) -> dict[int, int]:
    """Look at some people, and tell who is whom among them and those who were there before."""
    for track_id, alike in looks.items():
        casting.note(track_id, alike)
    known = set(casting._people)
    casting.settle(known - set(lost) - set(absent), lost)
    return {n: reference for n in known if (reference := casting.reference(n)) is not None}


def test_somebody_gets_in_at_the_threshold_and_out_only_below_three_quarters_of_it_twice() -> None:
    casting = Casting(1, MATCH)
    assert seen(casting, {1: [UNSURE]}) == {}
    assert seen(casting, {1: [MATCH]}) == {1: 0}
    for alike in (UNSURE, UNSURE, NOT, UNSURE, NOT, SURE, NOT):
        assert seen(casting, {1: [alike]}) == {1: 0}
    assert DOUBTS == 2
    assert seen(casting, {1: [NOT]}) == {}
    assert seen(casting, {1: [UNSURE]}) == {}


def test_the_best_of_several_references_counts_and_nobody_is_two_people() -> None:
    casting = Casting(3, MATCH)
    assert seen(casting, {1: [0.5, 0.7, 0.6]}) == {1: 1}
    assert not casting.is_complete
    assert seen(casting, {2: [0.5, 0.5, NOT], 3: [NOT, NOT, 0.5]}) == {1: 1, 2: 0, 3: 2}
    assert casting.is_complete


def test_of_two_who_are_like_one_reference_the_more_alike_gets_it() -> None:
    assert seen(Casting(1, MATCH), {1: [0.5], 2: [0.6]}) == {2: 0}
    casting = Casting(1, MATCH)
    assert seen(casting, {1: [0.5]}) == {1: 0}
    assert seen(casting, {2: [0.54]}) == {1: 0}, "not for a hair's breadth"
    assert seen(casting, {2: [0.6]}) == {2: 0}
    assert seen(casting, {}, absent=[2]) == {1: 0}, "the other one is next"


def test_two_people_who_crossed_and_took_each_others_names_are_put_right_by_one_look_at_each() -> None:
    casting = Casting(2, MATCH)
    assert seen(casting, {1: [SURE, NOT], 2: [NOT, SURE]}) == {1: 0, 2: 1}
    assert casting.note(1, [NOT, SURE])
    assert casting.rivals(1) == [2], "the other one is to be looked at, too"
    assert seen(casting, {}) == {1: 0, 2: 1}
    assert seen(casting, {2: [SURE, NOT]}) == {1: 1, 2: 0}
    assert casting.rivals(1) == casting.rivals(2) == []


def test_who_is_lost_and_found_is_who_they_were_without_a_look() -> None:
    casting = Casting(1, MATCH)
    seen(casting, {1: [SURE]})
    assert seen(casting, {}, lost=[1]) == {1: 0}
    assert casting.is_complete
    assert seen(casting, {}) == {1: 0}
    seen(casting, {}, absent=[1])
    assert not casting.is_complete
    assert seen(casting, {}) == {}, "and is forgotten with the tracker's memory"


def test_who_is_lost_takes_nothing_and_loses_to_whoever_is_in_view() -> None:
    casting = Casting(1, MATCH)
    seen(casting, {1: [SURE]})
    assert seen(casting, {2: [MATCH]}, lost=[1]) == {2: 0}
    assert seen(casting, {}, lost=[1, 2]) == {2: 0}
    assert seen(casting, {}) == {1: 0}, "back in view, the more alike"


ALIKE = st.floats(-1, 1, width=32)


@given(st.data(), st.integers(1, 3))
def test_whatever_is_seen_everyone_is_at_most_one_and_every_change_has_a_reason(
    data: st.DataObject, count: int
) -> None:
    casting = Casting(count, MATCH)
    before: dict[int, int] = {}
    for _ in range(data.draw(st.integers(1, 12))):
        looks = data.draw(st.dictionaries(st.integers(1, 4), st.lists(ALIKE, min_size=count, max_size=count)))
        lost = data.draw(st.sets(st.sampled_from([n for n in range(1, 6) if n not in looks])))
        now = seen(casting, looks, sorted(lost))
        assert len(set(now.values())) == len(now), "nobody else has the same reference"
        for n, reference in now.items():
            if before.get(n) != reference:
                assert casting._people[n].alike[reference] >= MATCH
                assert n not in lost
        for n, reference in before.items():
            if n not in now and n in casting._people and n not in looks:
                assert reference in now.values(), "not looked at: only because somebody else took the place"
        before = now


def test_newcomers_are_looked_at_at_once_and_the_rest_one_at_a_time_at_the_beat() -> None:
    beat = Beat()
    looks: dict[int, list[float]] = {1: [], 2: [], 3: []}
    frames = [n / 30 for n in range(30 * 8)]
    for now_s in frames:
        this_frame = 0
        for track_id, times in looks.items():
            if beat.is_due(track_id, now_s):
                this_frame += bool(times)
                times.append(now_s)
                beat.looked(track_id, now_s)
        assert this_frame <= 1
    for times in looks.values():
        gaps = [b - a for a, b in itertools.pairwise(times)]
        assert times[0] == 0
        assert gaps == pytest.approx([*AFTER_S, EVERY_S, EVERY_S][: len(gaps)], abs=0.11)
        assert len(times) == 5


def test_a_look_can_be_hurried_but_never_put_off() -> None:
    beat = Beat()
    beat.hurry(1, 0.0)
    beat.looked(1, 0.0)
    beat.hurry(1, 9.0)
    assert not beat.is_due(1, 0.2)
    assert beat.is_due(1, AFTER_S[0])
    beat.hurry(1, 0.1)
    assert beat.is_due(1, 0.1)


def test_a_clock_that_went_back_makes_a_look_due_and_who_was_forgotten_is_a_newcomer() -> None:
    beat = Beat()
    beat.looked(1, 1000.0)
    beat.looked(2, 1000.0)
    assert beat.is_due(1, 5.0)
    beat.forget([2])
    assert beat.is_due(1, 1000.0)
    assert not beat.is_due(2, 1000.0)
