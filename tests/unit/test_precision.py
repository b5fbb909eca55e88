from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engines import precision, registry
from engines.card import load_card
from engines.errors import EngineError, ModelError
from engines.precision import TOLERANCE, demand_precision
from engines.trial import apart, trial_inputs

CARD = load_card("face_landmark")
KEY = ("hash of the model", "one 1.0", "other 2.0", "a chip")


class Answer:
    """Answers with one value everywhere, off by some share at one place."""

    inputs, outputs = CARD.inputs, CARD.outputs

    def __init__(self, off: float = 0.0) -> None:
        self.off, self.runtime, self.closed, self.runs = off, "odd 2.0", False, 0

    def run(self, *tensors: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        self.runs += 1
        answer = np.full(CARD.outputs[0].shape, 50.0, np.float32)
        answer.flat[7] += 50 * self.off
        return answer, np.zeros(CARD.outputs[1].shape, np.float32)

    def close(self) -> None:
        self.closed = True


def reference(opened: list[Answer]) -> Callable[[], Answer]:
    def make() -> Answer:
        opened.append(Answer())
        return opened[-1]

    return make


def test_rounding_passes_and_is_asked_for_only_once(tmp_path: Path) -> None:
    opened: list[Answer] = []
    for _ in range(3):
        demand_precision(CARD, Answer(1e-5), reference(opened), KEY, tmp_path)
    assert len(opened) == 1
    assert opened[0].closed


def test_a_lower_precision_is_an_error_each_time_and_compared_once(tmp_path: Path) -> None:
    opened: list[Answer] = []
    for _ in range(2):
        with pytest.raises(EngineError, match=r"face_landmark on odd 2.0 is 0.40% apart from runtime litert") as caught:
            demand_precision(CARD, Answer(4e-3), reference(opened), KEY, tmp_path)
        assert caught.value.hint == "choose runtime litert"
    assert len(opened) == 1


@pytest.mark.parametrize("number", range(len(KEY)))
def test_another_model_version_or_processor_is_compared_anew(tmp_path: Path, number: int) -> None:
    opened: list[Answer] = []
    demand_precision(CARD, Answer(), reference(opened), KEY, tmp_path)
    other = tuple(f"{part}!" if n == number else part for n, part in enumerate(KEY))
    with pytest.raises(EngineError, match="apart"):
        demand_precision(CARD, Answer(1.0), reference(opened), other, tmp_path)
    assert len(opened) == 2


def test_an_answer_that_is_no_number_is_refused(tmp_path: Path) -> None:
    for _ in range(2):  # the second time from the note
        with pytest.raises(EngineError, match="apart from runtime litert"):
            demand_precision(CARD, Answer(float("nan")), reference([]), KEY, tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"apart": "much"}', '{"apart": null}', "\x00\xff"])
def test_a_damaged_note_counts_as_none(tmp_path: Path, text: str) -> None:
    opened: list[Answer] = []
    demand_precision(CARD, Answer(), reference(opened), KEY, tmp_path)
    (note,) = tmp_path.iterdir()
    note.write_bytes(text.encode("latin-1"))
    demand_precision(CARD, Answer(), reference(opened), KEY, tmp_path)
    assert len(opened) == 2
    assert json.loads(note.read_text())["apart"] == 0


def test_a_note_that_is_no_number_lets_nothing_through(tmp_path: Path) -> None:
    demand_precision(CARD, Answer(), reference([]), KEY, tmp_path)
    (note,) = tmp_path.iterdir()
    note.write_text('{"apart": NaN}')
    with pytest.raises(EngineError, match="apart from runtime litert"):
        demand_precision(CARD, Answer(), reference([]), KEY, tmp_path)


def test_a_folder_that_cannot_be_written_costs_time_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    opened: list[Answer] = []
    for _ in range(2):
        demand_precision(CARD, Answer(), reference(opened), KEY, tmp_path / "file" / "below")
    assert len(opened) == 2


def test_the_measure_is_the_largest_difference_over_the_largest_value() -> None:
    one = np.array([0.0, 200.0, -400.0], np.float32)
    assert apart(one, one) == 0
    assert apart(one, one + np.array([4, 0, 0], np.float32)) == pytest.approx(0.01)
    assert apart(np.zeros(3), np.array([0, 0.5, 0])) == 0.5
    assert apart(one, np.array([0, np.inf, 0])) == float("inf")


def test_the_limit_lies_between_rounding_and_half_precision() -> None:
    rng = np.random.default_rng(0)
    values = rng.uniform(0, 192, 1404).astype(np.float32)
    bfloat16 = (values.view(np.uint32) & 0xFFFF0000).view(np.float32)
    assert apart(values, np.nextafter(values, np.float32(0))) < TOLERANCE / 1000
    assert apart(values, bfloat16) > TOLERANCE


def test_trial_inputs_are_of_the_cards_kind_and_always_the_same() -> None:
    scrfd = load_card("scrfd_500m")
    (one,), (other,) = trial_inputs(scrfd, 0), trial_inputs(scrfd, 0)
    np.testing.assert_array_equal(one, other)
    assert one.shape == (1, 3, 128, 128)
    assert one.dtype == np.float32
    assert one.min() == pytest.approx(-127.5 / 128)
    assert one.max() == pytest.approx(127.5 / 128)


def test_the_door_lets_no_doubtful_runtime_through_unchecked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openvino", reason="the optional runtime openvino is not installed")
    monkeypatch.setattr(precision, "verdicts", lambda: tmp_path)
    engine = registry.open_engine(CARD, "openvino")
    assert engine.runtime.startswith("openvino ")
    assert len(list(tmp_path.iterdir())) == 1
    (note,) = tmp_path.iterdir()
    assert 0 < json.loads(note.read_text())["apart"] < TOLERANCE / 10
    note.write_text(json.dumps({"apart": 0.5}))  # as if it had been found wanting
    with pytest.raises(EngineError, match=r"50\.00% apart from runtime litert"):
        registry.open_engine(CARD, "openvino")


def test_an_engine_that_cannot_be_compared_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Answer()
    monkeypatch.setattr(registry, "_usable", lambda card, name: registry.Entry("none:None", (), "", doubtful=True))
    monkeypatch.setattr(registry, "_load", lambda entry: lambda card, **_: engine)

    def fail() -> Path:
        raise ModelError("the records are damaged", "delete them")

    monkeypatch.setattr(precision, "verdicts", fail)
    with pytest.raises(ModelError, match="damaged"):
        registry.open_engine(CARD, "openvino")
    assert engine.closed
