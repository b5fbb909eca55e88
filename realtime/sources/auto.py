"""The input for whoever said nothing: the first camera that works, else the demo; knows the order, no device."""

from __future__ import annotations

from dataclasses import replace

from realtime.errors import SourceError
from realtime.sources import Source, SourceInfo, SourceSpec, SourceWish, open_source
from realtime.sources.cameras import list_cameras
from realtime.types import Frame


class AutoSource:
    """The first camera that gives pictures, else the built-in demo with a notice that says why.

    ``info.reopen`` names what was found, so a camera that drops out later is waited for and never replaced.
    """

    def __init__(self, target: str, wish: SourceWish) -> None:
        """Try every camera in the order of the system.

        Args:
            target: ignored; every class of the table takes one.
            wish: passed on.

        Raises:
            SourceError: not even the demo could be opened.
        """
        del target
        spec, self._source, notice = _first(wish)
        inner = self._source.info
        self._info = replace(inner, facts=(notice, *inner.facts), reopen=inner.reopen or spec)

    @property
    def info(self) -> SourceInfo:
        """What was found, with the notice as the first fact."""
        return self._info

    def read(self) -> Frame | None:
        """Read from what was found; see ``Source.read``."""
        return self._source.read()

    def close(self) -> None:
        """Close what was found; see ``Source.close``."""
        self._source.close()


def _first(wish: SourceWish) -> tuple[SourceSpec, Source, str]:
    refused: list[str] = []
    for camera in list_cameras():
        spec = SourceSpec("camera", str(camera.index))
        try:
            return spec, open_source(spec, wish), f"input auto: {camera.name}"
        except SourceError as error:
            refused.append(error.message)
    why = "; ".join(refused) or "none found"
    demo = SourceSpec("demo")
    return demo, open_source(demo, wish), f"no working camera, showing the built-in demo ({why})"
