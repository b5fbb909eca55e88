"""Makes other painters while a run goes on, aside, and hands them over between two frames; knows no page."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace

from realtime import app
from realtime.app.networks import open_models
from realtime.app.path import build_painters
from realtime.config import Settings
from realtime.errors import LiveError
from realtime.meter import Meter
from realtime.pipeline import Painters

RETIRE_FRAMES = 4
"""New frames after which nothing works with the painters before any more; two are in flight at most."""
LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class Made:
    """What was wished for.

    Attributes:
        settings: that it was made from.
        faces: that are shown.
        painters: that show them.
    """

    settings: Settings
    faces: app.SourceFaces
    painters: Painters


@dataclass(frozen=True, slots=True)
class _Wish:
    settings: Settings
    faces: app.SourceFaces | None


class PaintShop:
    """One thread that makes painters, the newest wish only: who drags a control wants where it ends.

    Args:
        networks: of the run: its device paints, and stays.
        meter: of the run.
        lock: held while ``done`` and ``failed`` are called, so that nobody forgets meanwhile what was made.
        done: given what was made; from then on the frames have to begin with it. From the thread.
        failed: told why there is nothing new; what paints goes on. From the thread.
    """

    def __init__(
        self,
        networks: app.Networks,
        meter: Meter,
        lock: threading.RLock,
        done: Callable[[Made], None],
        failed: Callable[[LiveError], None],
    ) -> None:
        self._networks, self._meter = networks, meter
        self._done, self._failed = done, failed
        self._next: _Wish | None = None
        self._making: _Wish | None = None  # None as well where it was forgotten meanwhile
        self._changed = threading.Condition(lock)
        self._closed = False
        self._thread: threading.Thread | None = None
        self._models = ExitStack()  # of the painters that paint now, where they were made here

    @property
    def wanted(self) -> Settings | None:
        """Settings of the newest wish that is not fulfilled yet. Any thread."""
        with self._changed:
            wish = self._next or self._making
            return wish.settings if wish else None

    def want(self, settings: Settings, faces: app.SourceFaces | None) -> None:
        """Make painters; a wish that was not begun is forgotten. Any thread.

        Args:
            settings: to make them from.
            faces: to show; ``None`` to read the photos anew.
        """
        with self._changed:
            if self._closed:
                return
            self._next = _Wish(settings, faces)
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="paint shop", daemon=True)
                self._thread.start()

    def forget(self) -> None:
        """Forget every wish; what is being made for one is thrown away. Any thread."""
        with self._changed:
            self._next = self._making = None

    def close(self) -> None:
        """Make no more, and free what was made; only after the last frame.

        A network that is being loaded is waited for, because its device cannot be closed meanwhile.
        """
        with self._changed:
            self._closed = True
            self.forget()
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
        self._models.close()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._next or self._closed)
                wish, self._next = self._next, None
                self._making = wish
            if wish is None:
                return
            try:
                self._make(wish)
            except LiveError as error:
                with self._changed:
                    if self._is_wanted(wish) and self._next is None:  # else there is a newer wish, or none
                        self._making = None
                        self._failed(error)

    def _make(self, wish: _Wish) -> None:
        with ExitStack() as opened:
            models = opened.enter_context(open_models(wish.settings, self._networks.device))
            networks = replace(self._networks, models=models)
            with self._networks.device.attached():
                faces = wish.faces or self._read(wish.settings, networks)
                if not self._is_wanted(wish):
                    return
                made = Made(wish.settings, faces, build_painters(wish.settings, networks, faces, self._meter))
            with self._changed:
                if not self._is_wanted(wish):
                    return
                self._making = None
                self._done(made)
            before, self._models = self._models, opened.pop_all()
        self._wait_for_frames()
        before.close()

    def _is_wanted(self, wish: _Wish) -> bool:
        return self._making is wish

    def _read(self, settings: Settings, networks: app.Networks) -> app.SourceFaces:
        """Read the photos with a detector and a mesh network of its own: those of the run are at work."""
        aside = settings.model_copy(update={"engine": settings.engine.model_copy(update={"device": "cpu"})})
        with app.open_networks(aside) as own:
            return app.load_faces(settings, replace(networks, detector=own.detector, mesh_net=own.mesh_net))

    def _wait_for_frames(self) -> None:
        last = self._meter.frames + RETIRE_FRAMES
        while True:
            with self._changed:
                if self._meter.frames >= last or self._closed:
                    return
                self._changed.wait(LOOK_S)
