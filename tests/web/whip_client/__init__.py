"""An OBS-like WHIP client for the tests: libdatachannel in Node.js, installed by npm when a test asks for it."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.audio.codeccontext import AudioCodecContext
from av.video.codeccontext import VideoCodecContext
from av.video.frame import PictureType

from tests.web import stamp
from tests.web.camera_file import FPS, PICTURES

FOLDER = Path(__file__).parent
NPM_S = 120.0
KEYFRAME_EVERY = 2 * FPS
"""Pictures, as OBS does by default."""
SOUND_SAMPLES = 960


def install(folder: Path) -> str:
    """Let npm install the library into ``folder``.

    Returns:
        Why that failed, empty where it did not.
    """
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        return "Node.js and npm are not installed"
    shutil.copy(FOLDER / "package.json", folder)
    command = [npm, "install", "--no-audit", "--no-fund", "--silent"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=NPM_S, check=False)
    except subprocess.TimeoutExpired:
        return "npm did not end"
    return "" if done.returncode == 0 else f"npm could not install node-datachannel: {done.stderr.strip()[-200:]}"


def write_film(path: Path, camera: Path) -> Path:
    """Write what the client sends: numbered pictures as H.264, and a tone as Opus.

    Args:
        path: of the film.
        camera: file of the numbered pictures.

    Returns:
        ``path``.
    """
    records = [*_pictures(camera), *_tone(PICTURES / FPS)]
    with path.open("wb") as file:
        for at_us, kind, data in sorted(records, key=lambda record: record[0]):
            file.write(struct.pack("<BII", kind, at_us, len(data)) + data)
    return path


def _pictures(camera: Path) -> Iterator[tuple[int, int, bytes]]:
    encoder = av.CodecContext.create("libx264", "w")
    assert isinstance(encoder, VideoCodecContext)
    encoder.width, encoder.height, encoder.pix_fmt = stamp.PICTURE.w, stamp.PICTURE.h, "yuv420p"
    encoder.bit_rate, encoder.time_base, encoder.framerate = 2_500_000, Fraction(1, FPS), Fraction(FPS)
    encoder.options = {
        "preset": "veryfast",
        "tune": "zerolatency",
        "profile": "baseline",
        "g": str(KEYFRAME_EVERY),
        "x264-params": "repeat-headers=1:bframes=0",
    }
    with av.open(str(camera)) as container:
        for number, picture in enumerate(container.decode(video=0)):
            picture.pts, picture.time_base = number, Fraction(1, FPS)
            picture.pict_type = PictureType.NONE
            for packet in encoder.encode(picture):
                yield number * 1_000_000 // FPS, 0, bytes(packet)


def _tone(seconds: float) -> Iterator[tuple[int, int, bytes]]:
    encoder = av.CodecContext.create("libopus", "w")
    assert isinstance(encoder, AudioCodecContext)
    encoder.sample_rate, encoder.layout, encoder.format = 48000, "stereo", "s16"
    for number in range(int(seconds * 48000 / SOUND_SAMPLES)):
        t_s = (np.arange(SOUND_SAMPLES) + number * SOUND_SAMPLES) / 48000
        tone = (8000 * np.sin(2 * np.pi * 440 * t_s)).astype(np.int16)
        frame = av.AudioFrame.from_ndarray(np.repeat(tone, 2)[None], format="s16", layout="stereo")
        frame.sample_rate, frame.pts = 48000, number * SOUND_SAMPLES
        for packet in encoder.encode(frame):
            yield number * SOUND_SAMPLES * 1_000_000 // 48000, 1, bytes(packet)


@dataclass(frozen=True)
class Film:
    """What a client needs.

    Attributes:
        modules: folder in which npm has installed.
        path: of what is sent.
    """

    modules: Path
    path: Path

    def send(self, url: str, seconds: float, **wish: Any) -> WhipClient:
        """Start a client. See ``client.mjs`` for further wishes."""
        return WhipClient(self, url, seconds, **wish)


@dataclass(frozen=True)
class WhipRun:
    """What a client told.

    Attributes:
        code: it ended with: 0 done, 3 refused, 4 the connection was lost.
        events: "answered", "state", "open", "sent", "deleted" and the like, each with ``t_s`` (s since 1970).
    """

    code: int
    events: tuple[dict[str, Any], ...]

    def of(self, name: str) -> list[dict[str, Any]]:
        """The events of one name, oldest first."""
        return [event for event in self.events if event["event"] == name]


class WhipClient:
    """One client in a process of its own."""

    def __init__(self, film: Film, url: str, seconds: float, **wish: Any) -> None:
        told = json.dumps({"url": url, "film": str(film.path), "seconds": seconds, **wish})
        command = ["node", str(FOLDER / "client.mjs"), told]
        environment = {**os.environ, "WHIP_CLIENT_MODULES": str(film.modules)}
        self._process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    def finish(self, timeout_s: float) -> WhipRun:
        """Wait for its end."""
        out, _ = self._process.communicate(timeout=timeout_s)
        return WhipRun(self._process.returncode, tuple(json.loads(line) for line in out.splitlines()))

    def kill(self) -> None:
        """End it as a crash would: no DELETE, no goodbye."""
        self._process.kill()
        self._process.communicate()
