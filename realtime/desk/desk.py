"""The desk of a run, as whoever steers it sees it; knows no page and no thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from realtime.desk.messages import Event, Figures, Order, State
from realtime.types import U8


class Desk(Protocol):
    """Steers one run. Every method may be called from any thread, and none waits for a frame."""

    def order(self, order: Order) -> None:
        """Change something between two frames.

        What takes longer (a network that is loaded, a camera that is opened) is done aside while everything goes on as
        before, and an event says when it is there.

        Raises:
            LiveError: it cannot be done, and nothing was changed.
        """

    def state(self) -> State:
        """Everything that changes seldom."""

    def figures(self) -> Figures:
        """How it goes at this moment."""

    def listen(self, tell: Callable[[Event], None]) -> Callable[[], None]:
        """Be told of each new state and note, in whichever thread it happens: ``tell`` must be quick.

        Returns:
            What ends it.
        """

    def keep_photo(self, name: str, data: bytes) -> str:
        """Take a photo that was sent. It is checked as every photo is, and kept in memory or in a file for this run.

        Args:
            name: of the file, for people; never used as a path.
            data: as it was sent: JPEG, PNG, WebP ...

        Returns:
            What ``UsePhoto`` takes.

        Raises:
            IdentityError: it cannot be used, with the reason.
        """

    def before(self) -> U8 | None:
        """The latest picture as it came, before anything was swapped: for the person who steers, never for an output.

        Asked for a picture at a time; while nobody asks, nothing is copied. May wait for the next frame, up to 0.2 s.

        Returns:
            (H, W, 3) uint8 BGR, the caller's own; ``None`` when no frame came.
        """
