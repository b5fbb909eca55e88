"""Where pictures come from: the ``Source`` contract, the table of kinds and the words for them; knows no device."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, Protocol, cast

from realtime.errors import ConfigError
from realtime.suggest import near_files, near_words
from realtime.types import Frame, Size

if TYPE_CHECKING:
    from realtime.web.station import Station

SOURCES: Mapping[str, str] = MappingProxyType(
    {
        "auto": "realtime.sources.auto:AutoSource",
        "camera": "realtime.sources.camera:CameraSource",
        "video": "realtime.sources.video:VideoSource",
        "image": "realtime.sources.image:ImageSource",
        "demo": "realtime.sources.demo:DemoSource",
        "url": "realtime.sources.url:UrlSource",
        "screen": "realtime.sources.screen:ScreenSource",
        "browser": "realtime.sources.peer:BrowserSource",
        "whip": "realtime.sources.peer:WhipSource",
    }
)
"""Kind -> "module:Class", imported when opened; every class is called ``Class(target: str, wish: SourceWish)``."""

NETWORKED = frozenset({"browser", "whip"})
"""Kinds whose pictures come through the program's own web server."""

URL_SCHEMES = ("http", "https", "rtmp", "rtmps", "rtp", "rtsp", "rtsps", "srt", "tcp", "udp")
"""What ``url`` opens; which of them the FFmpeg inside PyAV really has is found out when one is opened."""

IMAGE_SUFFIXES = frozenset({".avif", ".bmp", ".jfif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"})
"""Names of still pictures; every other file is taken for a video (an animated .gif is one)."""

INPUT_HINT = (
    "give auto, demo, a camera number (0), camera:NAME, a video or picture file, "
    "a stream (rtsp://, http://, udp://), screen, screen:N, screen:X,Y,W,H, browser or whip"
)


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """What to open: a kind of the table and what that kind should open.

    Attributes:
        kind: a key of ``SOURCES``.
        target: a path, an address, a camera's number, name or path, a monitor or region; empty for "the usual one".
    """

    kind: str
    target: str = ""


@dataclass(frozen=True, slots=True)
class SourceWish:
    """How pictures are wanted. What a device refuses is said in ``SourceInfo.facts``, never in silence.

    Attributes:
        size: a camera is asked for it; every other source fits its pictures into it, with black bars where the shape
            differs. ``None``: the source's own size.
        fps: a camera is asked for it; a file is resampled to it (repeating and leaving out pictures, same speed); a
            still, the demo and the screen are paced by it. Greater than 0; ``None``: the source's own rate.
        loop: a file starts again at its end.
        paced: ``False`` hands over every picture of a file as fast as it is read; devices and streams have their own
            time and ignore it.
        fourcc: what a camera sends over its cable: "mjpg" compressed, "raw" as the driver likes, "auto" compressed
            where raw pictures of the wanted size and rate would not fit through USB 2.
        station: where pictures from the network arrive; the kinds that need one refuse to open without.
    """

    size: Size | None = None
    fps: float | None = None
    loop: bool = False
    paced: bool = True
    fourcc: Literal["auto", "mjpg", "raw"] = "auto"
    station: Station | None = None


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """What a source really delivers, read back from the device or file after it was opened.

    Attributes:
        name: for people: "Logitech C920 (/dev/video0)", "clip.mkv", "demo".
        size: of the first picture; a later frame may differ (a stream that changes size), so never rely on it.
        fps: pictures per second that the device or file claims; 0 when unknown.
        live: ``True`` when pictures come at their own time and a late reader must skip; ``False`` when the source
            waits for the reader and every picture counts (file, as fast as possible).
        facts: lines for the start banner: the format that was negotiated, and each setting that was refused, e.g.
            "asked for 1280x720, the camera gives 640x480".
        frames: pictures until the end, as far as the file promises; 0 when there is no end or nobody knows.
        audio_path: path of a file whose audio belongs to these pictures (a recording copies it), or ``None``.
        audio_rate: pictures per second in the clock of that audio; 0 without audio.
        reopen: what opens the same device again even after it was plugged into another port (a camera number may then
            belong to another camera); ``None`` when the spec it was opened with does.
        patient: silence is no fault: pictures come when somebody sends some.
    """

    name: str
    size: Size
    fps: float
    live: bool
    facts: tuple[str, ...] = ()
    frames: int = 0
    audio_path: str | None = None
    audio_rate: Fraction = Fraction(0)
    reopen: SourceSpec | None = None
    patient: bool = False


class Source(Protocol):
    """One opened source of pictures. Opened by its constructor, used by one thread, closed once.

    ``read`` may block for as long as the device blocks: the capture thread owns that, and its watchdog decides what a
    silence means. A source never starts a thread of its own.
    """

    @property
    def info(self) -> SourceInfo:
        """What is really delivered; constant after the constructor has returned."""

    def read(self) -> Frame | None:
        """Block until the next picture, stamp it and hand it over.

        Returns:
            The frame (the caller owns its pixels), or ``None`` at the end of a file.

        Raises:
            SourceError: ``fatal=False`` when the device went away or the source was closed (opening again may help),
                else ``fatal=True``.
        """

    def close(self) -> None:
        """Give the device back. Safe to call twice, and from another thread than the reader's."""


def open_source(spec: SourceSpec, wish: SourceWish) -> Source:
    """Open what ``spec`` says.

    Raises:
        ConfigError: the target cannot be understood, or the kind is unknown.
        SourceError: the device, file or stream cannot be opened; ``fatal=False`` when trying again may help.
    """
    if spec.kind not in SOURCES:
        raise ConfigError(f"there is no source of the kind {spec.kind!r}", f"kinds are {', '.join(SOURCES)}")
    module, _, name = SOURCES[spec.kind].partition(":")
    opener = cast("Callable[[str, SourceWish], Source]", getattr(importlib.import_module(module), name))
    return opener(spec.target, wish)


def parse_input(text: str) -> SourceSpec:
    """Read what a person typed for ``--input``. Opens nothing; looks only whether a file is there.

    Args:
        text: "auto", "demo", "0", "camera:NAME", "camera:/dev/v4l/by-id/...", "/dev/video2", a file, "rtsp://...",
            "screen", "screen:1", "screen:X,Y,W,H".

    Raises:
        ConfigError: it cannot be understood or the file does not exist; the hint names what is near.
    """
    text = text.strip()
    if not text:
        raise ConfigError("the input is empty", INPUT_HINT)
    if text.isascii() and text.isdigit():
        return SourceSpec("camera", str(int(text)) if len(text) < 6 else text)
    if text.startswith(("/dev/video", "/dev/v4l/")):
        return SourceSpec("camera", text)
    if scheme := re.match(r"([a-z][a-z0-9+.-]+)://", text, re.IGNORECASE):
        return _stream(scheme[1].lower(), text)
    word, _, rest = text.partition(":")
    if word in {"camera", "screen"}:
        return SourceSpec(word, rest.strip())
    if text in {"auto", "demo", *NETWORKED}:
        return SourceSpec(text)
    return _file(text)


def _stream(scheme: str, text: str) -> SourceSpec:
    if scheme in URL_SCHEMES:
        return SourceSpec("url", text)
    if scheme == "file":
        raise ConfigError(f"{text!r} is a file's address", "give the plain path of the file")
    near = near_words(scheme, URL_SCHEMES)
    raise ConfigError(
        f"no stream is read over {scheme}://", f"{near}known are {', '.join(f'{known}://' for known in URL_SCHEMES)}"
    )


def _file(text: str) -> SourceSpec:
    path = Path(text).expanduser() if text.startswith("~/") else Path(text)
    try:
        found, is_folder = path.exists(), path.is_dir()
    except (OSError, ValueError):  # a name too long, a character no file system takes
        found = is_folder = False
    if is_folder:
        raise ConfigError(f"{text!r} is a folder", "give one video or picture file in it")
    if not found:
        words = ("auto", "camera", "demo", "screen", *sorted(NETWORKED))
        near = near_words(text.partition(":")[0].lower(), words) or near_files(path)
        raise ConfigError(f"the input {text!r} is no file and no known word", near + INPUT_HINT)
    return SourceSpec("image" if path.suffix.lower() in IMAGE_SUFFIXES else "video", str(path))
