"""How the person in the demo moves, as tables over one period; knows curves, no pictures.

Every curve is smooth (two continuous derivatives) and periodic, so the demo loops without a seam.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import pi, sin
from typing import Final, NamedTuple

PERIOD_S: Final = 12.0
"""Length of the loop."""


class Wave(NamedTuple):
    """One sine: ``amplitude * sin(2 pi (cycles * t / PERIOD_S + phase))``.

    Attributes:
        cycles: whole number in a period.
        amplitude: in the unit of its curve.
        phase: 0..1, of a cycle.
    """

    cycles: int
    amplitude: float
    phase: float


class Bump(NamedTuple):
    """Up, hold and down again.

    Attributes:
        at_s: begin of the way up.
        up_s: duration of the way up.
        hold_s: duration at full height.
        down_s: duration of the way down.
        height: 0..1.
    """

    at_s: float
    up_s: float
    hold_s: float
    down_s: float
    height: float = 1.0


YAW_DEG: Final = (Wave(1, 9.5, 0.0), Wave(2, 3.5, 0.12), Wave(5, 0.8, 0.4))
PITCH_DEG: Final = (Wave(1, 2.6, 0.55), Wave(3, 2.0, 0.1), Wave(7, 0.7, 0.0))
ROLL_DEG: Final = (Wave(1, 1.6, 0.2), Wave(2, 1.2, 0.7))
SWAY_PX: Final = (Wave(1, 5.0, 0.05), Wave(2, 1.5, 0.5))
"""Whole person to the right, in photo pixels."""
BREATH_PX: Final = (Wave(3, 1.1, 0.0),)
"""Whole person down, in photo pixels."""
LEAN_DEG: Final = (Wave(1, 0.5, 0.1),)
"""Shoulders, clockwise."""
LIGHT: Final = (Wave(1, 0.5, 0.6),)
"""Added to 0.5: 0 is the evening lamp from the left, 1 the window on the right."""

BLINKS: Final = (
    Bump(0.80, 0.10, 0.03, 0.17),
    Bump(3.55, 0.10, 0.04, 0.18),
    Bump(6.30, 0.09, 0.03, 0.15),
    Bump(6.72, 0.10, 0.03, 0.18),
    Bump(9.40, 0.11, 0.06, 0.20),
    Bump(11.55, 0.10, 0.03, 0.17),
)
SYLLABLES: Final = (
    Bump(0.40, 0.12, 0.02, 0.16, 0.55),
    Bump(0.72, 0.10, 0.02, 0.14, 0.35),
    Bump(1.02, 0.13, 0.05, 0.18, 0.95),
    Bump(1.44, 0.11, 0.00, 0.14, 0.45),
    Bump(1.72, 0.12, 0.04, 0.20, 0.70),
    Bump(2.60, 0.11, 0.02, 0.14, 0.40),
    Bump(2.90, 0.14, 0.06, 0.20, 1.00),
    Bump(3.34, 0.10, 0.02, 0.14, 0.50),
    Bump(3.64, 0.10, 0.02, 0.12, 0.30),
    Bump(3.92, 0.13, 0.04, 0.20, 0.80),
    Bump(4.34, 0.12, 0.02, 0.22, 0.50),
    Bump(5.50, 0.12, 0.03, 0.16, 0.60),
    Bump(5.84, 0.13, 0.05, 0.22, 0.90),
    Bump(10.90, 0.14, 0.05, 0.18, 0.75),
    Bump(11.32, 0.12, 0.02, 0.20, 0.50),
)
"""Opening of the mouth."""
SMILES: Final = (Bump(6.20, 0.60, 0.70, 0.80), Bump(10.30, 0.40, 0.10, 0.60, 0.5))
BROWS: Final = (Bump(1.00, 0.25, 0.25, 0.45), Bump(5.60, 0.22, 0.35, 0.40, 0.8))
CARD: Final = (Bump(7.60, 0.90, 0.90, 0.90),)
"""The book that comes up before the lower face: 0 below the picture, 1 at the nose."""


@dataclass(frozen=True, slots=True)
class Pose:
    """Everything that moves, at one instant.

    Attributes:
        yaw_deg: head, positive turns the nose to the right of the picture.
        pitch_deg: head, positive turns the nose down.
        roll_deg: head, clockwise in the picture.
        sway_px: whole person, right and down, in photo pixels.
        lean_deg: shoulders, clockwise.
        light: 0..1 between the two lights of the room.
        blink: 0 open, 1 closed.
        mouth: 0 closed, 1 wide open.
        smile: 0..1.
        brow: 0..1 raised.
        card: 0 out of the picture, 1 before the lower face.
    """

    yaw_deg: float
    pitch_deg: float
    roll_deg: float
    sway_px: tuple[float, float]
    lean_deg: float
    light: float
    blink: float
    mouth: float
    smile: float
    brow: float
    card: float


def pose(t_s: float) -> Pose:
    """Say how the person holds herself.

    Args:
        t_s: any time; ``pose(t_s + PERIOD_S)`` is the same.

    Returns:
        The pose, a pure function of ``t_s``.
    """
    t_s = float(t_s) % PERIOD_S  # a numpy float would turn every picture it touches into float64
    return Pose(
        yaw_deg=_waves(YAW_DEG, t_s),
        pitch_deg=_waves(PITCH_DEG, t_s),
        roll_deg=_waves(ROLL_DEG, t_s),
        sway_px=(_waves(SWAY_PX, t_s), _waves(BREATH_PX, t_s)),
        lean_deg=_waves(LEAN_DEG, t_s),
        light=0.5 + _waves(LIGHT, t_s),
        blink=_bumps(BLINKS, t_s),
        mouth=_bumps(SYLLABLES, t_s),
        smile=_bumps(SMILES, t_s),
        brow=_bumps(BROWS, t_s),
        card=_bumps(CARD, t_s),
    )


def _waves(waves: Iterable[Wave], t_s: float) -> float:
    return sum(wave.amplitude * sin(2 * pi * (wave.cycles * t_s / PERIOD_S + wave.phase)) for wave in waves)


def _bumps(bumps: Iterable[Bump], t_s: float) -> float:
    return min(1.0, sum(_bump(bump, (t_s - bump.at_s) % PERIOD_S) for bump in bumps))


def _bump(bump: Bump, since_s: float) -> float:
    down_at_s = bump.up_s + bump.hold_s
    return bump.height * (_smooth(since_s / bump.up_s) - _smooth((since_s - down_at_s) / bump.down_s))


def _smooth(x: float) -> float:
    """Go from 0 at ``x`` <= 0 to 1 at ``x`` >= 1 with two continuous derivatives (smootherstep)."""
    x = min(max(x, 0.0), 1.0)
    return x * x * x * (x * (6 * x - 15) + 10)
