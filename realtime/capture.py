"""Keeps one source giving pictures: reads, watches, gives up a frozen one and opens it again; knows no device."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from realtime.backoff import wait_s
from realtime.errors import LiveError, SourceError
from realtime.mailbox import Channel, Handoff, Mailbox
from realtime.meter import Meter
from realtime.sources import Source, SourceInfo
from realtime.types import Frame

STALL_S = 2.0
"""A live source that is silent for longer is frozen. Cameras in the dark still give 5 pictures/s."""
FIRST_PICTURE_S = 15.0
"""The same before its first picture: cameras warm up, streams wait for a keyframe."""
HEALTHY_S = 5.0
"""A source that gave pictures for so long is well: when it is lost, waiting starts at the shortest again."""
AHEAD = 2
"""Pictures that a source which waits for its reader may be ahead."""

OpenSource = Callable[[SourceInfo | None], Source]
"""Opens the source: with ``None`` the first time, later with what was open before (to find the same device again)."""
StartThread = Callable[[str, Callable[[], None]], object]
"""Starts a named daemon thread; an exception in it ends the run."""


class _Reader:
    """One opening of the source, from the call that opens it to its end, in a thread of its own."""

    def __init__(self, number: int, open_source: Callable[[], Source]) -> None:
        self.number = number
        self.open_source = open_source
        self.source: Source | None = None
        self.live = False
        self.patient = False
        self.abandoned = False  # the supervisor has given it up: what it still reads is thrown away
        self.heard_s: float | None = None  # when it was opened, or gave its last picture
        self.first_s: float | None = None  # when it gave its first picture
        self.offset = 0  # added to the source's own numbers
        self.finished = False
        self.error: LiveError | None = None


class Capture:
    """The supervisor of one source.

    Reading happens in a thread, because a device may block for as long as it likes; everything else happens in
    ``tend``, which never blocks and is called by the loop's main thread several times a second. A reader that hangs is
    abandoned: its source is closed from outside, its thread ends whenever the device lets it.

    Args:
        open_source: see ``OpenSource``; called in the reader's thread.
        start_thread: see ``StartThread``.
        meter: told of captured pictures and drops.
        on_event: told in words that the source was lost, and that it is back.
        stall_s: silence of a live source, in seconds, that means frozen.
        clock: seconds, that of ``Frame.t_capture_s``.

    Attributes:
        info: of the source opened last; ``None`` until the first one is open.
        out: where the pictures are read, from the moment that ``info`` is there: the newest only when the source is
            live, every one when it waits. Closed at the end of the source.
        lost: why there is no source at the moment, for people; empty while there is one.
    """

    def __init__(
        self,
        open_source: OpenSource,
        start_thread: StartThread,
        meter: Meter,
        *,
        on_event: Callable[[str], None],
        stall_s: float = STALL_S,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._open_source = open_source
        self._start_thread = start_thread
        self._meter = meter
        self._on_event = on_event
        self._stall_s = stall_s
        self._clock = clock
        self._delivery = threading.Lock()  # no picture of an abandoned reader comes after one of its successor
        self._next_seq = 0
        self._attempt = 0
        self._retry_s: float | None = None  # when the source is opened again; None while a reader is at work
        self._closed = False
        self._before: SourceInfo | None = None  # what the source was opened as, to find the same device again
        self._change: tuple[OpenSource, SourceInfo | None, Callable[[LiveError | None], None]] | None = None
        self.info: SourceInfo | None = None
        self.out: Channel[Frame] = Mailbox()
        self.lost = ""
        self._reader = self._start_reader(0)

    def tend(self, now_s: float) -> None:
        """Look after the source; never blocks.

        Raises:
            SourceError: it could not be opened at all, or is lost for good.
        """
        reader = self._reader
        if self._closed or self._goes_on_changing(reader):
            return
        if self._retry_s is not None:
            if now_s >= self._retry_s:
                self._retry_s = None
                self._reader = self._start_reader(reader.number + 1)
        elif reader.finished:
            self._after_end(reader, now_s)
        elif self._is_frozen(reader, now_s):
            self._abandon(reader)
            self._lose(reader, f"nothing came for {self._stall_s:g} s", now_s)
        elif self.lost and reader.first_s is not None:
            self.lost = ""
            self._on_event(f"{self._name} is back")

    def change(self, open_source: OpenSource, told: Callable[[LiveError | None], None]) -> None:
        """Read another source from now on; where it cannot be opened, go back to the one before. In ``tend``'s thread.

        Args:
            open_source: opens it; it has to be live.
            told: that it is open, or why it is not: at once where the present one is read in lockstep.
        """
        if self._reader.source is not None and not self._reader.live:
            told(SourceError("a conversion keeps its input", "start another run", fatal=False))
            return
        if self._change is not None:
            self._change[2](SourceError("another input was chosen meanwhile", "choose again", fatal=False))
            self._change = (*self._change[:2], told)
        else:
            self._change = (self._open_source, self._before, told)
        self._open_anew(open_source, None)

    def _open_anew(self, open_source: OpenSource, before: SourceInfo | None) -> None:
        self._abandon(self._reader)
        self._open_source, self._before = open_source, before
        self._attempt, self._retry_s = 0, None
        self._reader = self._start_reader(self._reader.number + 1)

    def _goes_on_changing(self, reader: _Reader) -> bool:
        """See how far a change is; says whether there is nothing else to look after."""
        if self._change is None:
            return False
        open_source, before, told = self._change
        if reader.source is not None:
            self._change, self.lost = None, ""
            told(None)
        elif reader.finished:
            self._change = None
            self._open_anew(open_source, before)
            told(reader.error)
        return True

    def close(self) -> None:
        """End reading now, also when the device blocks; takes nothing more. Safe to call twice, from any thread."""
        self._closed = True
        self._abandon(self._reader)
        self.out.close()

    @property
    def _name(self) -> str:
        return self.info.name if self.info else "the source"

    def _is_frozen(self, reader: _Reader, now_s: float) -> bool:
        if reader.heard_s is None or not reader.live or reader.patient:
            return False
        patience_s = self._stall_s if reader.first_s is not None else max(self._stall_s, FIRST_PICTURE_S)
        return now_s - reader.heard_s > patience_s

    def _after_end(self, reader: _Reader, now_s: float) -> None:
        error = reader.error
        if error is None:
            self.close()
            return
        # Once a live source has worked, opening it again is tried for as long as it takes: it may be unplugged.
        opening_again = reader.source is None and self.info is not None
        fatal = not isinstance(error, SourceError) or error.fatal
        if not opening_again and (fatal or not reader.live):
            raise error
        self._lose(reader, error.message, now_s)

    def _lose(self, reader: _Reader, why: str, now_s: float) -> None:
        if reader.first_s is not None and now_s - reader.first_s > HEALTHY_S:
            self._attempt = 0
        pause_s = wait_s(self._attempt)
        self._attempt += 1
        self._retry_s = now_s + pause_s
        if why != self.lost:  # once for each reason, not for each try
            self._on_event(f"{self._name} lost: {why}; trying again in {pause_s:g} s")
        self.lost = why
        self._meter.count("source lost")

    def _abandon(self, reader: _Reader) -> None:
        with self._delivery:
            reader.abandoned = True
        if reader.source is not None:
            reader.source.close()

    def _start_reader(self, number: int) -> _Reader:
        # Bound here: a reader that is given up before it has begun must not open what its successor opens.
        reader = _Reader(number, partial(self._open_source, self._before))
        self._start_thread(f"capture-{number}", lambda: self._read(reader))
        return reader

    def _read(self, reader: _Reader) -> None:
        """Body of a reader's thread."""
        try:
            source = reader.open_source()
            try:
                self._opened(reader, source)
                while not reader.abandoned and (frame := source.read()) is not None:
                    self._deliver(reader, frame)
            finally:
                source.close()
        except LiveError as error:
            if reader.number == 0 and not isinstance(error, SourceError):
                raise
            reader.error = error
        reader.finished = True

    def _opened(self, reader: _Reader, source: Source) -> None:
        with self._delivery:
            if reader.abandoned:
                return
            reader.source, reader.live, reader.patient = source, source.info.live, source.info.patient
            reader.offset = self._next_seq
            reader.heard_s = self._clock()
            if self.info is None and not reader.live:
                self.out = Handoff(AHEAD, wait=True)
            self.info = self._before = source.info

    def _deliver(self, reader: _Reader, frame: Frame) -> None:
        now_s = self._clock()
        if reader.offset:
            frame = replace(frame, seq=frame.seq + reader.offset)
        if reader.first_s is None:
            reader.first_s = now_s
        if not reader.live:  # blocks until there is room
            self._note(now_s, self.out.put(frame))
            return
        with self._delivery:
            if not reader.abandoned:
                reader.heard_s = now_s
                self._next_seq = frame.seq + 1
                self._note(now_s, self.out.put(frame))

    def _note(self, now_s: float, lost: int) -> None:
        self._meter.captured(now_s)
        if not self._closed:  # what is still under way when the run ends is not dropped for lack of time
            self._meter.drop("capture", lost)
