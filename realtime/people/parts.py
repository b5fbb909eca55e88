"""Reads out of the settings who gets whose face; knows names of files, not what is in them."""

from __future__ import annotations

from dataclasses import dataclass

from realtime.assets import sample_source
from realtime.config import Settings
from realtime.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Part:
    """A face that is shown, and who gets it.

    Attributes:
        photos: of the face that is shown, one or more.
        people: photos of those who get it, one for each; empty for whoever is in view.
    """

    photos: tuple[str, ...]
    people: tuple[str, ...] = ()


def parts_of(settings: Settings) -> tuple[Part, ...]:
    """Say who gets whose face.

    Returns:
        One part for each face that is shown: that of the source photos, unless every person who was named gets another
        one. Either one part is for whoever is in view, or none is.

    Raises:
        ConfigError: somebody was named twice.
    """
    photos = settings.source.photos or (str(sample_source()),)
    mapped: dict[str, list[str]] = {}
    named = list(settings.faces.only)
    for them, me in pairs(settings.faces.map):
        mapped.setdefault(me, []).append(them)
        named.append(them)
    if twice := next((photo for photo in named if named.count(photo) > 1), None):
        raise ConfigError(f"{twice} is named twice in faces.only and faces.map", "name each person once")
    own = () if mapped and not settings.faces.only else (Part(photos, settings.faces.only),)
    return (*own, *(Part((me,), tuple(people)) for me, people in mapped.items()))


def pairs(texts: tuple[str, ...]) -> list[tuple[str, str]]:
    """Read ``"them.jpg=me.png"``; one text may hold several pairs, with commas between them.

    A comma ends a pair only where another one follows, so that a file name may have one.

    Args:
        texts: each with at least one ``=``.

    Returns:
        The photo of the person in view, and that of the face to show, of each pair.
    """
    found: list[str] = []
    for text in texts:
        begun = ""
        for piece in text.split(","):
            if "=" in begun and "=" in piece:
                found.append(begun)
                begun = piece
            else:
                begun = f"{begun},{piece}" if begun else piece
        found.append(begun)
    split = (pair.partition("=") for pair in found)
    return [(them.strip(), me.strip()) for them, _, me in split]
