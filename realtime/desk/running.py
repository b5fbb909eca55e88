"""The desk of a run that goes on: carries orders out, and says how things stand; knows no page and no transport."""

from __future__ import annotations

import datetime
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from platformdirs import user_videos_path

from realtime import app, config
from realtime.app.faces import make_look, make_masks
from realtime.app.path import BLANK
from realtime.budget import Budget
from realtime.config import Settings
from realtime.desk.choices import engines, inputs
from realtime.desk.messages import (
    LIVE_KEYS,
    AddOutput,
    Blank,
    Choice,
    Event,
    FaceBox,
    Figures,
    Limits,
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
from realtime.errors import ConfigError, LiveError
from realtime.last_run import with_full_paths
from realtime.loop import Controls
from realtime.meter import Meter
from realtime.photos import read_photo
from realtime.sinks import Sink, parse_output
from realtime.smoothing import cutoff_hz
from realtime.sources import SourceInfo, parse_input
from realtime.status import quality_text, status_line
from realtime.swappers import OBSTACLES, optional_steps
from realtime.types import U8, Frame

BEFORE_S = 0.2
"""How long ``before`` waits for a frame."""
NOTES = 20
"""Of the latest notes, told to whoever comes later."""
_PHOTO_SUFFIXES = {b"\xff\xd8": ".jpg", b"\x89P": ".png", b"RI": ".webp", b"GI": ".gif", b"BM": ".bmp"}


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
        self._networks, self._meter, self._ends, self._facts = networks, meter, ends, facts
        self._controls: Controls | None = None
        self._lock = threading.RLock()  # around decisions, never around work
        self._listeners: tuple[Callable[[Event], None], ...] = ()
        self._notes: deque[Note] = deque(maxlen=NOTES)
        self._asked: dict[str, str] = {}  # what each output was asked for as, by its name
        self._recording = ""
        self._input = scene.settings.input.what
        self._inputs: tuple[Choice, ...] = ()
        self._engines: tuple[Choice, ...] = ()
        self._budget: Budget | None = None
        self._begun_s = time.monotonic()
        self._folder = tempfile.TemporaryDirectory(prefix="doppelcam-photos-")
        self._photos: dict[str, str] = {}
        self._shop = PaintShop(self._pipeline, networks, meter, self._painted, self._refused)
        self._before_lock = threading.Lock()
        self.station = ends.station

    def __enter__(self) -> RunningDesk:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipeline.on_begin = None
        self._shop.close()
        self._folder.cleanup()

    def take_controls(self, controls: Controls) -> None:
        """See ``loop.Show.on_start``."""
        self._controls = controls

    def opened(self, budget: Budget, outputs: Sequence[tuple[str, str]]) -> None:
        """The run has begun.

        Args:
            budget: that chooses its quality.
            outputs: name of each, and what it was asked for as.
        """
        self._budget = budget
        self._asked.update(outputs)
        threading.Thread(target=self._look_around, name="look around", daemon=True).start()
        self._tell_state()

    def note(self, text: str, hint: str = "", *, warning: bool = False) -> None:
        """Tell whoever listens. Any thread."""
        self._tell(Note(text=text, hint=hint, warning=warning))

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
                self._use_input(order.what)
            case AddOutput():
                self._add_output(order.to)
            case RemoveOutput():
                self._require().remove_sink(order.name, self._told(f"{order.name} is closed"))
            case Record():
                self._record(order.on)
            case Save():
                path = config.save_profile(order.profile, with_full_paths(self._settings))
                self.note(f"saved as the profile {order.profile}: {path}")
        self._tell_state()

    def state(self) -> State:
        """See :class:`realtime.desk.desk.Desk`."""
        sinks = self._controls.sinks() if self._controls else ()
        names = tuple(Path(photo).name for photo in self._settings.source.photos)
        return State(
            values={key: _value(self._settings, key) for key in LIVE_KEYS},
            limits={key: _limits(key) for key in LIVE_KEYS},
            facts=tuple(self._facts()),
            photos=tuple(self._photos.get(name, name) for name in names),
            input=self._input,
            inputs=self._inputs,
            engines=self._engines,
            outputs=tuple(Output(name=name, to=self._asked.get(name, name), failed=why) for name, why in sinks),
            recording=self._recording,
            blank=self._pipeline.guard.blank,
            picked=self._pipeline.chooser.picked,
            profiles=config.profile_names(),
            sender=self._sender(),
        )

    def figures(self) -> Figures:
        """See :class:`realtime.desk.desk.Desk`."""
        stats, pipeline = self._meter.snapshot(), self._pipeline
        now = stats.recent
        budget = self._budget
        top = budget is None or budget.quality == budget.best
        width, height = pipeline.size if pipeline.size.w else (1, 1)
        swapped = {face.track_id for face in pipeline.faces}
        boxes = tuple(
            FaceBox(
                track_id=face.track_id,
                left=float(face.box_xyxy[0]) / width,
                top=float(face.box_xyxy[1]) / height,
                right=float(face.box_xyxy[2]) / width,
                bottom=float(face.box_xyxy[3]) / height,
                swapped=face.track_id in swapped,
            )
            for face in pipeline.in_view
        )
        return Figures(
            t_s=time.monotonic() - self._begun_s,
            fps_in=now.fps_in,
            fps_out=now.fps_out,
            latency_ms={name: (one.p50, one.p95) for name, one in now.latency_ms.items()},
            steps_ms={name: one.p50 for name, one in now.steps.items()},
            dropped=dict(stats.drops),
            quality="" if top or budget is None else quality_text(budget.quality, budget.best.steps),
            faces=boxes,
            line=status_line(stats, len(swapped)),
        )

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
        suffix = _PHOTO_SUFFIXES.get(data[:2], ".photo")
        with self._lock:
            photo = f"photo-{len(self._photos) + 1}{suffix}"
            self._photos[photo] = Path(name.replace("\\", "/")).name[:100] or photo
        path = Path(self._folder.name) / photo
        path.write_bytes(data)
        try:
            read_photo(path)
        except LiveError as error:
            path.unlink()
            shown = self._photos.pop(photo)
            raise type(error)(error.message.replace(str(path), shown), error.hint) from error
        return photo

    def before(self) -> U8 | None:
        """See :class:`realtime.desk.desk.Desk`."""
        came = threading.Event()
        taken: list[U8] = []

        def look(frame: Frame) -> None:
            if not taken:
                taken.append(frame.pixels.copy())
                came.set()

        with self._before_lock:
            self._pipeline.on_begin = look
            came.wait(BEFORE_S)
            self._pipeline.on_begin = None
        return taken[0] if taken else None

    def _set(self, key: str, value: object) -> None:
        if key not in LIVE_KEYS:
            raise ConfigError(f"{key} cannot be changed while a run goes on", f"start again with --set {key}=...")
        with self._lock:
            before = self._settings
            now = config.changed(before, key, value, "the page")
            if key == "swap.obstacles":
                self._leave_out(now)
            self._settings = now
        pipeline = self._pipeline
        pipeline.guard.on_lost, pipeline.guard.hold_s = now.faces.on_lost, now.faces.hold_s
        pipeline.tracker.cutoff_hz = cutoff_hz(now.tracking.smoothing)
        if key == "faces.which":
            pipeline.chooser.unpick(now.faces.which)
        if _paints(now) != _paints(before):
            self._repaint(before, now)

    def _repaint(self, before: Settings, now: Settings) -> None:
        """Let the painters follow the settings: at once where they can, else by making others aside."""
        same = _paints(before)[1:] == _paints(now)[1:]
        look = make_look(now)
        if same and not self._shop.is_busy and all(one.relook(look) for one in self._pipeline.painters.swappers):
            return
        engine = now.swap.engine == before.swap.engine and now.source == before.source
        self._shop.want(now, self._faces if engine else None)

    def _leave_out(self, now: Settings) -> None:
        budget = self._budget
        if now.swap.obstacles and budget is not None and OBSTACLES not in budget.best.steps:
            steps = optional_steps(now.swap.engine, make_masks(now), bool(now.enhance.model))
            if OBSTACLES in steps:
                self._take_budget(app.build_budget(now, works_ahead=self._networks.device.works_ahead))
        self._pipeline.without = frozenset() if now.swap.obstacles else frozenset({OBSTACLES})

    def _painted(self, settings: Settings, faces: app.SourceFaces, budget: Budget) -> None:
        """Called by the paint shop: what it made paints from the next frame on."""
        changed_engine = settings.swap.engine != self._pipeline_engine()
        self._faces = faces
        self._take_budget(budget)
        if changed_engine:
            self.note(f"the face is made by {settings.swap.engine} now")
        self._tell_state()

    def _pipeline_engine(self) -> str:
        return self._settings.swap.engine

    def _take_budget(self, budget: Budget) -> None:
        self._budget = budget
        if self._controls is not None:
            self._controls.change_budget(budget)

    def _refused(self, error: LiveError) -> None:
        """Called by the paint shop: nothing was changed."""
        self.note(f"what paints stays as it was: {error.message}", error.hint, warning=True)
        self._tell_state()

    def _blank(self, on: bool) -> None:
        self._pipeline.guard.blank = on
        if on and self._controls is not None:
            self._controls.show_card(*BLANK)

    def _pick(self, x: float, y: float) -> None:
        width, height = self._pipeline.size
        hits = [
            face
            for face in self._pipeline.in_view
            if face.box_xyxy[0] <= x * width <= face.box_xyxy[2] and face.box_xyxy[1] <= y * height <= face.box_xyxy[3]
        ]
        if not hits:
            raise ConfigError("there is no face at that place", "click on a face that has a frame")
        smallest = min(hits, key=lambda face: float(face.box_xyxy[2] - face.box_xyxy[0]))
        self._pipeline.chooser.pick(smallest.track_id)

    def _use_photo(self, photo: str) -> None:
        if photo and photo not in self._photos:
            raise ConfigError(f"there is no photo {photo}", "send it first")
        paths = (str(Path(self._folder.name) / photo),) if photo else ()
        with self._lock:
            source = self._settings.source.model_copy(update={"photos": paths})
            self._settings = now = self._settings.model_copy(update={"source": source})
        self._shop.want(now, None)

    def _use_input(self, what: str) -> None:
        spec = parse_input(what)
        if spec.kind in ("browser", "whip") and self.station is None:
            raise ConfigError(f"{what} needs the web server", "start with: doppelcam serve")
        wish = replace(self._ends.wish, paced=True, loop=True)
        ends = replace(self._ends, source=spec, wish=wish)

        def told(error: LiveError | None) -> None:
            if error is None:
                self._input = what
                self.note(f"the pictures come from {what} now")
            else:
                self.note(f"{what} cannot be used: {error.message}", error.hint, warning=True)
            self._tell_state()

        self._require().change_source(partial(app.open_again, ends), told)

    def _add_output(self, to: str) -> None:
        spec = parse_output(to)
        if spec.kind == "webrtc" and self.station is None:
            raise ConfigError(f"{to} needs the web server", "start with: doppelcam serve")
        names = {name for name, _ in self._require().sinks()}

        def open_sink(info: SourceInfo) -> Sink:
            sink = app.open_one_sink(spec, self._settings, self.station, info)
            self._asked[sink.info.name] = to
            if sink.info.name in names:
                sink.close()
                raise ConfigError(f"{sink.info.name} is open already", "remove it first")
            return sink

        self._require().add_sink(open_sink, self._told(f"{to} is open"))

    def _record(self, on: bool) -> None:
        if on == bool(self._recording):
            return
        if not on:
            name, self._recording = self._recording, ""
            self._require().remove_sink(f"recording {name}", self._told(f"recorded to {name}"))
            return
        folder = user_videos_path()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"nothing can be recorded in {folder}: {error.strerror}", "add an output by name"
            ) from error
        path = folder / f"doppelcam {datetime.datetime.now():%Y-%m-%d %H.%M.%S}.mp4"
        self._recording = str(path)

        def told(error: LiveError | None) -> None:
            if error is not None:
                self._recording = ""
                self.note(f"nothing is recorded: {error.message}", error.hint, warning=True)
            self._tell_state()

        spec = parse_output(str(path))
        self._asked[f"recording {path}"] = str(path)
        self._require().add_sink(partial(app.open_one_sink, spec, self._settings, self.station), told)

    def _told(self, words: str) -> Callable[[LiveError | None], None]:
        def told(error: LiveError | None) -> None:
            if error is None:
                self.note(words)
            else:
                self.note(error.message, error.hint, warning=True)
            self._tell_state()

        return told

    def _require(self) -> Controls:
        if self._controls is None:
            raise ConfigError("the run has not begun", "try again in a moment")
        return self._controls

    def _sender(self) -> str:
        station = self.station
        return (station.browser.who or station.whip.who) if station else ""

    def _look_around(self) -> None:
        """Find out what there is to choose from: asking cameras takes up to seconds."""
        self._engines = engines()
        self._inputs = inputs(networked=self.station is not None)
        self._tell_state()

    def _tell_state(self) -> None:
        if self._listeners:
            self._tell(self.state())

    def _tell(self, event: Event) -> None:
        if isinstance(event, Note):
            self._notes.append(event)
        for tell in self._listeners:
            tell(event)


def _value(settings: Settings, key: str) -> object:
    section, _, name = key.partition(".")
    return getattr(getattr(settings, section), name)


def _limits(key: str) -> Limits:
    low, high, choices = config.bounds(key)
    return Limits(words=config.allowed_text(key), low=low, high=high, choices=choices)


def _paints(settings: Settings) -> tuple[object, ...]:
    """What painters are made from; the look, which some can change, comes first."""
    fixed = settings.swap.model_copy(
        update={"likeness": 0.0, "colour": 0.0, "opacity": 0.0, "boost": 1, "morph": 0.0, "blend": "feather"}
    )
    masks = settings.masks
    return make_look(settings), fixed.model_copy(update={"obstacles": True}), masks, settings.enhance, settings.source
