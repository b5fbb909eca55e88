"""How long to wait before opening a lost device again; pure, shared by sources and sinks."""

from __future__ import annotations

FIRST_S = 0.25
LONGEST_S = 5.0
"""A person plugs a camera back in and looks at the screen for about this long before thinking that nothing happens."""


def wait_s(attempt: int) -> float:
    """Seconds before attempt number ``attempt`` (from 0): a quarter of a second, doubling up to five seconds."""
    return min(LONGEST_S, FIRST_S * 2.0 ** min(attempt, 10))
