"""How far a build is: an estimate that never goes back, whatever TensorRT tells."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.building.messages import (
    Failed,
    Finished,
    Message,
    PhaseBegun,
    PhaseDone,
    Request,
    Said,
    Stage,
    StepDone,
    Unfinished,
    read_message,
    read_request,
    to_line,
)
from engines.building.progress import STAGES, Progress
from engines.building.settings import BuildSettings
from engines.card import load_card

NAMES = st.sampled_from(["a", "b", "c"])
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(Stage, st.sampled_from(list(STAGES))),
    st.builds(PhaseBegun, NAMES, st.sampled_from(["", "a", "b", "c"]), st.integers(0, 9)),
    st.builds(StepDone, NAMES, st.integers(-1, 12)),
    st.builds(PhaseDone, NAMES),
)


def after(*messages: Message) -> Progress:
    progress = Progress()
    for message in messages:
        progress = progress.after(message)
    return progress


@given(st.lists(MESSAGES, max_size=40))
def test_the_share_never_goes_back_and_stays_a_share(messages: list[Message]) -> None:
    progress = Progress()
    for message in messages:
        later = progress.after(message)
        assert progress.share <= later.share <= 1
        progress = later


def test_phases_are_nested_and_a_step_of_the_inner_one_moves_the_whole() -> None:
    begun = after(Stage("building"), PhaseBegun("Building Engine", "", 2), PhaseBegun("Timing", "Building Engine", 4))
    assert [(phase.name, phase.parent, phase.done, phase.steps) for phase in begun.phases] == [
        ("Building Engine", "", 0, 2),
        ("Timing", "Building Engine", 0, 4),
    ]
    later = begun.after(StepDone("Timing", 1))
    assert later.share - begun.share == pytest.approx(STAGES["building"] / sum(STAGES.values()) / 4)
    over = later.after(PhaseDone("Timing")).after(StepDone("Building Engine", 0))
    assert [phase.name for phase in over.phases] == ["Building Engine"]
    assert over.share > later.share


def test_a_stage_has_no_phases_of_the_one_before() -> None:
    assert after(Stage("building"), PhaseBegun("a", "", 2), Stage("writing")).phases == ()


@pytest.mark.parametrize(
    "message",
    [
        Stage("building"),
        PhaseBegun("one\ntwo", "", 3),
        StepDone("a", 1),
        PhaseDone("a"),
        Said("warning", "Zeit überschritten"),
        Unfinished(Path("/a/b.part")),
        Failed("ModelError", "what", "hint"),
        Finished(Path("/a/b.plan"), True, ("it was old",)),
    ],
)
def test_a_message_is_one_line_and_comes_through(message: Message) -> None:
    line = to_line(message)
    assert line.count(b"\n") == 1
    assert read_message(line) == message


def test_a_request_comes_through_with_its_whole_card() -> None:
    request = Request(load_card("inswapper_128"), BuildSettings("int8", 4, (640, 384), calibration=Path("here")), True)
    assert read_request(to_line(request)) == request
