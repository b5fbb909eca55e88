"""Sound of whoever sends by network, for whoever watches: held back until its picture is shown; knows no picture."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from av import AudioFrame

MOST_WAITING = 100
"""Pieces of 20 ms for each listener: more than a picture is ever late. The oldest goes where there is no room."""


class SoundTrack(MediaStreamTrack):
    """What one listener hears.

    Args:
        delay_s: asked for each piece: how long it is held back.
    """

    kind = "audio"

    def __init__(self, delay_s: Callable[[], float]) -> None:
        super().__init__()
        self._delay_s = delay_s
        self._time_s = asyncio.get_running_loop().time
        self._pieces: deque[tuple[float, AudioFrame]] = deque(maxlen=MOST_WAITING)
        self._changed = asyncio.Event()

    def push(self, piece: AudioFrame) -> None:
        """Give it a piece that has just arrived."""
        self._pieces.append((self._time_s() + self._delay_s(), piece))
        self._changed.set()

    async def recv(self) -> AudioFrame:
        """The next piece, when it is due.

        Raises:
            MediaStreamError: the track was stopped.
        """
        while True:
            if self.readyState != "live":
                raise MediaStreamError
            early_s = self._pieces[0][0] - self._time_s() if self._pieces else None
            if early_s is not None and early_s <= 0:
                return self._pieces.popleft()[1]
            if early_s is not None:
                await asyncio.sleep(early_s)
                continue
            self._changed.clear()
            await self._changed.wait()

    def stop(self) -> None:
        """End it, and whoever waits in ``recv``."""
        super().stop()
        self._changed.set()


class Sound:
    """Hands the sound of one sender to every listener. All of it on the loop's thread."""

    def __init__(self, delay_s: Callable[[], float]) -> None:
        self._delay_s = delay_s
        self._tracks: set[SoundTrack] = set()

    def join(self) -> SoundTrack:
        """Add a listener."""
        track = SoundTrack(self._delay_s)
        self._tracks.add(track)
        track.on("ended", lambda: self._tracks.discard(track))
        return track

    async def carry(self, source: MediaStreamTrack) -> None:
        """Take everything from a sender's track until that ends, heard or not: what nobody reads would pile up."""
        while True:
            try:
                piece = await source.recv()
            except MediaStreamError:
                return
            if isinstance(piece, AudioFrame):
                for track in tuple(self._tracks):
                    track.push(piece)
