"""Every setting with its type and range, as frozen models; knows neither the defaults nor where a value came from.

The defaults and the reasons are in ``configs/default.toml`` and nowhere else: no field here has a default, so a value
that the file forgets is an error, and a test compares the two key by key.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args, get_origin

from annotated_types import Ge, Le
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer
from pydantic.fields import FieldInfo

from realtime.types import Size


class Allowed:
    """What a setting accepts, in words, where its type alone does not say it."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def _size(value: object) -> Size | None:
    """Read ``"1280x720"`` or ``"auto"`` (``None``); a ``Size`` passes."""
    if value == "auto":
        return None
    if isinstance(value, Size):
        return value
    width, cross, height = value.partition("x") if isinstance(value, str) else ("", "", "")
    if not (cross and width.isascii() and width.isdigit() and height.isascii() and height.isdigit()):
        raise ValueError("not WIDTHxHEIGHT")
    if len(width) > 4 or len(height) > 4 or not (64 <= int(width) <= 7680 and 64 <= int(height) <= 4320):
        raise ValueError("out of range")
    return Size(int(width), int(height))


def _faces(value: object) -> object:
    """Read ``"largest"``, ``"all"`` or a number of faces; the number may come as text from the command line."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 2:
        value = int(value)
    if value in ("largest", "all") or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 8):
        return value
    raise ValueError("not a choice of faces")


def _input(value: object) -> object:
    """Let a camera be a bare number."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 99 else value


PictureSize = Annotated[
    Size | None,
    BeforeValidator(_size),
    PlainSerializer(lambda size: "auto" if size is None else str(size)),
    Allowed('a size such as "1280x720", from 64x64 to 7680x4320, or "auto"'),
]
FaceChoice = Annotated[
    Literal["largest", "all"] | int,
    BeforeValidator(_faces),
    Allowed('"largest", "all", or a number of faces from 1 to 8'),
]
Name = Annotated[str, Field(min_length=1), Allowed("a text, not empty")]
InputName = Annotated[
    str, BeforeValidator(_input), Field(min_length=1), Allowed("a text, not empty, or the number of a camera")
]
OptionalName = Annotated[str, Allowed('the name of a model, see `doppelcam models list`, or ""')]
Names = Annotated[tuple[Name, ...], Field(strict=False), Allowed('a list of texts such as ["a", "b"], or []')]
Pairs = Annotated[
    tuple[Annotated[str, Field(pattern=r"^[^=]+=.*[^=]$")], ...],
    Field(strict=False),
    Allowed('a list of pairs such as ["them.jpg=me.png"], or []'),
]
Share = Annotated[float, Field(ge=0, le=1)]
Rate = Annotated[float, Field(ge=0, le=240)]


class Section(BaseModel):
    """A table of the settings file. Strict: a text never becomes a number, an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class SourceSettings(Section):
    """Whose face is shown."""

    photos: Names


class InputSettings(Section):
    """Where the pictures come from."""

    what: InputName
    size: PictureSize
    fps: Rate
    fourcc: Literal["auto", "mjpg", "raw"]
    loop: bool
    pace: Literal["auto", "live", "fast"]


class OutputSettings(Section):
    """Where the pictures go."""

    to: Annotated[Names, Field(min_length=1), Allowed('a list of one text or more, such as ["virtualcam", "out.mp4"]')]
    fps: Rate
    mirror_preview: bool
    overwrite: bool


class FacesSettings(Section):
    """Which faces are swapped, and what is shown when one is lost."""

    which: FaceChoice
    only: Names
    map: Pairs
    recogniser: Name
    match: Share
    on_lost: Literal["hold", "blur", "card", "raw"]
    hold_s: Annotated[float, Field(ge=0, le=5)]


class SwapSettings(Section):
    """How the new face looks."""

    engine: Annotated[str, Field(min_length=1), Allowed('"mesh", or the name of a model, see `doppelcam models list`')]
    likeness: Share
    colour: Share
    opacity: Share
    obstacles: bool
    boost: Annotated[int, Field(ge=1, le=8)]
    own_mouth: bool
    morph: Share
    blend: Literal["feather", "poisson"]


class MasksSettings(Section):
    """Which networks say what stays in front of the new face."""

    occlusion: OptionalName
    regions: OptionalName
    every_n: Annotated[int, Field(ge=1, le=60)]


class EnhanceSettings(Section):
    """What makes the new face finer."""

    model: OptionalName
    fidelity: Share
    amount: Share


class TrackingSettings(Section):
    """How faces are found and followed."""

    detector: Name
    detect_every_n: Annotated[int, Field(ge=1, le=300)]
    min_presence: Share
    smoothing: Share


class QualitySettings(Section):
    """How much work a frame gets."""

    adaptive: bool
    min_scale: Annotated[float, Field(ge=0.25, le=1)]
    target_fps: Rate


class EngineSettings(Section):
    """What the networks run on."""

    device: Literal["auto", "cpu", "cuda"]
    runtime: Literal["auto", "onnxrt", "openvino", "tensorrt"]
    build: bool
    fallback: bool
    provider: Literal["auto", "cpu", "cuda", "coreml", "directml", "openvino"]
    allow_cpu: bool
    threads: Annotated[int, Field(ge=0, le=64)]


class WebSettings(Section):
    """Who may reach this program by network, and how pictures travel there."""

    host: Name
    port: Annotated[int, Field(ge=0, le=65535)]
    tls: Literal["auto", "off"]
    tls_cert: str
    tls_key: str
    origins: Names
    codec: Literal["auto", "h264", "vp8"]
    bitrate_kbps: Annotated[int, Field(ge=100, le=20_000)]
    peers: Annotated[int, Field(ge=1, le=64)]
    ice_servers: Names


class RunSettings(Section):
    """How long a run lasts and what it reports."""

    duration_s: Annotated[float, Field(ge=0, le=31_536_000)]
    stats_file: str


class Settings(Section):
    """All settings of one run, checked. Values never change once a run has started."""

    source: SourceSettings
    input: InputSettings
    output: OutputSettings
    faces: FacesSettings
    swap: SwapSettings
    masks: MasksSettings
    enhance: EnhanceSettings
    tracking: TrackingSettings
    quality: QualitySettings
    engine: EngineSettings
    web: WebSettings
    run: RunSettings


def _fields() -> dict[str, FieldInfo]:
    fields: dict[str, FieldInfo] = {}
    for section, info in Settings.model_fields.items():
        model = info.annotation
        if not (isinstance(model, type) and issubclass(model, Section)):
            raise TypeError(f"Settings.{section} is not a Section")
        fields |= {f"{section}.{name}": field for name, field in model.model_fields.items()}
    return fields


_FIELDS = _fields()


def all_keys() -> tuple[str, ...]:
    """Every setting as ``"section.name"``, in the order of the settings file."""
    return tuple(_FIELDS)


def bounds(key: str) -> tuple[float | None, float | None, tuple[str, ...]]:
    """What a control of a setting looks like, made from the same type and range that check it.

    Args:
        key: ``"section.name"``.

    Returns:
        Its least and largest number, ``None`` where it is none, and its choices, none where it is no choice.
    """
    field = _FIELDS[key]
    low = next((float(str(note.ge)) for note in field.metadata if isinstance(note, Ge)), None)
    high = next((float(str(note.le)) for note in field.metadata if isinstance(note, Le)), None)
    kind: Any = field.annotation
    return low, high, tuple(str(choice) for choice in get_args(kind)) if get_origin(kind) is Literal else ()


def allowed_text(key: str) -> str:
    """What a setting accepts, in words, made from the same type and range that check it.

    Args:
        key: ``"section.name"``.

    Returns:
        A phrase that fits after "must be", e.g. ``"a number from 0 to 1"``.
    """
    field = _FIELDS[key]
    for note in reversed(field.metadata):
        if isinstance(note, Allowed):
            return note.text
    kind: Any = field.annotation
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(f'"{choice}"' for choice in get_args(kind))
    if kind is bool:
        return "true or false"
    if kind is str:
        return "a text"
    low = next(note.ge for note in field.metadata if isinstance(note, Ge))
    high = next(note.le for note in field.metadata if isinstance(note, Le))
    return f"{'a whole number' if kind is int else 'a number'} from {low} to {high}"
