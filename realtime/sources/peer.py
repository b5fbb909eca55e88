"""Pictures that somebody sends by network, from a browser or a WHIP client; knows what arrives, not how."""

from __future__ import annotations

from typing import ClassVar

import av
import cv2
import numpy as np

from realtime.errors import SourceError, install_extra
from realtime.sources import SourceInfo, SourceWish
from realtime.sources.fit import letterbox
from realtime.types import U8, Frame, Size
from realtime.web.station import Arrival, Inlet, Station

USUAL_SIZE = Size(1280, 720)
"""What the page asks a camera for, until a picture shows its own size."""
USUAL_FPS = 30.0
LOOK_S = 0.1
"""Between two looks at whether the sender is still there."""
_FOUR_TWO_ZERO = frozenset({"yuv420p", "yuvj420p"})


class _PeerSource:
    """The newest picture of whoever sends. Opens at once and waits for a sender, however long that takes."""

    kind: ClassVar[str]

    def __init__(self, target: str, wish: SourceWish) -> None:
        """Open it.

        Args:
            target: nothing: whoever comes is taken.
            wish: ``station`` is needed; pictures are fitted into ``size``.

        Raises:
            SourceError: no web server runs.
        """
        del target
        if wish.station is None:
            raise SourceError(f"pictures from {self.kind} need the web server", install_extra("webrtc"))
        self._inlet = self._inlet_of(wish.station)
        self._size, self._seq, self._closed = wish.size, -1, False
        self._fed = False
        self._info = SourceInfo(
            self._name(wish.station.url),
            wish.size or USUAL_SIZE,
            wish.fps or USUAL_FPS,
            live=True,
            patient=True,
        )

    @property
    def info(self) -> SourceInfo:
        """What the page asks a camera for: nobody has sent anything yet."""
        return self._info

    def _inlet_of(self, station: Station) -> Inlet:
        raise NotImplementedError

    def _name(self, url: str) -> str:
        raise NotImplementedError

    def read(self) -> Frame:
        """Wait for the next picture, of any size where none was wished for.

        Raises:
            SourceError: the sender has left, or this was closed (``fatal=False``).
        """
        while not self._closed:
            arrival = self._inlet.take(LOOK_S)
            if arrival is not None:
                self._fed = True
                self._seq += 1
                return Frame(self._seq, arrival.t_capture_s, letterbox(to_bgr(arrival), self._size))
            if self._fed and not self._inlet.who:
                break
        raise SourceError(f"{self.kind} sends no more", "start it again; it is taken as soon as it comes", fatal=False)

    def close(self) -> None:
        """Wait no longer."""
        self._closed = True


class BrowserSource(_PeerSource):
    """The camera of the browser that has the page open."""

    kind = "the browser"

    def _inlet_of(self, station: Station) -> Inlet:
        return station.browser

    def _name(self, url: str) -> str:
        return f"the camera of a browser at {url}"


class WhipSource(_PeerSource):
    """Whoever sends by WHIP (RFC 9725), such as OBS."""

    kind = "the WHIP client"

    def _inlet_of(self, station: Station) -> Inlet:
        return station.whip

    def _name(self, url: str) -> str:
        return f"whoever sends by WHIP to {url}/whip"


def to_bgr(arrival: Arrival) -> U8:
    """Convert a decoded picture.

    WebRTC's senders make BT.601, limited range, and say nothing about it; what a stream does name is obeyed. OpenCV
    takes a third of the time that FFmpeg's scaler does, and is right for exactly the usual kind.

    Args:
        arrival: any pixel format and size.

    Returns:
        (H, W, 3) uint8 BGR, C-contiguous, owned by the caller.
    """
    picture = arrival.picture
    usual = picture.format.name in _FOUR_TWO_ZERO and not (picture.width | picture.height) & 1
    if usual and picture.colorspace in _UNNAMED_OR_601 and picture.color_range != av.video.reformatter.ColorRange.JPEG:
        return cv2.cvtColor(picture.to_ndarray(), cv2.COLOR_YUV2BGR_I420)
    return np.ascontiguousarray(picture.reformat(format="bgr24").to_ndarray(), np.uint8)


_UNNAMED_OR_601 = frozenset({2, 5, 6})  # AVCOL_SPC_UNSPECIFIED, _BT470BG, _SMPTE170M (ITU-T H.273)
