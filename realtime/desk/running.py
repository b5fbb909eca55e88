"""The desk of a run that goes on: carries orders out, and says how things stand; knows no page and no transport."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from realtime import app, config
from realtime.app.faces import make_look, make_masks
from realtime.app.path import BLANK
from realtime.budget import Budget
from realtime.config import Settings
from realtime.controls import Controls
from realtime.desk.album import Album
from realtime.desk.choices import engines, inputs, models
from realtime.desk.messages import (
    LIVE_KEYS,
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
from realtime.desk.painting import PaintShop
from realtime.desk.places import Places
from realtime.desk.standing import face_at, figures_of, limits, made_from, values_of
from realtime.desk.tap import Tap
from realtime.errors import ConfigError, LiveError
from realtime.last_run import with_full_paths
from realtime.meter import Meter
from realtime.smoothing import cutoff_hz
from realtime.swappers import OBSTACLES, optional_steps
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
        self._settings, self._faces, self._pipeline = scene.settings, scene.faces, scene.pipeline
        self._painting = scene.settings  # those that what paints now was made from
        self._networks, self._meter, self._facts = networks, meter, facts
        self._lock = threading.RLock()  # around decisions, never around work
        self._listeners: tuple[Callable[[Event], None], ...] = ()
        self._notes: deque[Note] = deque(maxlen=NOTES)
        self._inputs: tuple[Choice, ...] = ()
        self._engines: tuple[Choice, ...] = ()
        self._models: dict[str, tuple[str, ...]] = {}
        self._budget: Budget | None = None
        self._album, self._tap = Album(), Tap(scene.pipeline)
        self._shop = PaintShop(self._pipeline, networks, meter, self._painted, self._refused)
        self._looking = threading.Thread(target=self._look_around, name="look around", daemon=True)
        self._places = Places(ends, lambda: self._settings, self._placed)
        self._station = ends.station

    def __enter__(self) -> RunningDesk:
        return self

    def __exit__(self, *_: object) -> None:
        self._shop.close()
        self._album.close()
        if self._looking.ident is not None:
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
        self._budget = budget
        self._places.asked.update(outputs)
        self._looking.start()
        self._tell_state()

    def note(self, text: str, hint: str = "", *, warning: bool = False) -> None:
        """Tell whoever listens. Any thread."""
        self._tell(Note(text=text, hint=hint, warning=warning))
        self._tell_state()  # who sends and who watches is in it

    def order(self, order: Order) -> None:
        """See :class:`realtime.desk.desk.Desk`."""
        match order:
            case SetValue():
                self._set(order.key, order.value)
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
                path = config.save_profile(order.profile, with_full_paths(self._settings))
                self.note(f"saved as the profile {order.profile}: {path}")
        self._tell_state()

    def state(self) -> State:
        """See :class:`realtime.desk.desk.Desk`."""
        places = self._places
        sinks = places.controls.sinks() if places.controls else ()
        station = self._station
        return State(
            values=values_of(self._settings),
            limits=limits(self._models),
            facts=tuple(self._facts()),
            photos=tuple(self._album.name_of(photo) for photo in self._settings.source.photos),
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
        return figures_of(self._meter, self._pipeline, self._budget)

    def listen(self, tell: Callable[[Event], None]) -> Callable[[], None]:
        """See :class:`realtime.desk.desk.Desk`; what was noted before is told at once."""
        with self._lock:
            self._listeners = (*self._listeners, tell)
            before = tuple(self._notes)
        tell(self.state())
        for note in before:
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

    def _set(self, key: str, value: object) -> None:
        if key not in LIVE_KEYS:
            raise ConfigError(f"{key} cannot be changed while a run goes on", f"start again with --set {key}=...")
        with self._lock:
            before = self._settings
            self._settings = now = config.changed(before, key, value, "the page")
        pipeline = self._pipeline
        pipeline.guard.on_lost, pipeline.guard.hold_s = now.faces.on_lost, now.faces.hold_s
        pipeline.tracker.cutoff_hz = cutoff_hz(now.tracking.smoothing)
        if key == "swap.obstacles":
            self._leave_out(now)
        if key == "faces.which":
            pipeline.chooser.unpick(now.faces.which)
        if made_from(now) != made_from(before):
            self._repaint(now)

    def _repaint(self, now: Settings) -> None:
        """Let the painters follow the settings: at once where they can, else by making others aside."""
        (_, rest), (_, rest_painting) = made_from(now), made_from(self._painting)
        look = make_look(now)
        if rest == rest_painting and all(one.relook(look) for one in self._pipeline.painters.swappers):
            self._shop.forget()
            self._painting = now
            return
        same_faces = now.swap.engine == self._painting.swap.engine and now.source == self._painting.source
        self._shop.want(now, self._faces if same_faces else None)

    def _leave_out(self, now: Settings) -> None:
        budget = self._budget
        if now.swap.obstacles and budget is not None and OBSTACLES not in budget.best.steps:
            steps = optional_steps(now.swap.engine, make_masks(now), bool(now.enhance.model))
            if OBSTACLES in steps:
                self._take_budget(app.build_budget(now, works_ahead=self._networks.device.works_ahead))
        self._pipeline.without = frozenset() if now.swap.obstacles else frozenset({OBSTACLES})

    def _painted(self, settings: Settings, faces: app.SourceFaces, budget: Budget) -> None:
        """Called by the paint shop: what it made paints from the next frame on."""
        before, self._painting, self._faces = self._painting, settings, faces
        look = make_look(self._settings)  # a control may have moved meanwhile
        for swapper in self._pipeline.painters.swappers:
            swapper.relook(look)
        self._take_budget(budget)
        if settings.swap.engine != before.swap.engine:
            self.note(f"the face is made by {settings.swap.engine} now")
        self._tell_state()

    def _take_budget(self, budget: Budget) -> None:
        self._budget = budget
        if self._places.controls is not None:
            self._places.controls.change_budget(budget)

    def _refused(self, error: LiveError) -> None:
        """Called by the paint shop: what paints goes on, and so do the settings that it was made from."""
        with self._lock:
            parts = ("swap", "masks", "enhance", "source")
            self._settings = self._settings.model_copy(update={part: getattr(self._painting, part) for part in parts})
        self.note(f"what paints stays as it was: {error.message}", error.hint, warning=True)
        self._tell_state()

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
        paths = (str(self._album.path(photo)),) if photo else ()
        with self._lock:
            source = self._settings.source.model_copy(update={"photos": paths})
            self._settings = now = self._settings.model_copy(update={"source": source})
        self._shop.want(now, None)

    def _placed(self, words: str, error: LiveError | None) -> None:
        """Called by the places: an end of the run has changed, or could not."""
        if error is None:
            self.note(words)
        else:
            self.note(f"{words}: {error.message}", error.hint, warning=True)

    def _look_around(self) -> None:
        """Find out what there is to choose from: asking cameras takes up to seconds."""
        self._engines, self._models = engines(), models()
        self._inputs = inputs(networked=self._station is not None)
        self._tell_state()

    def _tell_state(self) -> None:
        if self._listeners:
            self._tell(self.state())

    def _tell(self, event: Event) -> None:
        if isinstance(event, Note):
            self._notes.append(event)
        for tell in self._listeners:
            tell(event)
