"""The picture for viewers on the network; knows where they get it, not who they are."""

from __future__ import annotations

from realtime.errors import SinkError, install_extra
from realtime.sinks import SinkInfo, SinkWish, even_size
from realtime.types import Frame

USUAL_FPS = 30.0
"""Steady cadence when the source names none."""


class WebRtc:
    """Shows the picture to whoever watches; costs nothing while nobody does."""

    def __init__(self, target: str, wish: SinkWish) -> None:
        del target  # whoever comes is shown it
        if wish.station is None:
            raise SinkError("viewers on the network need the web server", install_extra("webrtc"))
        self._outlet = wish.station.outlet
        self._info = SinkInfo(
            name="webrtc",
            size=even_size(wish.size),
            fps=wish.fps or USUAL_FPS,
            live=True,
            facts=(*wish.notes, f"page: {wish.station.url}", f"WHEP players: {wish.station.url}/whep"),
            any_size=True,
        )

    @property
    def info(self) -> SinkInfo:
        """Every even size, at a steady cadence: who joins sees the picture at once."""
        return self._info

    def write(self, frame: Frame) -> None:
        """Show a picture."""
        self._outlet.show(frame)

    def close(self) -> None:
        """Nothing to give back: the web server outlives it."""
