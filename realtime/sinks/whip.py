"""The picture to a WebRTC server by WHIP (RFC 9725), such as a stream server; knows the protocol, keeps no pace.

aiortc lives on an asyncio loop, and an output may exist without the web server, so each has a thread with a loop of its
own. It never computes: encoding has an executor, and what is written is only the newest picture.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from urllib.parse import urldefrag, urljoin

import httpx

from realtime.errors import SinkError, install_extra
from realtime.sinks import SinkInfo, SinkWish, even_size
from realtime.sinks.sender import KBPS
from realtime.sinks.stream import shown
from realtime.types import Frame
from realtime.web.station import Outlet

if TYPE_CHECKING:
    from aiortc import RTCPeerConnection

TOKEN = "DOPPELCAM_WHIP_TOKEN"
ANSWER_S = 8.0
"""For the server's answer, as OBS waits for it."""
CONNECT_S = 10.0
"""From the answer to the connection."""
LEAVE_S = 0.5
USUAL_FPS = 30.0
_HINT = "check the address and the token, and that the server takes H.264 by WHIP; it is tried again by itself"


class Whip:
    """One session at a server."""

    def __init__(self, target: str, wish: SinkWish) -> None:
        """Connect.

        Args:
            target: "https://host/path"; a token comes behind a "#", or from the environment (``TOKEN``), and reaches
                neither a message nor the address that is asked.
            wish: size and rate.

        Raises:
            SinkError: aiortc is missing; or no answer, refused, not connected (``fatal=False``).
        """
        try:
            import aiortc  # noqa: F401, PLC0415  (half a second, only where it is used)
        except ModuleNotFoundError as error:
            raise SinkError(f"WHIP needs the package {error.name}", install_extra("webrtc")) from error
        self._url, token = urldefrag(target)
        self._token = token or os.environ.get(TOKEN, "")
        self._name = f"WHIP to {shown(self._url)}"
        self._info = SinkInfo(
            self._name,
            even_size(wish.size),
            wish.fps or USUAL_FPS,
            live=True,
            facts=(*wish.notes, f"H.264 at {KBPS / 1000:g} Mbit/s, without sound"),
            any_size=True,
        )
        self._outlet = Outlet()
        self._ready, self._why = threading.Event(), ""
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="whip", daemon=True)
        self._thread.start()
        answered = self._ready.wait(ANSWER_S + CONNECT_S)
        if why := self._why if answered else "no connection":
            self.close()
            raise self._lost("cannot be opened", why)

    @property
    def info(self) -> SinkInfo:
        """Every even size, at a steady cadence."""
        return self._info

    def write(self, frame: Frame) -> None:
        """Show a picture; never waits.

        Raises:
            SinkError: the connection is gone (``fatal=False``).
        """
        if self._why:
            raise self._lost("was lost", self._why)
        self._outlet.show(frame)

    def close(self) -> None:
        """Leave. Safe to call twice."""
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(2 * LEAVE_S)
        self._why = self._why or "it is closed"

    def _run(self) -> None:
        """Body of the thread."""
        try:
            self._loop.run_until_complete(self._session())
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            self._why = str(error) or type(error).__name__
        except (_Refused, ValueError) as error:
            self._why = str(error)
        finally:
            self._why = self._why or "the connection has ended"
            self._ready.set()
            self._loop.close()

    async def _session(self) -> None:
        """From the offer to the end, whoever ends it."""
        from aiortc import RTCPeerConnection, RTCRtpSender, RTCSessionDescription  # noqa: PLC0415

        from realtime.web.send import Broadcast  # noqa: PLC0415

        connection, ended = RTCPeerConnection(), asyncio.Event()
        connection.on("connectionstatechange", lambda: self._changed(connection, ended))
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        with ThreadPoolExecutor(1, thread_name_prefix="encode") as executor:
            broadcast = Broadcast(self._outlet, "h264", KBPS, executor)
            async with httpx.AsyncClient(headers=headers, timeout=ANSWER_S, follow_redirects=True) as web:
                place = ""
                try:
                    track = broadcast.join()
                    known = RTCRtpSender.getCapabilities("video").codecs
                    offered = [codec for codec in known if codec.name.upper() in ("H264", "RTX")]
                    transceiver = connection.addTransceiver(track, direction="sendonly")
                    transceiver.setCodecPreferences(offered)
                    track.attach(transceiver.sender)
                    await connection.setLocalDescription(await connection.createOffer())
                    place, answer = await self._offer(web, connection.localDescription.sdp)
                    await connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))
                    await self._until_the_end(connection, ended)
                finally:
                    if place:
                        with contextlib.suppress(httpx.HTTPError):
                            await web.delete(place, timeout=LEAVE_S)
                    await broadcast.close()
                    await connection.close()

    async def _offer(self, web: httpx.AsyncClient, sdp: str) -> tuple[str, str]:
        answer = await web.post(self._url, content=sdp, headers={"Content-Type": "application/sdp"})
        if answer.status_code != httpx.codes.CREATED or "location" not in answer.headers:
            raise _Refused(f"the server answers {answer.status_code} {answer.reason_phrase}")
        return urljoin(str(answer.url), answer.headers["location"]), answer.text

    def _changed(self, connection: RTCPeerConnection, ended: asyncio.Event) -> None:
        if connection.connectionState == "connected":
            self._ready.set()
        elif connection.connectionState in ("failed", "closed"):
            ended.set()

    async def _until_the_end(self, connection: RTCPeerConnection, ended: asyncio.Event) -> None:
        waits = [asyncio.create_task(event.wait()) for event in (ended, self._stop)]
        try:
            await asyncio.wait(waits, timeout=CONNECT_S, return_when=asyncio.FIRST_COMPLETED)
            if connection.connectionState == "connected":
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            elif not self._stop.is_set():
                raise _Refused("no connection, though the server answered")
        finally:
            for wait in waits:
                wait.cancel()

    def _lost(self, what: str, why: str) -> SinkError:
        return SinkError(f"{self._name} {what}: {why}", _HINT, fatal=False)


class _Refused(Exception):  # noqa: N818 - becomes a SinkError where it is told
    """The server does not take the picture; the text says why."""
