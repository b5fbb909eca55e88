from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from engines.card import FOLDER, ModelCard, load_card
from engines.errors import EngineError, ModelError
from realtime.detect import DETECTORS, Detection
from realtime.detect.choice import AFFORDABLE_MS, BEST_FIRST, LOOKS, WARM_LOOKS, Choice, Opened, choose
from realtime.types import F32, U8

PICTURE = np.zeros((48, 64, 3), np.uint8)
CARDS = [replace(load_card("scrfd_500m"), name=name) for name in ("best", "good", "embedded")]


class Bench:
    """A device on which each detector costs what the script says; its clock moves with the work."""

    def __init__(self, **costs_ms: list[float] | Exception) -> None:
        self.costs_ms, self.now_s = costs_ms, 0.0
        self.looks: dict[str, int] = {}
        self.open: list[str] = []

    def open_one(self, card: ModelCard) -> Opened:
        script = self.costs_ms[card.name]
        if isinstance(script, ModelError):
            raise script
        self.open.append(card.name)
        return Opened(Scripted(self, card.name, script), "a chip")

    def choose(self, *missing: str) -> Choice:
        return choose(CARDS, lambda card: card.name not in missing, self.open_one, PICTURE, lambda: self.now_s)


class Scripted:
    def __init__(self, bench: Bench, name: str, script: list[float] | Exception) -> None:
        self.bench, self.name, self.script = bench, name, script

    def detect(self, pixels: U8, near: Sequence[F32] = (), views: int = 1) -> list[Detection]:
        if isinstance(self.script, Exception):
            raise self.script
        number = self.bench.looks[self.name] = self.bench.looks.get(self.name, 0) + 1
        self.bench.now_s += self.script[min(number, len(self.script)) - 1] / 1000
        return []

    def detect_everywhere(self, pixels: U8) -> list[Detection]:
        return self.detect(pixels)

    def close(self) -> None:
        self.bench.open.remove(self.name)


def test_the_best_that_is_fast_enough_is_taken_and_stays_open() -> None:
    bench = Bench(best=[9.2], good=[1.0], embedded=[1.0])
    choice = bench.choose()
    assert choice.card.name == "best"
    assert choice.sentence == "best on a chip, 9.2 ms a look"
    assert bench.open == ["best"]


def test_one_that_is_too_slow_is_closed_and_named_with_its_cost() -> None:
    bench = Bench(best=[34.0], good=[11.0], embedded=[1.0])
    choice = bench.choose()
    assert choice.sentence == "good on a chip, 11.0 ms a look; best would take 34 ms a look here, more than 11"
    assert bench.open == ["good"]


def test_the_last_one_is_taken_whatever_it_costs_and_unmeasured() -> None:
    bench = Bench(best=[34.0], good=[12.0], embedded=[99.0])
    choice = bench.choose("best")
    assert choice.sentence == ("embedded on a chip; good would take 12 ms a look here, more than 11")
    assert bench.looks == {"good": WARM_LOOKS + LOOKS}
    assert bench.open == ["embedded"]


def test_the_first_looks_do_not_count_and_one_hiccup_decides_nothing() -> None:
    assert Bench(best=[500.0, 80.0, 9.0, 30.0, 9.0], good=[1.0], embedded=[1.0]).choose().card.name == "best"


def test_one_that_is_far_too_slow_is_not_tried_to_the_end() -> None:
    bench = Bench(best=[300.0], good=[1.0], embedded=[1.0])
    bench.choose()
    assert bench.looks["best"] == WARM_LOOKS + 1


def test_one_that_does_not_open_or_does_not_look_is_named_with_the_reason() -> None:
    bench = Bench(
        best=ModelError("its licence was not accepted", "accept it"),
        good=EngineError("out of memory", "x"),
        embedded=[1.0],
    )
    assert bench.choose().sentence == (
        "embedded on a chip; best cannot be used: its licence was not accepted; good cannot be used: out of memory"
    )
    assert bench.open == ["embedded"]


def test_what_is_wrong_with_the_last_one_is_an_error() -> None:
    bench = Bench(best=[1.0], good=[1.0], embedded=ModelError("it is damaged", "replace it"))
    with pytest.raises(ModelError, match="it is damaged"):
        bench.choose("best", "good")


def test_a_look_may_take_a_third_of_a_frame() -> None:
    assert pytest.approx(11.1, abs=0.1) == AFFORDABLE_MS


def test_every_detector_that_comes_with_a_card_has_a_place_and_the_embedded_one_is_last() -> None:
    cards = [load_card(path.stem) for path in FOLDER.glob("*.toml")]
    assert set(BEST_FIRST) == {card.name for card in cards if card.family in DETECTORS}
    assert load_card(BEST_FIRST[-1]).family == "ssd"
