"""A video file as a camera, or as work to be done; decides when a picture is due, leaves decoding to ``reel``."""

from __future__ import annotations

import time
from fractions import Fraction
from pathlib import Path

import av

from realtime.errors import SourceError
from realtime.sources import SourceInfo, SourceWish
from realtime.sources.decoding import to_bgr
from realtime.sources.fit import letterbox
from realtime.sources.handle import Handle
from realtime.sources.reel import Reel
from realtime.sources.timeline import resample
from realtime.types import Frame


class VideoSource:
    """The pictures of a file.

    Paced (``wish.paced``), it behaves like a camera: a picture is handed over when its time has come, and what became
    due while the reader was away is left out (gaps in ``seq``). When decoding itself is too slow the clock waits
    instead: the film runs slower, but it runs. Not paced, every picture comes as soon as it is asked for.

    Single-threaded decoding and conversion of H.264 took 2.4 ms for a 1280x720 picture on one core of a 2-core
    server, 0.5 ms of it for the conversion to BGR; with read-ahead (not paced) 2.0 ms.
    """

    def __init__(self, target: str, wish: SourceWish) -> None:
        """Open the file and decode its first picture.

        Args:
            target: path of the file.
            wish: ``size``, ``fps``, ``loop`` and ``paced`` are used.

        Raises:
            SourceError: missing, empty, not a video, sound only, or no picture in it can be decoded.
        """
        reel = Reel(Path(target), loop=wish.loop, read_ahead=not wish.paced)
        self._handle = Handle(reel.path.name, reel, Reel.close)
        self._wish = wish
        pictures = reel.pictures()
        self._interval_s = 1 / wish.fps if wish.fps else reel.interval_s
        self._pictures = resample(pictures, wish.fps, reel.interval_s) if wish.fps else pictures
        self._ahead = next(self._pictures, None)
        if self._ahead is None:
            self._handle.close()
            why = reel.damage or "it holds none"
            raise SourceError(f"no picture of {target} can be decoded: {why}", "copy or export the file again")
        self._start_s: float | None = None
        self._seq = -1
        self._told_damage = False
        self._info = _info(reel, self._ahead[1], wish)

    @property
    def info(self) -> SourceInfo:
        """What the file holds and how it is played."""
        return self._info

    def read(self) -> Frame | None:
        """Hand over the next picture, at its time when paced.

        Returns:
            The frame, or ``None`` at the end.

        Raises:
            SourceError: the file was damaged (once, after every picture that could be read), or closed
                (``fatal=False``).
        """
        with self._handle.use() as reel:
            asked_s = time.perf_counter()
            picture = self._advance()
            if picture is None:
                self._tell_damage(reel)
                return None
            if not self._wish.paced:
                pixels = letterbox(to_bgr(picture[1]), self._wish.size)
                return Frame(self._seq, time.perf_counter(), pixels, picture[0])
            if self._start_s is None:
                self._start_s = asked_s
            while self._ahead is not None and self._start_s + self._ahead[0] <= asked_s:
                picture = self._advance() or picture
            return self._on_time(picture, asked_s, self._start_s)

    def close(self) -> None:
        """Close the file; a sleeping reader gets an error within 0.1 s."""
        self._handle.close()

    def _advance(self) -> tuple[float, av.VideoFrame] | None:
        """Take the next picture and decode the one after it, so that it is known when that is due."""
        picture, self._ahead = self._ahead, self._ahead and next(self._pictures, None)
        self._seq += picture is not None
        return picture

    def _on_time(self, picture: tuple[float, av.VideoFrame], asked_s: float, start_s: float) -> Frame:
        due_s = start_s + picture[0]
        pixels = letterbox(to_bgr(picture[1]), self._wish.size)
        # Time that passed since the picture was both wanted and due went into decoding: the reader is not to blame.
        slow_s = time.perf_counter() - max(asked_s, due_s)
        if slow_s > self._interval_s:
            self._start_s = start_s + slow_s
        return Frame(self._seq, self._handle.sleep_until(due_s), pixels)

    def _tell_damage(self, reel: Reel) -> None:
        error = reel.damage_error()
        if error is not None and not self._told_damage:
            self._told_damage = True
            raise error


def _info(reel: Reel, first: av.VideoFrame, wish: SourceWish) -> SourceInfo:
    pixels = to_bgr(first)
    stored, shown = Frame(0, 0.0, pixels).size, Frame(0, 0.0, letterbox(pixels, wish.size)).size
    rate = Fraction(wish.fps).limit_denominator(1001) if wish.fps else reel.rate
    length = f", {reel.promised_s:.1f} s" if reel.promised_s else ""
    facts = [f"{reel.codec} {stored} at {float(reel.rate):.4g} frames/s{length}"]
    if shown != stored:
        facts.append(f"shown as {shown}")
    if wish.fps and abs(reel.rate / rate - 1) > 0.01:
        facts.append(f"resampled to {wish.fps:.4g} frames/s")
    if reel.varies and not wish.fps:
        facts.append("the frame rate varies; ask for a fixed one to keep recorded sound in step")
    return SourceInfo(
        name=reel.path.name,
        size=shown,
        fps=float(rate),
        live=wish.paced,
        facts=tuple(facts),
        frames=0 if wish.loop else round((reel.promised_s or 0) * rate),
        audio_path=str(reel.path) if reel.has_audio else None,
        audio_rate=rate if reel.has_audio else Fraction(0),
    )
