"""Chooses the best detector whose weights are here and that this device can afford; knows costs, no networks.

What is opened and measured is handed in, so the choice itself can be tried with scripted costs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from engines.card import ModelCard
from engines.errors import LiveError
from realtime.detect import Detector
from realtime.types import U8

BEST_FIRST = ("scrfd_10g", "scrfd_2.5g", "scrfd_500m", "yunet", "face_detection_short_range")
"""Cards of detectors, by how many faces they find (hard set of WIDER FACE); the last one comes with the program."""

AFFORDABLE_MS = 1000 / 30 / 3
"""What a look may cost: a third of the time between two pictures of a 30 Hz camera. In passing a look comes every n
pictures, but one that took a whole interval would drop a picture each time."""

WARM_LOOKS, LOOKS = 2, 5
"""Looks before the measurement (buffers are allocated, caches filled), and those that are measured."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A detector that was opened to be tried.

    Attributes:
        detector: ready to look.
        runtime: what it runs on, see :class:`engines.contract.Engine`.
    """

    detector: Detector
    runtime: str


@dataclass(frozen=True, slots=True)
class Choice:
    """The detector that was chosen.

    Attributes:
        card: of its model.
        detector: opened; whoever asked closes it.
        sentence: for the banner: what looks for faces, what a look costs, and why no better one does.
    """

    card: ModelCard
    detector: Detector
    sentence: str


def choose(
    cards: Sequence[ModelCard],
    is_here: Callable[[ModelCard], bool],
    open_one: Callable[[ModelCard], Opened],
    picture: U8,
    clock: Callable[[], float],
    affordable_ms: float = AFFORDABLE_MS,
) -> Choice:
    """Pick the first detector that is here, opens, and looks fast enough.

    Args:
        cards: candidates, the best first. The last is taken whatever it costs.
        is_here: whether a card's file can be found.
        open_one: opens a candidate; what is not chosen is closed again.
        picture: (H, W, 3) uint8 BGR of the size that will come: a look costs what its size costs.
        clock: seconds, e.g. ``time.perf_counter``.
        affordable_ms: most that a look may cost.

    Returns:
        The choice.

    Raises:
        LiveError: whatever ``open_one`` raises for the last candidate. What it raises for a better one is a reason in
            the sentence; that one was never fetched is none.
    """
    reasons = []
    for card in cards[:-1]:
        if not is_here(card):
            continue
        try:
            opened = open_one(card)
        except LiveError as error:
            reasons.append(f"{card.name} cannot be used: {error.message}")
            continue
        try:
            cost_ms = look_ms(opened.detector, picture, clock, affordable_ms)
        except LiveError as error:
            opened.detector.close()
            reasons.append(f"{card.name} cannot be used: {error.message}")
            continue
        if cost_ms <= affordable_ms:
            return Choice(card, opened.detector, _sentence(card, opened, f", {cost_ms:.1f} ms a look", reasons))
        opened.detector.close()
        reasons.append(f"{card.name} would take {cost_ms:.0f} ms a look here, more than {affordable_ms:.0f}")
    opened = open_one(cards[-1])
    return Choice(cards[-1], opened.detector, _sentence(cards[-1], opened, "", reasons))


def look_ms(detector: Detector, picture: U8, clock: Callable[[], float], enough_ms: float) -> float:
    """Measure what a look costs.

    Args:
        detector: to try.
        picture: to look at.
        clock: seconds.
        enough_ms: a look that costs three times as much is proof enough: the rest of the tries is left out.

    Returns:
        Median cost in milliseconds.
    """
    costs = []
    for number in range(WARM_LOOKS + LOOKS):
        began = clock()
        detector.detect(picture)
        cost_ms = (clock() - began) * 1000
        if number >= WARM_LOOKS:
            costs.append(cost_ms)
            if cost_ms > 3 * enough_ms:
                break
    return median(costs)


def _sentence(card: ModelCard, opened: Opened, cost: str, reasons: Sequence[str]) -> str:
    return "; ".join([f"{card.name} on {opened.runtime}{cost}", *reasons])
