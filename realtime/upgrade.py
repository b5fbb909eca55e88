"""Makes something better ready while a run goes on, and hands it over between two frames; knows no GPU and no model.

For a plan of TensorRT, which takes minutes to build, while ONNX Runtime or the mesh serves. Nothing that goes wrong
here ends a run: what serves goes on serving, and a person is told why.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from engines.building import BuildSettings, Progress, StoppedError, build
from engines.card import ModelCard
from realtime.errors import LiveError

T = TypeVar("T")
TOLD_EVERY = 0.25
"""Of a build, between two lines about it."""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that is built.

    Attributes:
        name: for people, e.g. "a TensorRT plan for inswapper_128".
        build: blocks until it is there; is given whom to tell the share that is done, 0..1, and whom to ask, ten times
            a second, whether to stop. Then it raises ``StoppedError``.
    """

    name: str
    build: Callable[[Callable[[float], None], Callable[[], bool]], None]


def plan_of(card: ModelCard, settings: BuildSettings) -> Part:
    """Describe the building of a plan.

    Args:
        card: of the model, as published.
        settings: how it is built.
    """

    def run(moved: Callable[[float], None], stopped: Callable[[], bool]) -> None:
        def told(progress: Progress) -> None:
            moved(progress.share)

        build(card, settings, told, stopped)

    return Part(f"a TensorRT plan for {card.name}", run)


class Upgrade(Generic[T]):
    """Builds parts one after another in a thread of its own, opens what uses them there, and hands that over.

    A part that cannot be built is left out, with its reason; where none can, nothing is opened. A context: at its end
    the thread has ended, and what was built by then stays on the disk for the next run.

    Args:
        parts: to build, >= 1.
        open_new: makes what uses them; called once, in the thread, so whatever belongs to a device enters
            ``device.attached`` itself.
        tell: told in words how far it is and what went wrong. From the thread.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        open_new: Callable[[], T],
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._parts, self._open_new, self._tell = parts, open_new, tell
        self._stop = threading.Event()
        self._ready: queue.SimpleQueue[T] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="upgrade", daemon=True)
        self._told = 0.0

    def __enter__(self) -> Upgrade[T]:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def poll(self) -> T | None:
        """Take what is ready, between two frames; never waits.

        Returns:
            It, once, and the caller's from then on; None before and after.
        """
        try:
            return self._ready.get_nowait()
        except queue.Empty:
            return None

    def close(self) -> None:
        """Stop building and wait for the thread. Safe to call twice.

        A build ends at once; what is being loaded is waited for, because its device cannot be closed meanwhile. What
        nobody took is freed with the models that it was made of, by whoever opened them.
        """
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        built = [part.name for part in self._parts if self._built(part)]
        if not built or self._stop.is_set():
            return
        try:
            self._ready.put(self._open_new())
        except LiveError as error:
            self._tell(f"{' and '.join(built)} cannot be used: {error.message}; {error.hint}")
        else:
            self._tell(f"from now on {' and '.join(built)} {'is' if len(built) == 1 else 'are'} used")

    def _built(self, part: Part) -> bool:
        if self._stop.is_set():
            return False
        self._told = -TOLD_EVERY
        try:
            part.build(lambda share: self._moved(part, share), self._stop.is_set)
        except StoppedError:
            return False
        except LiveError as error:
            self._tell(f"{part.name} was not built: {error.message}; {error.hint}")
            return False
        return True

    def _moved(self, part: Part, share: float) -> None:
        if share - self._told >= TOLD_EVERY:
            self._told = share
            self._tell(f"building {part.name}: {share:.0%}")
