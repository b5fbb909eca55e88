"""Where pictures go: the ``Sink`` contract, the table of kinds and the words that name them; knows no device."""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import PurePath
from typing import TYPE_CHECKING, Protocol, cast

from realtime.errors import ConfigError, SinkError
from realtime.types import Frame, Size

if TYPE_CHECKING:
    from realtime.web.station import Station

SINKS: dict[str, str] = {
    "virtualcam": "realtime.sinks.virtualcam:VirtualCamera",
    "recording": "realtime.sinks.recording:Recording",
    "preview": "realtime.sinks.preview:Preview",
    "webrtc": "realtime.sinks.webrtc:WebRtc",
    "stream": "realtime.sinks.stream:Stream",
    "whip": "realtime.sinks.whip:Whip",
    "null": "realtime.sinks.null:Null",
}
"""Kind to "module:Class"; the class is called with ``(target, wish)``. A new sink is one file and one line here."""

AUTO = ("virtualcam", "preview")
"""What ``auto`` tries, best first. A recording is never made without being asked for."""

NETWORKED = frozenset({"webrtc"})
"""Kinds that show the picture through the program's own web server."""

IN_MAIN_THREAD = frozenset({"preview", "auto"})
"""Kinds that are a window, or may be: see ``SinkInfo.main_thread``. All others may be opened in any thread."""

STREAM_SCHEMES = ("rtmp", "rtmps", "srt", "tcp", "udp")
"""How ``stream`` is sent; which of them the FFmpeg inside PyAV really has is found out when one is opened."""

RECORDING_SUFFIXES = (".mp4", ".mkv", ".mov")
"""File name endings that mean a recording."""


@dataclass(frozen=True, slots=True)
class SinkInfo:
    """What a sink really takes, read back from the device after it was opened.

    Attributes:
        name: for people: "virtual camera OBS (/dev/video10)", "recording out.mp4".
        size: of every picture it takes; constant while the sink is open.
        fps: the steady cadence its emitter keeps, repeating the last picture when nothing new came; 0 means one write
            per new picture and nothing in between.
        live: ``True`` when a late picture should be skipped (camera, window); ``False`` when every picture counts
            (recording).
        facts: lines for the start banner.
        main_thread: ``True`` when the sink must be opened, written and closed by the program's main thread (a window
            belongs to it on macOS, and Qt asks for it everywhere).
        any_size: pictures of every even size are taken, and ``size`` is only that of the first ones: a picture that
            changes its shape (a phone that is turned) is not put between black bars.
    """

    name: str
    size: Size
    fps: float
    live: bool
    facts: tuple[str, ...] = ()
    main_thread: bool = False
    any_size: bool = False


@dataclass(frozen=True, slots=True)
class SinkWish:
    """What the run would like a sink to be. Each sink takes the lines it understands and says in its info what it did.

    Attributes:
        size: of the pictures that the pipeline makes.
        fps: pictures per second that the source claims or the person asked for; 0 when unknown.
        live: whether the source is live. From a file read in lockstep (``False``) a recording numbers its pictures
            with the file's own rate instead of the clock.
        title: of a window.
        mirror: show the preview as in a mirror. No other sink mirrors: the people at the other end read the writing
            behind you.
        audio_path: file whose audio a recording copies, or ``None``.
        audio_rate: pictures per second in the clock of that audio, so that picture number ``seq`` is shown at
            ``seq / audio_rate``; 0 without audio.
        overwrite: a recording may replace a file of the same name.
        notes: lines that the sink puts in front of its own facts, e.g. why a better kind was not taken.
        station: where viewers on the network get their picture from; the kinds that need one refuse to open without.
    """

    size: Size
    fps: float = 0.0
    live: bool = True
    title: str = "doppelcam"
    mirror: bool = False
    audio_path: str | None = None
    audio_rate: Fraction = Fraction(0)
    overwrite: bool = False
    notes: tuple[str, ...] = ()
    station: Station | None = None


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """One output as the person named it.

    Attributes:
        kind: a key of ``SINKS``, or "auto".
        target: device, or path of the file; empty for the first device there is, and for kinds that need none.
    """

    kind: str
    target: str = ""


class Sink(Protocol):
    """One opened receiver of pictures. Opened by its constructor, used by one thread (its emitter), closed once."""

    @property
    def info(self) -> SinkInfo:
        """What is really taken; constant after the constructor has returned."""

    def write(self, frame: Frame) -> None:
        """Deliver one picture; never writes into ``frame.pixels``.

        Args:
            frame: its pixels have the size of ``info.size`` (the loop's emitter sees to that).

        Raises:
            SinkError: the picture could not be delivered; ``fatal=False`` when opening again may help.
            SinkClosed: the person closed the sink; the run ends as if it had reached its last picture.
        """

    def close(self) -> None:
        """Finish and give the device back. Safe to call twice.

        Raises:
            SinkError: what was delivered could not be finished, e.g. the disk is full.
        """


class SinkClosed(Exception):  # noqa: N818 - no error: the person has seen enough
    """The person closed the sink (a window). The loop stops all sinks in order and the run succeeds."""


class SinkMissingError(SinkError):
    """This machine has nothing of the kind: no virtual camera is installed, no display is attached.

    ``auto`` goes on to the next kind on this error only; a device that exists and fails is reported, not passed over.
    """


def even_size(size: Size) -> Size:
    """The largest size with even width and height inside ``size``, at least 2x2.

    Colour at half resolution (4:2:0) needs it: the virtual camera's readers break on odd sizes, and H.264 refuses them.
    Rounding down means that the picture loses its last column or row, untouched otherwise; padding would show a seam,
    and scaling by one pixel would soften all of it.
    """
    return Size(max(2, size.w & ~1), max(2, size.h & ~1))


def parse_output(text: str) -> SinkSpec:
    """Read one ``--output``: "auto", "virtualcam", "virtualcam:/dev/video10", "out.mp4", "preview" or "null".

    Pure: looks at the words only, never at devices or files. "recording:NAME" and a bare "/dev/video10" work too.

    Raises:
        ConfigError: the text names no output; the hint offers near matches.
    """
    text = text.strip()
    kind, colon, target = text.partition(":")
    if kind.strip().lower() == "whip":
        return _by_whip(target.strip(), text)
    if "://" in text:
        return _streamed(text)
    kind = kind.strip().lower()
    if kind in SINKS or kind == "auto":
        return _checked(kind, target.strip(), text)
    if not colon and text.startswith("/dev/video"):
        return SinkSpec("virtualcam", text)
    suffix = PurePath(text).suffix.lower()
    if suffix in RECORDING_SUFFIXES:
        return SinkSpec("recording", text)
    if suffix:
        raise ConfigError(
            f"output '{text}': a recording cannot be a {suffix} file",
            f"name a file that ends in {', '.join(RECORDING_SUFFIXES)}",
        )
    near = difflib.get_close_matches(kind, ["auto", *SINKS], n=1)
    raise ConfigError(
        f"output '{text}' is not known",
        f"did you mean '{near[0]}'?"
        if near
        else "use auto, virtualcam[:DEVICE], preview, webrtc, rtmp://... or FILE.mp4",
    )


def _by_whip(address: str, text: str) -> SinkSpec:
    if not address.lower().startswith(("https://", "http://")):
        raise ConfigError(
            f"output '{text}' names no WHIP server", "write its address, e.g. whip:https://host/live/whip"
        )
    return SinkSpec("whip", address)


def _streamed(address: str) -> SinkSpec:
    scheme = address.partition("://")[0].lower()
    if scheme not in STREAM_SCHEMES:
        raise ConfigError(
            f"no stream is sent over {scheme}://", f"known are {', '.join(f'{known}://' for known in STREAM_SCHEMES)}"
        )
    return SinkSpec("stream", address)


def _checked(kind: str, target: str, text: str) -> SinkSpec:
    """Refuse a target where the kind has none, and a recording without a name."""
    if kind in {"auto", "preview", "webrtc", "null"} and target:
        raise ConfigError(f"output '{text}': {kind} takes nothing after the colon", f"write just '{kind}'")
    if kind == "stream":
        raise ConfigError(f"output '{text}' names no stream", "write its address, e.g. rtmp://host/app/key")
    if kind == "recording" and not target:
        raise ConfigError(f"output '{text}' names no file", "write the file's name, e.g. recording.mp4")
    return SinkSpec(kind, target)


def open_sink(spec: SinkSpec, wish: SinkWish) -> Sink:
    """Open what the person named.

    ``auto`` takes a virtual camera where one exists, else a preview window where there is a display; why the better
    one was not taken becomes a fact of the one that was.

    Raises:
        SinkError: it cannot be opened, or ``auto`` found neither.
    """
    if spec.kind != "auto":
        return _open(spec.kind, spec.target, wish)
    missing: list[SinkMissingError] = []
    for kind in AUTO:
        try:
            return _open(kind, "", replace(wish, notes=(*wish.notes, *(error.message for error in missing))))
        except SinkMissingError as error:
            missing.append(error)
    raise SinkError(
        "nowhere to show the picture: " + "; ".join(error.message for error in missing),
        missing[0].hint + "; or record instead: --output out.mp4",
    )


def _open(kind: str, target: str, wish: SinkWish) -> Sink:
    module, _, name = SINKS[kind].partition(":")
    return cast("Sink", getattr(importlib.import_module(module), name)(target, wish))
