from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.evidence import is_face


@pytest.mark.parametrize(
    ("score", "presence", "face"),
    [(0.52, 0.96, False), (0.8, 0.86, False), (0.86, 0.995, True), (0.5, 0.995, True), (0.97, 0.8, True)],
)
def test_both_networks_count(score: float, presence: float, face: bool) -> None:
    assert is_face(score, presence) == face


@given(st.floats(0, 1))
def test_certainty_and_impossibility_of_one_network_are_survived(value: float) -> None:
    assert not is_face(0.0, value)
    assert not is_face(value, 0.0)
    assert is_face(1.0, value) == is_face(value, 1.0) == (value > 0)
