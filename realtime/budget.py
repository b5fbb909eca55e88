"""Chooses how much work a frame gets, from what frames cost; a pure controller that knows neither clock nor steps.

How it keeps calm: it judges the mean of the last moments, in which the slowest frame does not count and no other
counts for more than two; each way has its own threshold; a step up must have been affordable for a while, as predicted
for the level that it goes to; and after a step up that failed, that while is much longer unless the load is clearly
lighter.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from realtime.types import Quality

WINDOW_S = 1.5
"""Seconds that one judgement looks back: a clear overload fills the judged mean in less, a mild one in about this."""
WINDOW_OPENS_S = 0.9
"""Seconds after a change before the first judgement of the new level."""
WINDOW_MIN = 10
"""Fewest frames of a judgement, for loads so heavy that the window holds fewer."""
MOST_OVER_MEDIAN = 2.0
"""A frame counts for at most so many times the median: a hiccup is no load, and a smaller picture would not cure it."""
DOWN_ABOVE = 0.95
"""Load (cost over the input's interval) above which the rate cannot be held; the rest is for what costs leave out."""
DOWN_AIM = 0.9
"""Predicted load that a step down aims below; each further step down in a row aims this much lower again."""
UP_BELOW = 0.7
"""Predicted load that a step up must stay below; far enough from ``DOWN_ABOVE`` for a load that wanders."""
PROOF_S = 10.0
"""Seconds for which a step up must have been affordable all the time."""
MEMORY_S = 600.0
"""What happened within this time counts: steps down are in a row; a step up that has to be taken back has failed, and
the next one under the same load needs a proof of this length."""
CLEARLY_LIGHTER = 0.7
"""Load over the load that allowed the failed step up, below which it is another load, and the short proof will do."""


@dataclass(frozen=True, slots=True)
class Level:
    """A rung of the ladder.

    Attributes:
        quality: what the frames get.
        relative_cost: assumed cost over that of the top level, in (0, 1]; used to predict the cost of a level that is
            not running.
    """

    quality: Quality
    relative_cost: float


SHED_GAIN = 0.9
"""Assumed cost of a frame without an optional step, over that with it."""
LOOKS_GAIN = 0.95
"""The same with half as many looks. The dearest detector that is ever chosen would give 0.97 in passing, where one look
takes a third of an interval every five frames, and 0.83 while it looks in every frame."""


OVERLAP_GAIN = 0.75
"""Assumed cost of a frame with a second one in flight, over that without, on a device that works ahead: copies and
networks of one frame run beside those of the other."""


def ladder(
    optional_steps: Sequence[str], detect_every_n: int, min_scale: float = 0.5, *, overlaps: bool = False
) -> tuple[Level, ...]:
    """Levels from everything to the least.

    Where a second frame in flight gains something, that comes first: it costs nothing but a part of an interval of
    latency. Then the optional steps go, one at a time, then newcomers are looked for half as often, then the picture
    shrinks by the fourth root of two a level, so that two levels halve its pixels. Cost is taken to scale with them.

    Args:
        optional_steps: names of steps that may be left out, the most dispensable first.
        detect_every_n: frames between two looks for newcomers at full quality, >= 1.
        min_scale: smallest working scale, in (0, 1].
        overlaps: whether the device works ahead.
    """
    everything = frozenset(optional_steps)
    levels = [Level(Quality(1.0, detect_every_n, everything), 1.0)] if overlaps else []
    most, gain = (2, OVERLAP_GAIN) if overlaps else (1, 1.0)
    levels += [
        Level(Quality(1.0, detect_every_n, frozenset(optional_steps[shed:]), most), gain * SHED_GAIN**shed)
        for shed in range(len(optional_steps) + 1)
    ]
    least = levels[-1].relative_cost * LOOKS_GAIN
    levels.append(Level(Quality(1.0, 2 * detect_every_n, frozenset(), most), least))
    for halvings in range(1, math.ceil(-4 * math.log2(min_scale) - 1e-9) + 1):
        scale = max(2 ** (-halvings / 4), min_scale)
        levels.append(Level(Quality(scale, 2 * detect_every_n, frozenset(), most), least * scale * scale))
    return tuple(levels)


@dataclass(frozen=True, slots=True)
class _Rise:
    """The last step up: when, from which level, and the load (as predicted at full quality) that allowed it."""

    at_s: float
    origin: int
    full_load: float


class Budget:
    """Steps down and up a ladder so that the frames' cost fits the camera's interval.

    Args:
        levels: best first, ``relative_cost`` falling; one level means that nothing is ever changed.
        target_fps: rate to hold; 0 holds that of the input.
    """

    def __init__(self, levels: Sequence[Level], target_fps: float = 0.0) -> None:
        self._levels = tuple(levels)
        self._target_interval_s = 1 / target_fps if target_fps else 0.0
        self._level = 0
        self._moved_s = -math.inf
        self._downs_in_row = 0
        self._window: deque[tuple[float, float]] = deque()  # (time, load) of frames at the present level, oldest first
        self._window_open_s = math.inf  # time of the first frame at the present level
        self._affordable: tuple[int, float] | None = None  # better level that fits, and since when
        self._rise: _Rise | None = None
        self._failed_load: float | None = None  # load, at full quality, that allowed the step up that failed
        self.reason = ""

    @property
    def levels(self) -> tuple[Level, ...]:
        """The ladder, best first."""
        return self._levels

    @property
    def best(self) -> Quality:
        """What frames get when the load allows everything."""
        return self._levels[0].quality

    @property
    def unhurried(self) -> Quality:
        """What frames get that nobody waits for: everything, and as many in flight as gain something."""
        return replace(self.best, in_flight=self.least.in_flight)

    @property
    def least(self) -> Quality:
        """What frames get under the heaviest load."""
        return self._levels[-1].quality

    @property
    def quality(self) -> Quality:
        """What the next frame gets. ``reason`` says in words why it last changed."""
        return self._levels[self._level].quality

    def update(self, now_s: float, cost_ms: float, interval_s: float) -> Quality:
        """Take in what one frame cost and decide about the next.

        Args:
            now_s: when the frame was finished; never decreases from call to call.
            cost_ms: work on that frame, waiting not included.
            interval_s: time from one picture of the input to the next, > 0.

        Returns:
            The quality of the next frame: the same object as before unless something changed.
        """
        budget_ms = max(interval_s, self._target_interval_s) * 1e3
        load = self._judge(now_s, cost_ms / budget_ms)
        if load is None:
            return self.quality
        target = self._lower(now_s, load) if load > DOWN_ABOVE else self._higher(now_s, load)
        if target != self._level:
            verdict = "are too much for" if target > self._level else "leave room in"
            self.reason = f"{load * budget_ms:.1f} ms a frame {verdict} {budget_ms:.1f} ms from picture to picture"
            self._move(now_s, target)
        return self.quality

    def _judge(self, now_s: float, load: float) -> float | None:
        """Mean load of the last moments, safe against hiccups; ``None`` while too little is known."""
        window = self._window
        window.append((now_s, load))
        self._window_open_s = min(self._window_open_s, now_s)
        while len(window) > WINDOW_MIN and window[0][0] <= now_s - WINDOW_S:
            window.popleft()
        if len(window) < WINDOW_MIN or now_s - self._window_open_s < WINDOW_OPENS_S:
            return None
        loads = sorted(load for _, load in window)
        most = loads[len(loads) // 2] * MOST_OVER_MEDIAN
        return sum(min(load, most) for load in loads[:-1]) / (len(loads) - 1)

    def _predict(self, load: float, level: int) -> float:
        return load * self._levels[level].relative_cost / self._levels[self._level].relative_cost

    def _lower(self, now_s: float, load: float) -> int:
        """The level that an overload asks for: the first that is predicted to fit, at worst the last."""
        last = len(self._levels) - 1
        if self._level == last:
            return last
        if now_s - self._moved_s > MEMORY_S:
            self._downs_in_row = 0
        aim = DOWN_AIM ** (1 + 2 * self._downs_in_row)
        self._downs_in_row += 1
        level = next((i for i in range(self._level + 1, last) if self._predict(load, i) <= aim), last)
        return max(level, self._take_back(now_s))

    def _take_back(self, now_s: float) -> int:
        """Ask for a longer proof next time if the last step up did not last; returns the level it left, else 0."""
        rise, self._rise = self._rise, None
        if rise is None:
            return 0
        if now_s - rise.at_s > MEMORY_S:
            self._failed_load = None
            return 0
        self._failed_load = rise.full_load
        return rise.origin

    def _higher(self, now_s: float, load: float) -> int:
        """The best level that has been affordable for long enough, else the present one."""
        level = next((i for i in range(self._level) if self._predict(load, i) <= UP_BELOW), self._level)
        if level == self._level:
            self._affordable = None
            return level
        worst, since_s = self._affordable or (level, now_s)
        worst = max(worst, level)  # only what was affordable all the time is proven
        self._affordable = (worst, since_s)
        full_load = self._predict(load, 0)
        same_load = self._failed_load is not None and full_load > self._failed_load * CLEARLY_LIGHTER
        if now_s - since_s < (MEMORY_S if same_load else PROOF_S):
            return self._level
        self._rise = _Rise(now_s, self._level, full_load)
        self._downs_in_row = 0
        return worst

    def _move(self, now_s: float, level: int) -> None:
        self._level = level
        self._moved_s = now_s
        self._window.clear()
        self._window_open_s = math.inf
        self._affordable = None
