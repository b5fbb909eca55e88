"""Keeps what a run paints in step with its settings, at once or as soon as it is made; knows no order and no page."""

from __future__ import annotations

import threading
from collections.abc import Callable

from realtime import app, config
from realtime.app.faces import make_look
from realtime.app.path import chosen_by
from realtime.budget import Budget
from realtime.config import Settings
from realtime.desk.messages import LIVE_KEYS
from realtime.desk.painting import Made, PaintShop
from realtime.errors import ConfigError, LiveError
from realtime.meter import Meter
from realtime.smoothing import cutoff_hz
from realtime.swappers import Look

PAINTED = ("swap", "masks", "enhance", "source")
"""Sections that painters are made from."""


class Appearance:
    """The settings of a run, and what obeys them. From any thread.

    Args:
        scene: what runs.
        networks: of the run.
        meter: of the run.
        lock: held around each decision, and while the two below are called.
        take_budget: given what chooses the quality from now on.
        tell: told in words what was done, or what was not and why; without words where only the state has changed.

    Attributes:
        settings: as they are wanted; what paints follows as soon as it is made.
        budget: that chooses the quality; ``None`` before the run has begun.
    """

    def __init__(
        self,
        scene: app.Scene,
        networks: app.Networks,
        meter: Meter,
        lock: threading.RLock,
        take_budget: Callable[[Budget], None],
        tell: Callable[[str, LiveError | None], None],
    ) -> None:
        self.settings = scene.settings
        self.budget: Budget | None = None
        self._painting, self._faces = scene.settings, scene.faces  # that what paints now was made from
        self._pipeline, self._works_ahead = scene.pipeline, networks.device.works_ahead
        self._lock, self._take_budget, self._tell = lock, take_budget, tell
        self._shop = PaintShop(networks, meter, lock, self._painted, self._refused)

    def set(self, key: str, value: object) -> None:
        """Change a setting of ``LIVE_KEYS``.

        Raises:
            ConfigError: it cannot be changed now, or does not take this value.
        """
        if key not in LIVE_KEYS:
            raise ConfigError(f"{key} cannot be changed while a run goes on", f"start again with --set {key}=...")
        with self._lock:
            self.settings = now = config.changed(self.settings, key, value, "the page")
            pipeline = self._pipeline
            pipeline.guard.on_lost, pipeline.guard.hold_s = now.faces.on_lost, now.faces.hold_s
            pipeline.tracker.cutoff_hz = cutoff_hz(now.tracking.smoothing)
            if key == "faces.which":
                pipeline.chooser.unpick(chosen_by(now))
            self._fit_budget()
            self._follow()

    def show_photos(self, paths: tuple[str, ...]) -> None:
        """Show the face of these photos; of the built-in one where there is none.

        Raises:
            ConfigError: everybody who was named has a face of their own.
        """
        with self._lock:
            faces = self.settings.faces
            if faces.map and not faces.only:
                raise ConfigError("everybody has a face of their own here", "start again without --map")
            source = self.settings.source.model_copy(update={"photos": paths})
            self.settings = self.settings.model_copy(update={"source": source})
            self._follow()

    def begin(self, budget: Budget) -> None:
        """The run begins with this budget; orders may have come before."""
        with self._lock:
            self.budget = budget
            self._fit_budget()

    def close(self) -> None:
        """Make nothing more; only after the last frame."""
        self._shop.close()

    def _follow(self) -> None:
        """Let the painters follow the settings: at once where they can, else by making others aside."""
        now, wanted = self.settings, self._shop.wanted
        if _made_from(now) == _made_from(self._painting):
            if self._relook(make_look(now)):
                self._shop.forget()
                self._painting = now
                return
        elif wanted is not None and _made_from(now) == _made_from(wanted):
            return  # they are being made, and take this look when they are there
        same_faces = now.swap.engine == self._painting.swap.engine and now.source == self._painting.source
        self._shop.want(now, self._faces if same_faces else None)

    def _relook(self, look: Look) -> bool:
        return all(swapper.relook(look) for swapper in self._pipeline.painters.swappers)

    def _painted(self, made: Made) -> None:
        """Called by the paint shop: what it made paints from the next frame on."""
        before, self._painting, self._faces = self._painting, made.settings, made.faces
        self._pipeline.painters = made.painters
        self._fit_budget()
        if make_look(self.settings) != make_look(made.settings):
            self._follow()  # a control was moved meanwhile
        other = made.settings.swap.engine != before.swap.engine
        self._tell(f"the face is made by {made.settings.swap.engine} now" if other else "", None)

    def _refused(self, error: LiveError) -> None:
        """Called by the paint shop: what paints goes on, and so do the settings that it was made from."""
        before = {part: getattr(self._painting, part) for part in PAINTED}
        self.settings = self.settings.model_copy(update=before)
        self._tell("what paints stays as it was", error)

    def _fit_budget(self) -> None:
        """Choose among the steps that what paints now has; where they are as before, what was learnt stays."""
        if self.budget is None:
            return
        swap = self._painting.swap.model_copy(update={"obstacles": self.settings.swap.obstacles})
        fitting = app.build_budget(self._painting.model_copy(update={"swap": swap}), works_ahead=self._works_ahead)
        if fitting.levels != self.budget.levels:
            self.budget = fitting
            self._take_budget(fitting)


def _made_from(settings: Settings) -> tuple[object, ...]:
    """What painters are made from, but for the look, which some can change."""
    return settings.swap.engine, settings.swap.own_mouth, settings.masks, settings.enhance, settings.source
