"""A stand-in for the run behind the control page: files, messages and pictures; knows no face and swaps nothing.

``python -m tests.web.page_server --clip swapped.mp4`` serves the page for looking at it while it is worked on.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import math
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import uvicorn
from aiortc import MediaStreamTrack, RTCPeerConnection, RTCSessionDescription
from aiortc.contrib.media import MediaBlackhole
from fastapi import FastAPI, Request, Response, UploadFile, WebSocket, WebSocketDisconnect
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles

from realtime.assets import demo_photo
from realtime.desk.messages import ORDERS, Choice, Event, FaceBox, Figures, Limits, Note, Output, State

PAGE = Path(__file__).parents[2] / "realtime" / "web" / "page"
POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
SHARE = Limits(words="a number from 0 to 1", low=0, high=1)
SWITCH = Limits(words="true or false")

LIMITS = {
    "swap.engine": Limits(words='"mesh", or the name of a model'),
    "swap.likeness": SHARE,
    "swap.colour": SHARE,
    "swap.opacity": SHARE,
    "tracking.smoothing": SHARE,
    "swap.obstacles": SWITCH,
    "swap.own_mouth": SWITCH,
    "swap.boost": Limits(words="a whole number from 1 to 8", low=1, high=8),
    "swap.blend": Limits(words='one of "feather", "poisson"', choices=("feather", "poisson")),
    "masks.occlusion": Limits(words="the name of a model", choices=("", "xseg_1", "xseg_3")),
    "enhance.model": Limits(words='the name of a model, see `doppelcam models list`, or ""'),
    "faces.which": Limits(words="largest, all or a number", choices=()),
    "faces.on_lost": Limits(words="what is shown", choices=("hold", "blur", "card", "raw")),
    "faces.hold_s": Limits(words="a number from 0 to 5", low=0, high=5),
    "swap.brand_new": Limits(
        words="a number from 0 to 10, of a setting that the page was never told of", low=0, high=10
    ),
}
VALUES: dict[str, Any] = {
    "swap.engine": "mesh",
    "swap.likeness": 1.0,
    "swap.colour": 1.0,
    "swap.opacity": 1.0,
    "tracking.smoothing": 0.35,
    "swap.obstacles": True,
    "swap.own_mouth": False,
    "swap.boost": 1,
    "swap.blend": "feather",
    "masks.occlusion": "",
    "enhance.model": "",
    "faces.which": "largest",
    "faces.on_lost": "blur",
    "faces.hold_s": 0.5,
    "swap.brand_new": 3.0,
}


def first_state(input_: str = "demo") -> State:
    """A run as it may be in its first minute."""
    return State(
        values=VALUES,
        limits=LIMITS,
        facts=(
            ("face", "the built-in portrait"),
            ("swap", "mesh, on the processor"),
            ("why", "no network was asked for; a mesh needs neither a model nor a GPU"),
            ("detector", "face_detection_short_range, on LiteRT"),
            ("size", "1280x720 at 30 pictures/s"),
        ),
        photos=(),
        input=input_,
        inputs=(
            Choice(value="browser", words="This browser's camera"),
            Choice(value="0", words="Integrated Camera"),
            Choice(value="demo", words="Demo"),
            Choice(value="screen", words="Screen"),
            Choice(value="whip", words="OBS (WHIP): nobody sends yet", usable=False),
        ),
        engines=(
            Choice(value="mesh", words="Mesh: no model needed"),
            Choice(value="inswapper_128", words="inswapper_128"),
            Choice(value="simswap_256", words="simswap_256: not here, see `doppelcam models pull`", usable=False),
        ),
        outputs=(
            Output(name="Virtual camera “doppelcam”", to="virtualcam"),
            Output(name="rtmp://live.example/app", to="rtmp://live.example/app", failed="The server does not answer."),
        ),
        profiles=("meeting", "evening"),
        viewers=("a browser at 127.0.0.1",),
    )


def clip_frames(clip: Path | None) -> Iterator[av.VideoFrame]:
    """Pictures without end: of a clip, else of a portrait that sways."""
    while clip:
        with av.open(str(clip)) as container:
            yield from container.decode(video=0)
    photo = cv2.resize(cv2.imread(str(demo_photo())), (600, 704))
    for number in itertools.count():
        canvas = np.full((720, 1280, 3), (70, 64, 58), np.uint8)
        left = 340 + int(60 * math.sin(number / 20))
        canvas[16:720, left : left + 600] = photo
        yield av.VideoFrame.from_ndarray(canvas, format="bgr24")


class Pictures(MediaStreamTrack):
    """A track of those, 30 a second."""

    kind = "video"

    def __init__(self, clip: Path | None) -> None:
        super().__init__()
        self._frames = clip_frames(clip)
        self._begun_s = time.monotonic()
        self._number = 0

    async def recv(self) -> av.VideoFrame:
        """The next one, when it is due."""
        self._number += 1
        await asyncio.sleep(max(0.0, self._begun_s + self._number / 30 - time.monotonic()))
        frame = next(self._frames)
        frame.pts, frame.time_base = self._number * 3000, Fraction(1, 90000)
        return frame


class StandIn:
    """The state of a run that never was, and what the page told it.

    Attributes:
        orders: every order that came, as sent, oldest first.
        state: what the page is told.
        faces: in view.
        token: that is asked for; empty for none.
        answers: whether orders take effect.
    """

    def __init__(self, clip: Path | None = None, input_: str = "demo", token: str = "") -> None:
        self.clip, self.token = clip, token
        self.state = first_state(input_)
        self.orders: list[dict[str, Any]] = []
        self.faces: tuple[FaceBox, ...] = (
            FaceBox(track_id=1, left=0.38, top=0.2, right=0.6, bottom=0.75, swapped=True),
        )
        self.answers = True
        self.photos: list[bytes] = []
        self.deleted: list[str] = []
        self.sender = ""
        self.begun_s = time.monotonic()
        self.sockets: set[WebSocket] = set()
        self.peers: dict[str, RTCPeerConnection] = {}
        self.loop: asyncio.AbstractEventLoop | None = None

    def figures(self) -> Figures:
        """Plausible ones, that move."""
        t_s = time.monotonic() - self.begun_s
        wave = math.sin(t_s / 3) + 0.4 * math.sin(t_s * 2.1)
        delay_ms = 41 + 5 * wave
        steps = {"detect": 1.9, "mesh": 3.6, "judge": 0.6, "draw": 6.2, "obstacles": 2.4, "settle": 1.1}
        steps = {name: cost * (1 + 0.12 * wave) for name, cost in steps.items()}
        return Figures(
            t_s=t_s,
            fps_in=30.0,
            fps_out=29.7 + 0.3 * wave,
            latency_ms={"virtualcam": (delay_ms, delay_ms * 1.3)},
            steps_ms=steps,
            dropped={"late": 3},
            faces=() if self.state.blank else self.faces,
            line="30 pictures/s, 41 ms, 0 dropped",
        )

    def change(self, **changes: Any) -> None:
        """Another state, told to every page. Any thread."""
        self.state = self.state.model_copy(update=changes)
        self.tell(self.state)

    def tell(self, event: Event) -> None:
        """Tell every page. Any thread."""
        if self.loop is not None:
            asyncio.run_coroutine_threadsafe(self._tell(event.model_dump_json()), self.loop)

    async def _tell(self, text: str) -> None:
        for websocket in list(self.sockets):
            with contextlib.suppress(RuntimeError, WebSocketDisconnect):
                await websocket.send_text(text)

    def obey(self, text: str) -> None:
        """Read an order as the real run does, and do what a page can see.

        Raises:
            pydantic.ValidationError: it is none.
        """
        order = ORDERS.validate_json(text)
        self.orders.append(order.model_dump())
        if not self.answers:
            return
        state = self.state
        match order.do:
            case "set":
                if order.value == "refused":
                    self.tell(Note(text="There is no model “refused”", hint="See what there is.", warning=True))
                else:
                    self.change(values={**state.values, order.key: order.value})
            case "blank":
                self.change(blank=order.on)
            case "input":
                self.change(input=order.what, sender="")
            case "photo":
                self.change(photos=(order.photo,) if order.photo else ())
            case "record":
                self.change(recording="video.mp4" if order.on else "")
                self.tell(Note(text="Recording to Videos/video.mp4" if order.on else "Saved: Videos/video.mp4"))
            case "add_output":
                self.change(outputs=(*state.outputs, Output(name=order.to, to=order.to)))
            case "remove_output":
                self.change(outputs=tuple(one for one in state.outputs if one.name != order.name))
            case "save":
                self.change(profiles=(*state.profiles, order.profile))
                self.tell(Note(text=f"Saved as “{order.profile}”"))
            case "pick" | "unpick":
                self.change(picked=order.do == "pick")

    async def answer(self, sdp: str, shares: bool) -> Response:
        """A peer that gets the pictures."""
        peer = RTCPeerConnection()
        name = f"peers/{len(self.peers) + len(self.deleted) + 1}"
        self.peers[name] = peer
        hole = MediaBlackhole()

        @peer.on("track")
        def on_track(track: MediaStreamTrack) -> None:
            hole.addTrack(track)

        await peer.setRemoteDescription(RTCSessionDescription(sdp, "offer"))
        peer.addTrack(Pictures(self.clip))
        await peer.setLocalDescription(await peer.createAnswer())
        if shares:
            await hole.start()
            before, self.sender = self.peers.get(self.sender), name
            if before:
                await before.close()
            self.change(sender="a browser at 127.0.0.1")
        return Response(peer.localDescription.sdp, 201, {"Location": f"/{name}"}, "application/sdp")

    def application(self) -> FastAPI:
        """The routes of the real server that the page uses."""

        @contextlib.asynccontextmanager
        async def life(_: FastAPI) -> AsyncIterator[None]:
            self.loop = asyncio.get_running_loop()
            yield
            self.loop = None
            for peer in self.peers.values():
                await peer.close()
            self.peers.clear()

        app = FastAPI(lifespan=life)
        app.middleware("http")(self._guard)
        app.add_api_route("/api/state", lambda: self.state)
        app.add_api_route("/api/photos", self._photo, methods=["POST"])
        app.add_api_route("/api/before.jpg", self._before)
        app.add_api_route("/session", self._session, methods=["POST"])
        app.add_api_route("/whep", self._whep, methods=["POST"])
        app.add_api_route("/peers/{name}", self._leave, methods=["DELETE"])
        app.add_api_websocket_route("/ws", self._listen)
        app.mount("/", StaticFiles(directory=PAGE, html=True))
        return app

    async def _guard(self, request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        secret = request.url.path.startswith(("/api", "/session", "/whep", "/peers"))
        if self.token and secret and request.headers.get("Authorization") != f"Bearer {self.token}":
            return JSONResponse({"error": "a token is missing", "try": "make one with: doppelcam token"}, 401)
        answer = await go_on(request)
        answer.headers["Content-Security-Policy"] = POLICY
        return answer

    async def _photo(self, photo: UploadFile) -> Response:
        data = await photo.read()
        if b"no face" in data:
            return JSONResponse({"error": "there is no face in it", "try": "take another photo"}, 422)
        self.photos.append(data)
        return JSONResponse({"photo": photo.filename})

    def _before(self) -> Response:
        return Response(demo_photo().read_bytes(), media_type="image/jpeg")

    async def _session(self, request: Request) -> Response:
        return await self.answer((await request.body()).decode(), shares=True)

    async def _whep(self, request: Request) -> Response:
        return await self.answer((await request.body()).decode(), shares=False)

    async def _leave(self, name: str) -> Response:
        self.deleted.append(name)
        peer = self.peers.pop(f"peers/{name}", None)
        if peer:
            await peer.close()
        if self.sender == f"peers/{name}":
            self.change(sender="")
        return Response()

    async def _listen(self, websocket: WebSocket) -> None:
        offered = websocket.scope["subprotocols"]
        if self.token and offered != ["doppelcam", self.token]:
            await websocket.close()
            return
        await websocket.accept("doppelcam" if offered else None)
        await self._serve(websocket)

    async def _serve(self, websocket: WebSocket) -> None:
        self.sockets.add(websocket)

        async def beat() -> None:
            while True:
                await websocket.send_text(self.figures().model_dump_json())
                await asyncio.sleep(0.25)

        await websocket.send_text(self.state.model_dump_json())
        task = asyncio.ensure_future(beat())
        try:
            while True:
                self.obey(await websocket.receive_text())
        except WebSocketDisconnect:
            pass
        finally:
            task.cancel()
            self.sockets.discard(websocket)


class PageServer:
    """Serves a stand-in in a thread of its own, on one port for all its starts."""

    def __init__(self, stand_in: StandIn, port: int = 0) -> None:
        self.stand_in = stand_in
        self.port = port or _free_port()
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Of the page."""
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> None:
        """Serve, from when it returns."""
        config = uvicorn.Config(
            self.stand_in.application(), port=self.port, log_level="critical", timeout_graceful_shutdown=0
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, name="page server", daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.02)

    def stop(self) -> None:
        """End at once, whoever still listens."""
        if self._server is None or self._thread is None:
            return
        self._server.should_exit = True
        self._thread.join(10)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clip", type=Path)
    parser.add_argument("--input", default="browser")
    parser.add_argument("--port", type=int, default=8090)
    given = parser.parse_args()
    server = PageServer(StandIn(given.clip, given.input), given.port)
    server.start()
    print(server.url)
    with contextlib.suppress(KeyboardInterrupt):
        threading.Event().wait()
    server.stop()


if __name__ == "__main__":
    main()
