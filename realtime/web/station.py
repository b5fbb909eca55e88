"""Where a run and the network meet: pictures that peers send, and the picture that they see; knows no protocol.

Both ends keep the newest picture only. A reader or viewer that is too slow misses pictures; it never falls behind.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import av

from realtime.mailbox import Mailbox
from realtime.types import Frame

DELAY_SHARE = 0.1
"""How far one picture moves the delay that sound is held back by: half a second at 30 pictures/s."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A picture that a peer has sent.

    Attributes:
        picture: as its decoder made it; only read.
        t_capture_s: ``time.perf_counter()`` when the decoder handed it over.
    """

    picture: av.VideoFrame
    t_capture_s: float


class Seat:
    """One peer's right to send pictures: from its first picture until it leaves or another peer takes its place.

    Attributes:
        who: the peer, for people: "a browser at 127.0.0.1".
    """

    def __init__(self, who: str, inlet: Inlet, on_displaced: Callable[[], None]) -> None:
        self.who = who
        self._inlet = inlet
        self._on_displaced = on_displaced

    def offer(self, picture: av.VideoFrame) -> None:
        """Leave a picture, in place of an unread one; never waits. Any thread; nothing happens once displaced."""
        self._inlet.put(self, Arrival(picture, time.perf_counter()))

    def leave(self) -> None:
        """Send no more. Safe to call twice."""
        self._inlet.vacate(self)

    def displaced(self) -> None:
        """Called by the inlet when another peer takes the place."""
        self._on_displaced()


class Inlet:
    """The pictures of whichever peer sends here: one at a time, and the newest one wins (a page that is loaded again).

    Attributes:
        name: for people: "browser", "WHIP".
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = threading.Lock()
        self._seat: Seat | None = None
        self._box: Mailbox[Arrival] = Mailbox()

    @property
    def who(self) -> str:
        """The peer that sends, empty when none does. Any thread."""
        seat = self._seat
        return seat.who if seat else ""

    def occupy(self, who: str, on_displaced: Callable[[], None]) -> Seat:
        """Give a peer the place; whoever had it is told by its ``on_displaced``, in the thread of this call."""
        seat = Seat(who, self, on_displaced)
        with self._lock:
            before, self._seat = self._seat, seat
        if before is not None:
            before.displaced()
        return seat

    def put(self, seat: Seat, arrival: Arrival) -> None:
        """See :meth:`Seat.offer`."""
        with self._lock:
            if seat is self._seat:
                self._box.put(arrival)

    def vacate(self, seat: Seat) -> None:
        """See :meth:`Seat.leave`."""
        with self._lock:
            if seat is self._seat:
                self._seat = None

    def take(self, timeout_s: float) -> Arrival | None:
        """The newest picture that was not taken; waits up to ``timeout_s`` seconds for one. One reader."""
        return self._box.get(timeout_s)


class Outlet:
    """The picture that viewers see. One writer, any number of watchers, the newest picture only."""

    def __init__(self) -> None:
        self._watchers: tuple[Callable[[], None], ...] = ()
        self._lock = threading.Lock()
        self.latest: Frame | None = None
        """What was shown last; its pixels are only read. Any thread."""
        self.viewers: tuple[str, ...] = ()
        """Who watches, for people; kept by whoever connects them. Any thread."""
        self.delay_s = 0.0
        """From the arrival of pictures to ``show``, smoothed: what sound has to be held back by. Any thread."""

    def show(self, frame: Frame) -> None:
        """Show a picture from now on; never waits, and copies nothing: nobody writes to ``frame.pixels`` any more."""
        delay_s = time.perf_counter() - frame.t_capture_s
        if frame.t_capture_s and (self.latest is None or frame.t_capture_s > self.latest.t_capture_s):
            self.delay_s += DELAY_SHARE * (delay_s - self.delay_s)
        self.latest = frame
        for wake in self._watchers:
            wake()

    def watch(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call ``wake`` after each ``show``, in the writer's thread: it must only wake another one.

        Returns:
            What ends it.
        """
        with self._lock:
            self._watchers = (*self._watchers, wake)

        def end() -> None:
            with self._lock:
                self._watchers = tuple(other for other in self._watchers if other is not wake)

        return end


@dataclass(frozen=True, slots=True)
class Station:
    """All of it. Made before the loop runs, lives as long as the web server.

    Attributes:
        url: of the page, for people: "http://127.0.0.1:8088".
        browser: pictures of a browser's camera.
        whip: pictures of a WHIP client such as OBS.
        outlet: what viewers see.
    """

    url: str = ""
    browser: Inlet = field(default_factory=lambda: Inlet("browser"))
    whip: Inlet = field(default_factory=lambda: Inlet("WHIP"))
    outlet: Outlet = field(default_factory=Outlet)
