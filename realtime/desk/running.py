"""The desk of a run that goes on: carries orders out, and says how things stand; knows no page and no transport."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from realtime import app, config
from realtime.app.path import BLANK
from realtime.budget import Budget
from realtime.controls import Controls
from realtime.desk.album import Album
from realtime.desk.appearance import Appearance
from realtime.desk.choices import engines, inputs, models
from realtime.desk.messages import (
    AddOutput,
    Blank,
    Choice,
    Event,
    Figures,
    Note,
    Order,
    Output,
    Pick,
    Record,
    RemoveOutput,
    Save,
    SetValue,
    State,
    Unpick,
    UseInput,
    UsePhoto,
)
from realtime.desk.places import Places
from realtime.desk.standing import face_at, figures_of, limits, values_of
from realtime.desk.tap import Tap
from realtime.errors import ConfigError, LiveError
from realtime.last_run import with_full_paths
from realtime.meter import Meter
from realtime.types import U8

LOOKING_S = 0.2
"""How long the end waits for a system that lists its cameras slowly; then that thread is left behind."""
NOTES = 20
"""Of the latest notes, told to whoever comes later."""


class RunningDesk:
    """See :class:`realtime.desk.desk.Desk`. A context: at its end its thread has ended and its photos are gone.

    From Python, with ``session.play(..., on_desk=...)``::

        def steer(desk: Desk) -> None:
            desk.order(SetValue(key="swap.likeness", value=0.5))
            desk.order(Blank(on=True))

    Args:
        scene: what runs.
        networks: of the run.
        meter: of the run.
        ends: of the run.
        facts: asked for what really runs, label and text, as in the banner.
    """

    def __init__(
        self,
        scene: app.Scene,
        networks: app.Networks,
        meter: Meter,
        ends: app.Ends,
        facts: Callable[[], Sequence[tuple[str, str]]] = tuple,
    ) -> None:
        self._pipeline, self._meter, self._facts = scene.pipeline, meter, facts
        self._source = scene.settings.source
        self._lock = threading.RLock()  # around decisions, never around work
        self._listeners: tuple[Callable[[Event], None], ...] = ()
        self._notes: deque[Note] = deque(maxlen=NOTES)
        self._inputs: tuple[Choice, ...] = ()
        self._engines: tuple[Choice, ...] = ()
        self._models: dict[str, tuple[str, ...]] = {}
        self._looking: threading.Thread | None = None
        self._album, self._tap = Album(), Tap(scene.pipeline)
        self._appearance = Appearance(scene, networks, meter, self._lock, self._take_budget, self._say)
        self._places = Places(ends, lambda: self._appearance.settings, self._say)
        self._station = ends.station

    def __enter__(self) -> RunningDesk:
        return self

    def __exit__(self, *_: object) -> None:
        self._appearance.close()
        self._album.close()
        if self._looking is not None:
            self._looking.join(LOOKING_S)

    def take_controls(self, controls: Controls) -> None:
        """See ``loop.Show.on_start``."""
        self._places.controls = controls

    def opened(self, budget: Budget, outputs: Sequence[tuple[str, str]]) -> None:
        """The run has begun.

        Args:
            budget: that chooses its quality.
            outputs: name of each, and what it was asked for as.
        """
        self._appearance.begin(budget)
        self._places.asked.update(outputs)
        self._tell_state()

    def note(self, text: str, hint: str = "", *, warning: bool = False) -> None:
        """Tell whoever listens. Any thread."""
        self._tell(Note(text=text, hint=hint, warning=warning))
        self._tell_state()  # who sends and who watches is in it

    def order(self, order: Order) -> None:
        """See :class:`realtime.desk.desk.Desk`."""
        match order:
            case SetValue():
                self._appearance.set(order.key, order.value)
            case Blank():
                self._blank(order.on)
            case Pick():
                self._pick(order.x, order.y)
            case Unpick():
                self._pipeline.chooser.unpick()
            case UsePhoto():
                self._use_photo(order.photo)
            case UseInput():
                self._places.use_input(order.what)
            case AddOutput():
                self._places.add(order.to)
            case RemoveOutput():
                self._places.remove(order.name)
            case Record():
                self._places.record(order.on)
            case Save():
                self._save(order.profile)
        self._tell_state()

    def state(self) -> State:
        """See :class:`realtime.desk.desk.Desk`."""
        self._begin_to_look_around()
        places, settings = self._places, self._appearance.settings
        sinks = places.controls.sinks() if places.controls else ()
        station = self._station
        return State(
            values=values_of(settings),
            limits=limits(self._models),
            facts=tuple(self._facts()),
            photos=tuple(self._album.name_of(photo) for photo in settings.source.photos),
            input=places.input,
            inputs=self._inputs,
            engines=self._engines,
            outputs=tuple(Output(name=name, to=places.asked.get(name, name), failed=why) for name, why in sinks),
            recording=places.recording,
            blank=self._pipeline.guard.blank,
            picked=self._pipeline.chooser.picked,
            profiles=config.profile_names(),
            viewers=station.outlet.viewers if station else (),
            sender=(station.browser.who or station.whip.who) if station else "",
        )

    def figures(self) -> Figures:
        """See :class:`realtime.desk.desk.Desk`."""
        return figures_of(self._meter, self._pipeline, self._appearance.budget)

    def listen(self, tell: Callable[[Event], None]) -> Callable[[], None]:
        """See :class:`realtime.desk.desk.Desk`; what was noted before is told at once."""
        with self._lock:
            self._listeners = (*self._listeners, tell)
            tell(self.state())
            for note in self._notes:
                tell(note)

        def end() -> None:
            with self._lock:
                self._listeners = tuple(other for other in self._listeners if other is not tell)

        return end

    def keep_photo(self, name: str, data: bytes) -> str:
        """See :class:`realtime.desk.desk.Desk`."""
        return self._album.keep(name, data)

    def before(self) -> U8 | None:
        """See :class:`realtime.desk.desk.Desk`."""
        return self._tap.take()

    def _blank(self, on: bool) -> None:
        self._pipeline.guard.blank = on
        if self._places.controls is not None:
            self._places.controls.cover((BLANK[0], BLANK[1:]) if on else None)

    def _pick(self, x: float, y: float) -> None:
        face = face_at(self._pipeline, x, y)
        if face is None:
            raise ConfigError("there is no face at that place", "click on a face that has a frame")
        self._pipeline.chooser.pick(face.track_id)

    def _use_photo(self, photo: str) -> None:
        if photo and photo not in self._album:
            raise ConfigError(f"there is no photo {photo}", "send it first")
        self._appearance.show_photos((str(self._album.path(photo)),) if photo else ())

    def _save(self, profile: str) -> None:
        """Keep the settings; a photo that was sent is gone after the run, and is not among them."""
        now, words = self._appearance.settings, ""
        update: dict[str, object] = {"input": now.input.model_copy(update={"what": self._places.input})}
        if any(self._album.holds(photo) for photo in now.source.photos):
            update["source"], words = self._source, ", without the photo that was sent"
        path = config.save_profile(profile, with_full_paths(now.model_copy(update=update)))
        self.note(f"saved as the profile {profile}{words}: {path}")

    def _take_budget(self, budget: Budget) -> None:
        if self._places.controls is not None:
            self._places.controls.change_budget(budget)

    def _say(self, words: str, error: LiveError | None) -> None:
        """Called by what carries orders out: something was done, or was not."""
        if error is not None:
            self.note(f"{words}: {error.message}", error.hint, warning=True)
        elif words:
            self.note(words)
        else:
            self._tell_state()

    def _begin_to_look_around(self) -> None:
        """Once, when somebody wants to know: a run that nobody steers asks no camera."""
        with self._lock:
            if self._looking is None:
                self._looking = threading.Thread(target=self._look_around, name="look around", daemon=True)
                self._looking.start()

    def _look_around(self) -> None:
        """Find out what there is to choose from: asking cameras takes up to seconds."""
        self._engines, self._models = engines(), models()
        self._inputs = inputs(networked=self._station is not None)
        self._tell_state()

    def _tell_state(self) -> None:
        with self._lock:  # who was told last knows the newest
            if self._listeners:
                self._tell(self.state())

    def _tell(self, event: Event) -> None:
        with self._lock:
            if isinstance(event, Note):
                self._notes.append(event)
            for tell in self._listeners:
                tell(event)
