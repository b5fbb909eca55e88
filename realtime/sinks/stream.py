"""The picture as a live stream to a server or player: RTMP, SRT, UDP, TCP; knows addresses, encodes nothing itself.

Encoding and sending have a process of their own: PyAV connects an output without a time limit and with Python's lock
held, so a server that accepts and then says nothing would stop the whole program (seen with RTMP). A process can be
ended. Only the newest picture waits, so a slow network costs pictures, never delay.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

from realtime.errors import SinkError
from realtime.mailbox import POLL_S, Mailbox
from realtime.sinks import STREAM_SCHEMES, SinkInfo, SinkWish, even_size
from realtime.sinks.sender import KBPS, STAMP
from realtime.types import Frame

OPEN_S = 8.0
"""Until the other side answers: the process has to start, too."""
WRITE_S = 2.0
"""Until it has taken a picture."""
CLOSE_S = 0.3
USUAL_FPS = 30.0


class Stream:
    """One connection."""

    def __init__(self, target: str, wish: SinkWish) -> None:
        """Connect.

        Args:
            target: the address; keys and passwords in it never reach a message.
            wish: size and rate.

        Raises:
            SinkError: no answer, or refused (``fatal=False``); or this FFmpeg does not know the protocol.
        """
        scheme = target.partition("://")[0].lower()
        if scheme not in STREAM_SCHEMES:
            raise SinkError(f"no stream is sent over {scheme}://", f"known are {', '.join(STREAM_SCHEMES)}")
        self._name = f"stream to {shown(target)}"
        self._info = SinkInfo(
            self._name,
            even_size(wish.size),
            wish.fps or USUAL_FPS,
            live=True,
            facts=(*wish.notes, f"H.264 at {KBPS / 1000:g} Mbit/s, without sound"),
        )
        self._inbox: Mailbox[Frame] = Mailbox()
        self._ready = threading.Event()
        self._why = ""  # it has ended
        self._since_s = 0.0  # when a picture was handed over that was not taken yet; 0 while none is
        command = [sys.executable, "-m", "realtime.sinks.sender"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._thread = threading.Thread(target=self._run, args=(target,), name="stream", daemon=True)
        self._thread.start()
        answered = self._ready.wait(OPEN_S)
        if why := self._why if answered else f"no answer for {OPEN_S:.0f} s":
            self.close()
            raise self._lost("cannot be opened", why)

    @property
    def info(self) -> SinkInfo:
        """Even size, at a steady cadence: players take a pause for the end."""
        return self._info

    def write(self, frame: Frame) -> None:
        """Hand over one picture; never waits.

        Raises:
            SinkError: the other side is gone, or has taken nothing for ``WRITE_S`` (``fatal=False``).
        """
        since_s = self._since_s
        if since_s and time.monotonic() - since_s > WRITE_S:
            raise self._lost("was lost", f"nothing was taken for {WRITE_S:.0f} s")
        if self._why:
            raise self._lost("was lost", self._why)
        self._inbox.put(frame)

    def close(self) -> None:
        """End the stream, at once where the other side takes nothing. Safe to call twice."""
        self._inbox.close()
        self._thread.join(CLOSE_S)
        self._process.kill()
        self._process.wait()
        self._thread.join(CLOSE_S)
        self._why = self._why or "it is closed"

    def _run(self, target: str) -> None:
        """Body of the thread: pictures go in at one end of the process, and what it has to say comes out."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        width, height = self._info.size
        wish = {"target": target, "width": width, "height": height, "fps": self._info.fps}
        try:
            with stdin:
                stdin.write(json.dumps(wish).encode() + b"\n")
                stdin.flush()
                self._why = _reason(stdout.readline())
                self._ready.set()
                while not (self._inbox.ended or self._why):
                    frame = self._inbox.get(POLL_S)
                    if frame is not None:
                        self._since_s = time.monotonic()
                        stdin.write(STAMP.pack(frame.t_capture_s))
                        stdin.write(frame.pixels.data)
                        stdin.flush()
                        self._since_s = 0.0
        except (OSError, ValueError):  # it has ended, and has said why
            self._why = _reason(stdout.readline()) or "the process that sends has ended"
        finally:
            self._ready.set()
            stdout.close()

    def _lost(self, what: str, why: str) -> SinkError:
        hint = "check the address and the key, and that the server runs; it is opened again by itself"
        return SinkError(f"{self._name} {what}: {why}", hint, fatal=False)


def _reason(line: bytes) -> str:
    """What the process says: why it cannot go on, empty where all is well."""
    try:
        return str(json.loads(line)["why"])
    except (ValueError, KeyError):
        return "the process that sends did not start" if not line else ""


def shown(address: str) -> str:
    """An address without what must not be seen: name, password, and the path and query, where stream keys are."""
    parts = urlsplit(address)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{'/...' if len(parts.path) > 1 or parts.query else ''}"
