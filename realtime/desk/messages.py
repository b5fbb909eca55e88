"""The one schema of what is said between a run and whoever steers it, the page or Python; knows no transport.

Orders go to the run, events come from it. Each is a JSON object whose ``do`` or ``tell`` names its kind; the page gets
the same schema as JSON Schema and is tested against it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

LIVE_KEYS = (
    "swap.engine",
    "swap.likeness",
    "swap.colour",
    "swap.opacity",
    "swap.obstacles",
    "swap.own_mouth",
    "swap.boost",
    "swap.morph",
    "swap.blend",
    "masks.occlusion",
    "masks.regions",
    "enhance.model",
    "enhance.amount",
    "enhance.fidelity",
    "faces.which",
    "faces.on_lost",
    "faces.hold_s",
    "tracking.smoothing",
)
"""Settings that take effect while a run goes on."""

Share = Annotated[float, Field(ge=0, le=1)]
Text = Annotated[str, Field(max_length=4096)]


class Message(BaseModel):
    """Any of them. Strict: an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class SetValue(Message):
    """Change a setting of ``LIVE_KEYS``; checked as in a settings file."""

    do: Literal["set"] = "set"
    key: Text
    value: Any


class Blank(Message):
    """Show a card instead of the picture at once, on every output, until it is taken back: the panic key."""

    do: Literal["blank"] = "blank"
    on: bool


class Pick(Message):
    """Swap the face at this place, or leave it alone where it was picked; the first pick ends the automatic choice.

    Attributes:
        x: share of the picture's width, from the left.
        y: share of its height, from the top.
    """

    do: Literal["pick"] = "pick"
    x: Share
    y: Share


class Unpick(Message):
    """Choose faces as ``faces.which`` says again."""

    do: Literal["unpick"] = "unpick"


class UsePhoto(Message):
    """Show another face.

    Attributes:
        photo: as the upload named it (see ``Desk.keep_photo``); empty for the built-in one.
    """

    do: Literal["photo"] = "photo"
    photo: Text


class UseInput(Message):
    """Take the pictures from somewhere else. Outputs stay open, and keep their size.

    Attributes:
        what: as for ``--input``.
    """

    do: Literal["input"] = "input"
    what: Text


class AddOutput(Message):
    """Show the picture in one more place.

    Attributes:
        to: as for ``--output``.
    """

    do: Literal["add_output"] = "add_output"
    to: Text


class RemoveOutput(Message):
    """Close an output; a recording is finished.

    Attributes:
        name: of ``State.outputs``.
    """

    do: Literal["remove_output"] = "remove_output"
    name: Text


class Record(Message):
    """Start a recording in the user's folder of videos, named by date and time, or finish it."""

    do: Literal["record"] = "record"
    on: bool


class Save(Message):
    """Keep the settings as they are now as a profile.

    Attributes:
        profile: its name.
    """

    do: Literal["save"] = "save"
    profile: Annotated[str, Field(min_length=1, max_length=64)]


Order = Annotated[
    SetValue | Blank | Pick | Unpick | UsePhoto | UseInput | AddOutput | RemoveOutput | Record | Save,
    Field(discriminator="do"),
]


class Limits(Message):
    """What a setting takes.

    Attributes:
        words: for people, e.g. "a number from 0 to 1".
        low: least number; ``None`` where it is no number.
        high: largest number.
        choices: the values there are; empty where it is no choice.
    """

    words: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()


class Choice(Message):
    """One of several things to choose from.

    Attributes:
        value: to send back.
        words: for people.
        usable: whether it can be chosen now; ``words`` says why not.
    """

    value: str
    words: str
    usable: bool = True


class Output(Message):
    """An output that is open.

    Attributes:
        name: for people, and for ``RemoveOutput``.
        to: as it was asked for.
        failed: why it was given up; empty while it works.
    """

    name: str
    to: str
    failed: str = ""


class State(Message):
    """Everything about a run that changes seldom; sent whole, when someone starts to listen and at each change.

    Attributes:
        values: of the settings that can be changed, by key.
        limits: what each takes.
        facts: what really runs and why, label and text, as in the start banner.
        photos: those that are shown, by name.
        inputs: there are to choose from; ``input`` is the one in use.
        engines: what can make the face.
        outputs: that are open.
        recording: the file that is being recorded, empty when none is.
        blank: whether the card is shown instead of the picture.
        picked: whether faces were picked by hand.
        profiles: that exist.
        viewers: who watches by network.
        sender: who sends the pictures by network, empty when nobody does.
    """

    tell: Literal["state"] = "state"
    values: dict[str, Any]
    limits: dict[str, Limits]
    facts: tuple[tuple[str, str], ...]
    photos: tuple[str, ...]
    input: str
    inputs: tuple[Choice, ...]
    engines: tuple[Choice, ...]
    outputs: tuple[Output, ...]
    recording: str = ""
    blank: bool = False
    picked: bool = False
    profiles: tuple[str, ...] = ()
    viewers: tuple[str, ...] = ()
    sender: str = ""


class FaceBox(Message):
    """A face in view, its box in shares of the picture.

    Attributes:
        track_id: stable while it is followed.
        left: and the three others: sides of its box, 0..1, may reach outside.
        swapped: whether it gets the new face.
    """

    track_id: int
    left: float
    top: float
    right: float
    bottom: float
    swapped: bool


class Figures(Message):
    """How it goes at this moment; a few times a second.

    Attributes:
        t_s: seconds since the run began.
        fps_in: pictures per second from the input.
        fps_out: new pictures per second from the pipeline.
        latency_ms: from capture to the end of an output's write, p50 and p95 by output, of the last moments.
        steps_ms: median time of each step.
        dropped: pictures by cause, of the whole run.
        quality: in words; empty while everything runs.
        faces: in view.
        line: all of it in one line, as the terminal says it.
    """

    tell: Literal["figures"] = "figures"
    t_s: float
    fps_in: float
    fps_out: float
    latency_ms: dict[str, tuple[float, float]]
    steps_ms: dict[str, float]
    dropped: dict[str, int]
    quality: str = ""
    faces: tuple[FaceBox, ...] = ()
    line: str = ""


class Note(Message):
    """Something that a person should know, once.

    Attributes:
        text: in words.
        hint: what to try; empty where nothing went wrong.
        warning: whether something does not work.
    """

    tell: Literal["note"] = "note"
    text: str
    hint: str = ""
    warning: bool = False


Event = Annotated[State | Figures | Note, Field(discriminator="tell")]

ORDERS: TypeAdapter[Order] = TypeAdapter(Order)
"""Reads an order from JSON or Python."""
EVENTS: TypeAdapter[Event] = TypeAdapter(Event)
"""Writes an event."""
