"""Finds two uses of the same memory that nothing puts in an order, by vector clocks; knows ranges, not what is in them.

A wrong picture needs the wrong luck. This needs none: each stream counts what it is given, an event carries the counts
that its recorder knew of, and who waits for it knows of them too. Two uses, one of which writes, are in order if the
later one knew of the earlier one's count. The host is one more party: it knows of what it has waited for, and what it
gives to a stream comes after that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

Clock = dict[str, int]


class Use(NamedTuple):
    """A range of memory that a piece of work reads, or writes."""

    address: int
    nbytes: int
    writes: bool

    def clashes(self, other: Use) -> bool:
        """Whether it matters which comes first."""
        apart = self.address >= other.address + other.nbytes or other.address >= self.address + self.nbytes
        return (self.writes or other.writes) and not apart


class _Past(NamedTuple):
    use: Use
    stream: str
    tick: int
    name: str


class RaceError(AssertionError):
    """Two uses of the same memory in no order."""


class Races:
    """What every stream and the host know of each other."""

    def __init__(self) -> None:
        self._known: defaultdict[str, Clock] = defaultdict(dict)
        self._past: list[_Past] = []

    def work(self, stream: str, name: str, uses: Sequence[Use]) -> None:
        """A stream is given work.

        Raises:
            RaceError: it is in no order with work that came before.
        """
        self.learn(stream, self._known["host"])
        known = self._known[stream]
        known[stream] = known.get(stream, 0) + 1
        for use in uses:
            self._demand(use, known, f"{name} on {stream}")
            self._past.append(_Past(use, stream, known[stream], name))

    def host(self, name: str, use: Use) -> None:
        """The host uses memory itself, or frees it; like ``work``."""
        self._demand(use, self._known["host"], f"{name} by the host")

    def now(self, stream: str) -> Clock:
        """What a stream knows: an event carries it from here."""
        return dict(self._known[stream])

    def learn(self, who: str, clock: Clock) -> None:
        """A stream, or "host", has waited for an event that carries this."""
        known = self._known[who]
        for stream, count in clock.items():
            known[stream] = max(known.get(stream, 0), count)
        if who == "host":  # everything that comes from now on knows of these
            self._past = [past for past in self._past if past.tick > known.get(past.stream, 0)]

    def _demand(self, use: Use, known: Clock, what: str) -> None:
        for past in self._past:
            if past.tick > known.get(past.stream, 0) and use.clashes(past.use):
                raise RaceError(f"{what} is in no order with {past.name} on {past.stream}")
