"""What is kept of people who come, go and come again."""

from __future__ import annotations

from realtime.people.memory import Memory


def test_a_person_is_recalled_with_the_time_since_they_were_last_in_view() -> None:
    memory = Memory[list[str]](list)
    first, passed_s = memory.meet(1, 10.0)
    first.append("seen")
    assert passed_s == 0
    assert memory.meet(2, 10.0) == ([], 0)
    assert memory.meet(1, 10.5) == (["seen"], 0.5)


def test_time_never_goes_back() -> None:
    memory = Memory[list[str]](list)
    memory.meet(1, 10.0)
    assert memory.meet(1, 4.0)[1] == 0
    assert memory.meet(1, 5.0)[1] == 1


def test_who_is_gone_or_spoilt_is_met_for_the_first_time() -> None:
    memory = Memory[list[str]](list)
    for track_id in (1, 2, 3):
        memory.meet(track_id, 10.0)[0].append("seen")
    memory.forget((1, 2, 9))
    memory.drop(2)
    assert [memory.meet(track_id, 11.0) for track_id in (1, 2, 3)] == [(["seen"], 1), ([], 0), ([], 0)]
