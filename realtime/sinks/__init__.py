"""Where pictures go: the ``Sink`` contract and the table of kinds; knows no device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from realtime.types import Frame, Size


@dataclass(frozen=True, slots=True)
class SinkInfo:
    """What a sink really takes, read back from the device after it was opened.

    Attributes:
        name: for people: "virtual camera OBS (/dev/video10)", "recording out.mp4".
        size: of every picture it takes; constant while the sink is open.
        fps: the steady cadence its emitter keeps, repeating the last picture when nothing new came; 0 means one write
            per new picture and nothing in between.
        live: ``True`` when a late picture should be skipped (camera, window); ``False`` when every picture counts
            (recording).
        facts: lines for the start banner.
    """

    name: str
    size: Size
    fps: float
    live: bool
    facts: tuple[str, ...] = ()


class Sink(Protocol):
    """One opened receiver of pictures. Opened by its constructor, used by one thread (its emitter), closed once."""

    @property
    def info(self) -> SinkInfo:
        """What is really taken; constant after the constructor has returned."""

    def write(self, frame: Frame) -> None:
        """Deliver one picture; never writes into ``frame.pixels``.

        Args:
            frame: its pixels have the size of ``info.size`` (the loop's emitter sees to that).

        Raises:
            SinkError: the picture could not be delivered; ``fatal=False`` when opening again may help.
        """

    def close(self) -> None:
        """Finish and give the device back. Safe to call twice."""
