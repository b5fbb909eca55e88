"""Where pictures come from: the ``Source`` contract and the table of kinds; knows no device."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from realtime.types import Frame, Size


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """What a source really delivers, read back from the device or file after it was opened.

    Attributes:
        name: for people: "Logitech C920 (/dev/video0)", "clip.mkv", "demo".
        size: of the first picture; a later frame may differ (a stream that changes size), so never rely on it.
        fps: pictures per second that the device or file claims; 0 when unknown.
        live: ``True`` when pictures come at their own time and a late reader must skip; ``False`` when the source
            waits for the reader and every picture counts (file, as fast as possible).
        facts: lines for the start banner: the format that was negotiated, and each setting that was refused, e.g.
            "asked for 1280x720, the camera gives 640x480".
        audio_path: path of a file whose audio belongs to these pictures (a recording copies it), or ``None``.
        audio_rate: pictures per second in the clock of that audio; 0 without audio.
    """

    name: str
    size: Size
    fps: float
    live: bool
    facts: tuple[str, ...] = ()
    audio_path: str | None = None
    audio_rate: Fraction = Fraction(0)


class Source(Protocol):
    """One opened source of pictures. Opened by its constructor, used by one thread, closed once.

    ``read`` may block for as long as the device blocks: the capture thread owns that, and its watchdog decides what a
    silence means. A source never starts a thread of its own.
    """

    @property
    def info(self) -> SourceInfo:
        """What is really delivered; constant after the constructor has returned."""

    def read(self) -> Frame | None:
        """Block until the next picture, stamp it and hand it over.

        Returns:
            The frame (the caller owns its pixels), or ``None`` at the end of a file.

        Raises:
            SourceError: ``fatal=False`` when the device went away (opening again may help), else ``fatal=True``.
        """

    def close(self) -> None:
        """Give the device back. Safe to call twice, and from another thread than the reader's."""
