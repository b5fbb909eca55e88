"""Makes other painters while a run goes on, aside, and hands them over between two frames; knows no page."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from realtime import app
from realtime.app.networks import open_models
from realtime.app.path import build_budget, build_painters
from realtime.budget import Budget
from realtime.config import Settings
from realtime.errors import LiveError
from realtime.meter import Meter
from realtime.pipeline import Pipeline

RETIRE_FRAMES = 4
"""New frames after which nothing works with the painters before any more; two are in flight at most."""
LOOK_S = 0.05

Done = Callable[[Settings, "app.SourceFaces", Budget], None]
Failed = Callable[[LiveError], None]


class PaintShop:
    """One thread that makes painters, the newest wish only: who drags a control wants where it ends.

    Args:
        pipeline: gets them.
        networks: of the run: its device paints, and stays.
        meter: of the run.
        done: told of the settings, faces and budget that go with the new painters. From the thread.
        failed: told why there are none; the ones before go on. From the thread.
    """

    def __init__(self, pipeline: Pipeline, networks: app.Networks, meter: Meter, done: Done, failed: Failed) -> None:
        self._pipeline, self._networks, self._meter = pipeline, networks, meter
        self._done, self._failed = done, failed
        self._wish: tuple[Settings, app.SourceFaces | None] | None = None
        self._changed = threading.Condition()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._models = ExitStack()  # of the painters that paint now, where they were made here

    def want(self, settings: Settings, faces: app.SourceFaces | None) -> None:
        """Make painters; a wish that was not begun is forgotten. Any thread.

        Args:
            settings: to make them from.
            faces: to show; ``None`` to read the photos anew.
        """
        with self._changed:
            if self._closed:
                return
            self._wish = (settings, faces)
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="paint shop", daemon=True)
                self._thread.start()

    def forget(self) -> None:
        """Forget a wish that was not begun. Any thread."""
        with self._changed:
            self._wish = None

    def close(self) -> None:
        """Make no more, and free what was made; only after the last frame."""
        with self._changed:
            self._closed, self._wish = True, None
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
        self._models.close()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wish or self._closed)
                wish, self._wish = self._wish, None
            if wish is None:
                return
            try:
                self._make(*wish)
            except LiveError as error:
                self._failed(error)

    def _make(self, settings: Settings, faces: app.SourceFaces | None) -> None:
        with ExitStack() as on_failure:
            models = on_failure.enter_context(open_models(settings, self._networks.device))
            networks = replace(self._networks, models=models)
            with self._networks.device.attached():
                faces = faces or self._read(settings, networks)
                painters = build_painters(settings, networks, faces, self._meter)
            before, self._models = self._models, on_failure.pop_all()
        budget = build_budget(settings, works_ahead=self._networks.device.works_ahead)
        self._pipeline.painters = painters
        self._done(settings, faces, budget)
        self._wait_for_frames()
        before.close()

    def _read(self, settings: Settings, networks: app.Networks) -> app.SourceFaces:
        """Read the photos with a detector and a mesh network of its own: those of the run are at work."""
        aside = settings.model_copy(update={"engine": settings.engine.model_copy(update={"device": "cpu"})})
        with app.open_networks(aside) as own:
            return app.load_faces(settings, replace(networks, detector=own.detector, mesh_net=own.mesh_net))

    def _wait_for_frames(self) -> None:
        last = self._meter.frames + RETIRE_FRAMES
        with self._changed:
            while self._meter.frames < last and not self._closed:
                self._changed.wait(LOOK_S)
