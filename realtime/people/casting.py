"""Says which person in view is which of those who were named, from how alike they are; knows numbers, no pictures."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

KEEP = 0.75
"""Share of the threshold down to which somebody who was recognised stays so."""
DOUBTS = 2
"""Looks in a row below that after which somebody is not the person any more: one may have met a hand or a blink."""
EDGE = 0.05
"""By how much more alike another person must be to be taken for somebody who is in view already."""


@dataclass(slots=True)
class _Person:
    """One followed person: how alike each reference at the latest look, and which of them it is (-1: none)."""

    alike: tuple[float, ...]
    reference: int = -1
    doubts: int = 0


class Casting:
    """Matches followed people with references, each of them with at most one of the other.

    Args:
        references: how many there are.
        match: how alike (cosine) a person must be to be recognised.
    """

    def __init__(self, references: int, match: float) -> None:
        self._references, self._match = references, match
        self._people: dict[int, _Person] = {}

    @property
    def is_complete(self) -> bool:
        """Whether every reference has been found."""
        return sum(person.reference >= 0 for person in self._people.values()) >= self._references

    def reference(self, track_id: int) -> int | None:
        """Which reference somebody is, or ``None``; as of the last :meth:`settle`."""
        person = self._people.get(track_id)
        return person.reference if person and person.reference >= 0 else None

    def note(self, track_id: int, alike: Sequence[float]) -> bool:
        """Note a look at somebody.

        Args:
            track_id: of the person.
            alike: cosine with each reference.

        Returns:
            Whether the look speaks against what the person was taken for.
        """
        person = self._people.setdefault(track_id, _Person(()))
        person.alike = tuple(alike)
        doubtful = person.reference >= 0 and person.alike[person.reference] < KEEP * self._match
        person.doubts = person.doubts + 1 if doubtful else 0
        return doubtful

    def rivals(self, track_id: int) -> list[int]:
        """Who else is taken for a reference that this person could be: one of the two looks is out of date."""
        could_be = {n for n, alike in enumerate(self._people[track_id].alike) if alike >= self._match}
        return [other for other, person in self._people.items() if other != track_id and person.reference in could_be]

    def settle(self, in_view: Collection[int], lost: Collection[int]) -> None:
        """Match people with references anew: the most alike first, those in view before those who are lost.

        Args:
            in_view: everyone who is in view; those who were never looked at are nobody.
            lost: everyone who was in view a short while ago. They keep what they were taken for unless somebody in view
                takes it; they never take anything. Whoever is in neither is forgotten.
        """
        self._people = {n: person for n, person in self._people.items() if n in in_view or n in lost}
        pairs = [
            (n not in in_view, -person.alike[reference] - (EDGE if held else 0), n, reference)
            for n, person in self._people.items()
            for reference in range(self._references)
            if (held := person.reference == reference) or n in in_view
            if self._fits(person, reference, held=held)
        ]
        matched: dict[int, int] = {}
        for *_, n, reference in sorted(pairs):
            if n not in matched and reference not in matched.values():
                matched[n] = reference
        for n, person in self._people.items():
            if person.reference != matched.get(n, -1):
                person.reference, person.doubts = matched.get(n, -1), 0

    def _fits(self, person: _Person, reference: int, *, held: bool) -> bool:
        return person.alike[reference] >= self._match or (held and person.doubts < DOUBTS)
