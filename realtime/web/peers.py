"""Everybody who is connected by WebRTC: who sends, who watches, how many may, and how each ends; knows no HTTP."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from aiortc import (
    RTCConfiguration,
    RTCIceServer,
    RTCPeerConnection,
    RTCRtpCodecCapability,
    RTCRtpSender,
    RTCRtpTransceiver,
    RTCSessionDescription,
)
from aiortc.exceptions import InvalidAccessError, InvalidStateError, OperationError
from aiortc.sdp import SessionDescription

from realtime.config.settings import WebSettings
from realtime.errors import LiveError
from realtime.web.audio import Sound
from realtime.web.encode import CODECS, CodecName
from realtime.web.receive import feed
from realtime.web.sdp import with_bitrate
from realtime.web.send import Broadcast, EncodedTrack
from realtime.web.station import Inlet, Seat, Station

CONNECT_S = 15.0
"""A peer that is not connected by then is let go."""
_NAMES: dict[str, tuple[CodecName, ...]] = {"auto": ("h264", "vp8"), "h264": ("h264",), "vp8": ("vp8",)}
"""What each choice of ``web.codec`` agrees to, the one it likes best first."""

_UNREADABLE = (ValueError, KeyError, IndexError, AssertionError, AttributeError, TypeError, StopIteration)
"""What aiortc raises over text that only looks like an offer: it takes most of SDP on trust."""


class PeerError(LiveError):
    """A peer cannot be served.

    Attributes:
        status: of the HTTP answer: 400 what was sent is no offer, 406 nothing in it can be served, 503 no room.
    """

    exit_code = 3

    def __init__(self, status: int, message: str, hint: str) -> None:
        super().__init__(message, hint)
        self.status = status


@dataclass(frozen=True, slots=True)
class Answer:
    """What a peer is told.

    Attributes:
        sdp: the answer, with all candidates.
        peer_id: names the connection; cannot be guessed.
    """

    sdp: str
    peer_id: str


@dataclass(frozen=True, slots=True)
class PeerInfo:
    """One peer, for people.

    Attributes:
        who: as it was introduced.
        kind: "sends", "watches" or both.
        state: of its connection: "connecting", "connected" ...
        seconds: since it came.
        codec: that it watches in, empty where it does not.
        kbps: that the picture is sent at.
    """

    who: str
    kind: str
    state: str
    seconds: float
    codec: str
    kbps: int


@dataclass(slots=True)
class _Peer:
    connection: RTCPeerConnection
    who: str
    since_s: float
    kind: str = ""
    codec: CodecName | None = None
    seat: Seat | None = None
    came: bool = False  # it was connected once
    tasks: tuple[asyncio.Task[None], ...] = ()
    made: asyncio.Event = field(default_factory=asyncio.Event)


class Peers:
    """All peers. To be made and used on one loop's thread.

    Args:
        station: where their pictures go to and come from.
        settings: of the web room.
        on_event: told in words who comes and goes.
    """

    def __init__(self, station: Station, settings: WebSettings, *, on_event: Callable[[str], None]) -> None:
        self._station, self._settings, self._on_event = station, settings, on_event
        self._loop = asyncio.get_running_loop()
        self._executor = ThreadPoolExecutor(2, thread_name_prefix="encode")
        self._broadcasts: dict[CodecName, Broadcast] = {}
        self._sound = Sound(lambda: station.outlet.delay_s)
        self._peers: dict[str, _Peer] = {}

    async def answer(self, offer_sdp: str, who: str, *, sends: Inlet | None, watches: bool) -> Answer:
        """Connect a peer.

        Args:
            offer_sdp: all of it: no candidates are taken later.
            who: for people.
            sends: where its video goes to; ``None`` where it sends none.
            watches: whether it gets the picture.

        Raises:
            PeerError: it cannot be served, and nothing is left of it.
        """
        _check(offer_sdp, sends=sends is not None, watches=watches)
        if len(self._peers) >= self._settings.peers:
            raise PeerError(503, f"{len(self._peers)} peers are connected, which is the most", "raise web.peers")
        connection = RTCPeerConnection(_configuration(self._settings.ice_servers))
        peer_id = secrets.token_urlsafe(12)
        peer = _Peer(connection, who, self._loop.time())
        self._peers[peer_id] = peer
        try:
            try:
                await self._connect(peer, peer_id, offer_sdp, sends, watches=watches)
            finally:
                peer.made.set()
        except (*_UNREADABLE, InvalidAccessError, InvalidStateError) as error:
            await self.close(peer_id)
            raise PeerError(400, f"the offer cannot be read: {error}", "send a complete WebRTC offer") from error
        except OperationError as error:
            await self.close(peer_id)
            wants = " or ".join(CODECS[name].mime for name in _NAMES[self._settings.codec])
            raise PeerError(406, "the offer has no format that is spoken here", f"offer {wants}") from error
        except BaseException:
            await self.close(peer_id)
            raise
        return Answer(with_bitrate(connection.localDescription.sdp, self._settings.bitrate_kbps), peer_id)

    async def close(self, peer_id: str) -> bool:
        """End a connection; says whether there was one."""
        peer = self._peers.pop(peer_id, None)
        if peer is None:
            return False
        if peer.seat is not None:
            peer.seat.leave()
        for task in peer.tasks:
            if task is not asyncio.current_task():
                task.cancel()
        await peer.made.wait()  # one that is closed while it looks for its addresses opens them afterwards, for good
        await _end(peer.connection)
        self._count_viewers()
        if peer.came:
            self._on_event(f"{peer.who} has left")
        return True

    async def close_all(self) -> None:
        """End everything; nothing can be answered afterwards."""
        await asyncio.gather(*(self.close(peer_id) for peer_id in tuple(self._peers)))
        await asyncio.gather(*(broadcast.close() for broadcast in self._broadcasts.values()))
        self._executor.shutdown(wait=False, cancel_futures=True)

    def describe(self) -> tuple[PeerInfo, ...]:
        """Who is connected now."""
        now_s = self._loop.time()
        return tuple(
            PeerInfo(
                peer.who,
                peer.kind,
                peer.connection.connectionState,
                now_s - peer.since_s,
                peer.codec or "",
                self._broadcasts[peer.codec].kbps if peer.codec else 0,
            )
            for peer in self._peers.values()
        )

    async def _connect(self, peer: _Peer, peer_id: str, offer_sdp: str, sends: Inlet | None, *, watches: bool) -> None:
        connection = peer.connection
        connection.on("connectionstatechange", partial(self._changed, peer_id))
        connection.addTransceiver("video", direction="sendrecv").setCodecPreferences(
            _preferences(_NAMES[self._settings.codec])
        )
        await connection.setRemoteDescription(RTCSessionDescription(offer_sdp, "offer"))
        tasks = [self._loop.create_task(self._let_go_of_the_late(peer_id), name="connect")]
        videos = [one for one in connection.getTransceivers() if one.kind == "video" and one.mid is not None]
        watched = False
        for one in videos:
            takes = sends is not None and one.receiver.track is not None and peer.seat is None
            shows = watches and not watched and _wants(one)
            if takes and sends is not None:
                peer.seat = sends.occupy(peer.who, partial(self._displaced, peer_id))
                feed(one.receiver, peer.seat)
            if shows:
                watched = True
                self._show(peer, one)
            one.direction = _direction(takes=takes, shows=shows)
        for one in connection.getTransceivers():
            if one.kind == "audio" and one.mid is not None:
                takes, shows = peer.seat is not None and one.receiver.track is not None, watched and _wants(one)
                if takes:
                    tasks.append(self._loop.create_task(self._sound.carry(one.receiver.track), name="sound"))
                if shows:
                    one.sender.replaceTrack(self._sound.join())
                one.direction = _direction(takes=takes, shows=shows)
        peer.tasks = tuple(tasks)
        peer.kind = " and ".join(["sends"] * (peer.seat is not None) + ["watches"] * watched)
        if not peer.kind:
            wanted = "sends no video" if sends is not None else "wants no video"
            raise PeerError(406, f"the offer {wanted}", "offer a video section of that direction")
        await connection.setLocalDescription(await connection.createAnswer())

    def _show(self, peer: _Peer, one: RTCRtpTransceiver) -> None:
        """Give a viewer its track, in the format that was agreed on."""
        mime = one._codecs[0].mimeType.lower()  # agreed on, and told nowhere else before the connection
        peer.codec = codec = next(name for name, codec in CODECS.items() if codec.mime.lower() == mime)
        track = self._broadcast(codec).join()
        one.sender.replaceTrack(track)
        track.attach(one.sender)
        peer.connection.on("connectionstatechange", partial(_stop_when_closed, peer.connection, track))

    def _broadcast(self, codec: CodecName) -> Broadcast:
        if codec not in self._broadcasts:
            kbps = self._settings.bitrate_kbps
            self._broadcasts[codec] = Broadcast(self._station.outlet, codec, kbps, self._executor)
        return self._broadcasts[codec]

    def _changed(self, peer_id: str) -> None:
        peer = self._peers.get(peer_id)
        if peer is None:
            return
        if peer.connection.connectionState == "connected":
            peer.came = True
            self._count_viewers()
            self._on_event(f"{peer.who} {peer.kind}")
        elif peer.connection.connectionState in ("failed", "closed"):
            self._close_soon(peer_id)

    def _count_viewers(self) -> None:
        watching = [peer.who for peer in self._peers.values() if peer.codec and _is_connected(peer)]
        self._station.outlet.viewers = tuple(watching)

    def _displaced(self, peer_id: str) -> None:
        """Called where another peer has taken the place."""
        self._loop.call_soon_threadsafe(self._close_soon, peer_id)

    def _close_soon(self, peer_id: str) -> None:
        task = self._loop.create_task(self.close(peer_id), name="close")
        _KEEP.add(task)
        task.add_done_callback(_KEEP.discard)

    async def _let_go_of_the_late(self, peer_id: str) -> None:
        await asyncio.sleep(CONNECT_S)
        peer = self._peers.get(peer_id)
        if peer is not None and peer.connection.connectionState != "connected":
            self._on_event(f"{peer.who} did not connect within {CONNECT_S:.0f} s")
            await self.close(peer_id)


_KEEP: set[asyncio.Task[bool]] = set()
"""Tasks that nobody waits for: asyncio itself holds them weakly."""


def _is_connected(peer: _Peer) -> bool:
    return peer.connection.connectionState == "connected"


def _check(offer_sdp: str, *, sends: bool, watches: bool) -> None:
    """Refuse what is no offer before anything is made of it."""
    try:
        media = SessionDescription.parse(offer_sdp).media
    except _UNREADABLE as error:
        raise PeerError(400, "what was sent is no SDP offer", "send a complete WebRTC offer") from error
    if not all(one.dtls and one.ice and one.ice.usernameFragment and one.ice.password for one in media):
        raise PeerError(400, "a section of the offer has no fingerprint or ICE login", "send a complete WebRTC offer")
    if not any(one.kind == "video" for one in media):
        what = "sends no video" if sends else "wants no video" if watches else "has no video"
        raise PeerError(406, f"the offer {what}", "offer a video section")


async def _end(connection: RTCPeerConnection) -> None:
    """Close a connection, also one that was left half made by an offer that cannot be read."""
    try:
        await connection.close()
    except AttributeError:  # aiortc closes what every section was to have
        for one in connection.getTransceivers():
            transport = one.receiver.transport
            if transport is not None:
                await transport.stop()
                await transport.transport.stop()


def _configuration(servers: Sequence[str]) -> RTCConfiguration:
    return RTCConfiguration([_ice_server(text) for text in servers])


def _ice_server(text: str) -> RTCIceServer:
    """Read "stun:host:port" or "turn:user:password@host:port"."""
    kind, _, rest = text.partition(":")
    login, at, host = rest.rpartition("@")
    user, _, password = login.partition(":")
    return RTCIceServer(f"{kind}:{host}", user or None, password or None) if at else RTCIceServer(text)


def _preferences(names: Sequence[CodecName]) -> list[RTCRtpCodecCapability]:
    known = RTCRtpSender.getCapabilities("video").codecs
    mimes = [CODECS[name].mime.lower() for name in names]
    chosen = [codec for mime in mimes for codec in known if codec.mimeType.lower() == mime]
    return chosen + [codec for codec in known if codec.name.lower() == "rtx"]


def _wants(one: RTCRtpTransceiver) -> bool:
    """Whether the other side takes something here."""
    return one._offerDirection in ("sendonly", "sendrecv")  # seen from here


def _direction(*, takes: bool, shows: bool) -> str:
    return {(True, True): "sendrecv", (True, False): "recvonly", (False, True): "sendonly"}.get(
        (takes, shows), "inactive"
    )


def _stop_when_closed(connection: RTCPeerConnection, track: EncodedTrack) -> None:
    if connection.connectionState in ("failed", "closed"):
        track.stop()
