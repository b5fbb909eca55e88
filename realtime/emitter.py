"""Takes pictures to one sink at the sink's own pace; knows no other sink and no source."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np

from realtime.backoff import wait_s
from realtime.cadence import Cadence
from realtime.errors import SinkError
from realtime.mailbox import POLL_S, Channel, Handoff, Mailbox
from realtime.meter import Meter
from realtime.sinks import Sink, SinkInfo, even_size
from realtime.sources.fit import letterbox
from realtime.types import U8, Frame, Size

MakeCard = Callable[[Size, str, tuple[str, ...]], U8]
"""Draws a card: size, title, lines -> (H, W, 3) uint8 BGR."""
Card = tuple[str, tuple[str, ...]]
"""What a card says: title and lines."""

LOCKSTEP_DEPTH = 2
"""Pictures under way to an encoder in lockstep: it works on one while the next is made."""
RECORDING_DEPTH = 8
"""Pictures that a live recording may be behind (a slow disk); more are dropped and counted, not queued."""


class Emitter:
    """Owns one sink: paces it, fits pictures to it, opens it again, closes it.

    One thread calls ``step`` or ``run``; ``inbox``, ``show_card`` and ``cover`` may be used from others.

    Args:
        sink: opened; belongs to the emitter from now on.
        open_sink: opens it again after a failure that may pass.
        lockstep: every picture is written once, in order; the writer waits.
        meter: told of latency, drops and repeats, by the sink's name.
        make_card: draws what is shown while there is no picture, on sinks with a cadence.
        on_event: told in words that the sink failed, and that it is back.
        clock: seconds, that of ``Frame.t_capture_s``.

    Attributes:
        inbox: where the pictures are put; nothing in it belongs to the emitter alone, so nothing is painted into.
        error: why this sink was given up; ``None`` while it has not been.
    """

    def __init__(
        self,
        sink: Sink,
        open_sink: Callable[[], Sink],
        meter: Meter,
        *,
        lockstep: bool,
        make_card: MakeCard,
        on_event: Callable[[str], None],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._open_sink = open_sink
        self._sink: Sink | None = sink
        self._info = sink.info
        self._lockstep = lockstep
        self._meter = meter
        self._make_card = make_card
        self._on_event = on_event
        self._clock = clock
        self._cadence = Cadence(self._info.fps) if self._info.fps and not lockstep else None
        self._last: Frame | None = None  # fitted, as it was written last
        self._newest_s = 0.0  # latest capture time written: only a later one is a new picture
        self._cover: Card | None = None
        self._attempt = 0
        self._retry_s = 0.0
        self.inbox = _channel(self._info, lockstep=lockstep)
        self.error: SinkError | None = None

    @property
    def info(self) -> SinkInfo:
        """Of the sink opened last."""
        return self._info

    @property
    def ended(self) -> bool:
        """The inbox was closed and everything in it was written, or the sink was given up."""
        return self.inbox.ended

    def show_card(self, card: Card) -> None:
        """Show a card until the next picture comes; does nothing for a sink that takes only new pictures."""
        if self._cadence:
            # The stamp lies before every picture's: a card is never a new picture.
            self.inbox.put(Frame(0, 0.0, self._make_card(self._info.size, *card)))

    def cover(self, card: Card | None) -> None:
        """Show a card instead of every picture until ``None`` is said: also of those that wait here to be written."""
        self._cover = card
        if card:
            self.show_card(card)  # the last picture must not stand where no other comes

    def run(self) -> None:
        """Body of the emitter's thread: until the end of the inbox, then closes the sink."""
        try:
            while not self.ended:
                self.step(POLL_S)
        finally:
            self.close()

    def step(self, timeout_s: float) -> None:
        """Wait up to ``timeout_s`` for what is due, and write it.

        Raises:
            SinkClosed: the person closed the sink.
        """
        if self._sink is None:
            self._try_again(timeout_s)
        elif self._cadence:
            self._step_paced(self._cadence, timeout_s)
        elif (frame := self.inbox.get(timeout_s)) is not None:
            self._write_new(frame)

    def close(self) -> None:
        """Take nothing more and finish the sink. Safe to call twice.

        Raises:
            SinkError: what was written could not be finished.
        """
        self.inbox.close()
        sink, self._sink = self._sink, None
        if sink is not None:
            sink.close()

    def _step_paced(self, cadence: Cadence, timeout_s: float) -> None:
        early_s = cadence.due_s(fresh=True) - self._clock()
        if early_s > 0:  # leave it in the mailbox: what goes out then is the newest
            time.sleep(min(early_s, timeout_s))
            return
        repeat_in_s = cadence.due_s(fresh=False) - self._clock()
        frame = self.inbox.get(min(max(repeat_in_s, 0.0), timeout_s) if self._last else timeout_s)
        if frame is not None:
            cadence.beat(self._clock(), fresh=True)
            self._write_new(frame)
        elif self._last and not self.ended and self._clock() >= cadence.due_s(fresh=False):
            cadence.beat(self._clock(), fresh=False)
            self._meter.count(f"repeated: {self._info.name}")
            self._write(self._last)

    def _write_new(self, frame: Frame) -> None:
        size = even_size(frame.size) if self._info.any_size else self._info.size
        self._last = fitted = self._covered(replace(frame, pixels=fit(frame.pixels, size)))
        if self._write(fitted) and frame.t_capture_s > self._newest_s:
            self._newest_s = frame.t_capture_s
            self._meter.delivered(self._info.name, (self._clock() - frame.t_capture_s) * 1e3)

    def _covered(self, frame: Frame) -> Frame:
        cover = self._cover
        return replace(frame, pixels=self._make_card(frame.size, *cover)) if cover else frame

    def _write(self, frame: Frame) -> bool:
        """Write to the sink; on a failure put it aside. True when the picture arrived."""
        if self._sink is None:
            return False
        try:
            self._sink.write(frame)
        except SinkError as error:
            self._failed(error)
            return False
        self._attempt = 0
        return True

    def _failed(self, error: SinkError) -> None:
        """Close the sink, for good or to open it again later."""
        sink, self._sink = self._sink, None
        if error.fatal or self._lockstep:
            self.error = error
            self.inbox.close()
            while self.inbox.get(0) is not None:  # what can no longer be written
                self._meter.drop(self._info.name)
        else:
            self._wait_to_retry(error)
        if sink is not None:
            with suppress(SinkError):  # the failure is known already, and the first one counts
                sink.close()

    def _wait_to_retry(self, error: SinkError) -> None:
        pause_s = wait_s(self._attempt)
        self._attempt += 1
        self._retry_s = self._clock() + pause_s
        self._meter.count(f"lost: {self._info.name}")
        self._on_event(f"{self._info.name} lost: {error.message}; trying again in {pause_s:g} s")

    def _try_again(self, timeout_s: float) -> None:
        if self.inbox.get(min(timeout_s, max(0.0, self._retry_s - self._clock()))) is not None:
            self._meter.drop(self._info.name)
        if self.ended or self._clock() < self._retry_s:
            return
        try:
            self._sink = self._open_sink()
        except SinkError as error:
            self._wait_to_retry(error)
            return
        self._info = self._sink.info
        self._last = None  # it may have another size now
        self._on_event(f"{self._info.name} is back")


def _channel(info: SinkInfo, *, lockstep: bool) -> Channel[Frame]:
    if lockstep:
        return Handoff(LOCKSTEP_DEPTH, wait=True)
    return Mailbox() if info.live else Handoff(RECORDING_DEPTH, wait=False)


def fit(pixels: U8, size: Size) -> U8:
    """Bring a picture to a sink's size without stretching it.

    A sink that needs even sizes gets a picture with an odd one cut by its last row or column, not resampled. Anything
    else is letterboxed. What is made is a new array each time: sinks may keep what they are given.

    Args:
        pixels: (H, W, 3) uint8; only read.
        size: wanted.

    Returns:
        (size.h, size.w, 3) uint8, C-contiguous; ``pixels`` itself when it has the size.
    """
    if even_size(Size(pixels.shape[1], pixels.shape[0])) == size:
        return np.ascontiguousarray(pixels[: size.h, : size.w])
    return letterbox(pixels, size)
