"""What TensorRT's builder is asked for, and what a person is told of its refusals."""

from __future__ import annotations

import importlib.util
import json
from types import ModuleType
from typing import Any, cast

import pytest

from engines.building.api import TensorRtBuilder
from engines.building.messages import Message, PhaseBegun, PhaseDone, Said, StepDone
from engines.building.network import Built, Source, build_network
from engines.building.settings import BuildSettings
from engines.errors import EngineError
from engines.sizes import Profile
from tests.building.stand import FAKES, HEADER_BYTES

PLAIN = BuildSettings()
FIXED: Profile = {}
FREE: Profile = {"in": ((1, 3, 32, 64), (1, 3, 64, 96), (1, 3, 96, 96))}


def fake(script: str = "") -> ModuleType:
    spec = importlib.util.spec_from_file_location("fake_tensorrt", FAKES / "tensorrt.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(module)["SCRIPT"] = script
    return module


def built(
    settings: BuildSettings = PLAIN,
    script: str = "",
    timings: bytes = b"",
    told: list[Message] | None = None,
    profile: Profile = FIXED,
) -> Built:
    def tell(message: Message) -> bool:
        (told if told is not None else []).append(message)
        return True

    source = Source("one", b"network", profile)
    return build_network(cast(TensorRtBuilder, fake(script)), source, settings, timings, tell)


def asked(made: Built) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(made.plan[HEADER_BYTES:])
    return found


def test_the_types_are_those_of_the_network_and_there_is_one_stream() -> None:
    found = asked(built())
    assert found["flags"] == 1 << fake().NetworkDefinitionCreationFlag.STRONGLY_TYPED
    assert found["aux"] == 0
    assert found["level"] == 3
    assert (found["on"], found["off"], found["pools"]) == ([], [], {})


def test_single_precision_is_exactly_that() -> None:
    assert asked(built(BuildSettings(precision="fp32")))["off"] == ["TF32"]


def test_every_choice_reaches_the_builder() -> None:
    found = asked(built(BuildSettings(workspace_bytes=1 << 30, optimisation=5, strict_nans=True)))
    assert found["pools"] == {"WORKSPACE": 1 << 30}
    assert found["level"] == 5
    assert found["on"] == ["STRICT_NANS"]


def test_between_which_sizes_an_input_is_reaches_the_builder_and_a_fixed_one_has_no_profile() -> None:
    assert "profile" not in asked(built())
    assert asked(built(profile=FREE))["profile"] == {name: [list(shape) for shape in FREE[name]] for name in FREE}


def test_what_was_measured_before_is_used_and_what_is_of_another_gpu_is_not() -> None:
    first = built()
    assert asked(first)["cache"] == ""
    assert asked(built(timings=first.timings))["cache"] == fake().CACHE.decode()
    assert asked(built(timings=b"of another GPU"))["cache"] == ""


def test_every_phase_and_every_warning_is_told() -> None:
    told: list[Message] = []
    built(told=told)
    assert told[:3] == [
        PhaseBegun("Building Engine", "", 2),
        PhaseBegun("Timing", "Building Engine", 4),
        StepDone("Timing", 0),
    ]
    assert told[-2:] == [Said("warning", "half of it is slow"), PhaseDone("Building Engine")]


def test_a_build_that_nobody_listens_to_stops_itself() -> None:
    source = Source("one", b"network", FIXED)
    with pytest.raises(EngineError, match="cannot build one"):
        build_network(cast(TensorRtBuilder, fake()), source, BuildSettings(), b"", lambda _: False)


def test_what_the_parser_does_not_understand_is_listed() -> None:
    with pytest.raises(EngineError) as told:
        built(script="does not parse")
    assert told.value.message.startswith(
        "TensorRT does not understand one: Strange 'node_0': no converter for it, 0; Strange 'node_1'"
    )
    assert told.value.message.endswith("no converter for it, 4; and 2 more")


@pytest.mark.parametrize(
    ("script", "words", "hint"),
    [
        (
            "takes no shapes",
            "TensorRT does not take the sizes of one: Shape provided for min is inconsistent",
            "update",
        ),
        ("takes no profile", "TensorRT does not take the sizes of one: TensorRT gave no reason", "update"),
        ("runs out of memory", "TensorRT cannot build one: Could not allocate: out of memory", "--workspace"),
        ("does not start", "TensorRT's builder does not start: CUDA initialization failure", "driver"),
    ],
)
def test_a_refusal_has_its_words_and_says_what_to_try(script: str, words: str, hint: str) -> None:
    with pytest.raises(EngineError) as told:
        built(script=script, profile=FREE)
    assert told.value.message.startswith(words)
    assert hint in told.value.hint
