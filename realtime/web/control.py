"""The desk by network: a WebSocket for the page, and the same as plain requests; knows no order by name."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Annotated, Any

import cv2
from fastapi import APIRouter, Body, File, HTTPException, Response, UploadFile, WebSocket, WebSocketDisconnect
from pydantic import ValidationError

from realtime.desk.desk import Desk
from realtime.desk.messages import EVENTS, ORDERS, Event, Figures, Note, Order, State
from realtime.errors import LiveError

log = logging.getLogger(__name__)

FIGURES_S = 0.25
"""Between two looks at the figures: a curve needs no more, and each costs about a millisecond."""
NOTES = 50
"""Notes that wait for a slow listener at most; the oldest go."""
ORDERS_PER_S = 60.0
"""From one listener, in the long run; a control that is dragged gives one for each picture."""
BURST = 120.0
BEFORE_QUALITY = 80
"""Of the JPEG that the person sees who steers."""
POLICY = 1008
"""Close code of a WebSocket whose messages are no orders, or too many (RFC 6455, 7.4.1)."""
ATTEMPTS = 20
"""Messages that are no orders, until it is closed."""


def make_router(desk: Desk) -> APIRouter:
    """Make the routes of a desk."""
    router = APIRouter()

    @router.websocket("/ws")
    async def listen(socket: WebSocket) -> None:
        offered = socket.headers.get("sec-websocket-protocol", "")
        await socket.accept(subprotocol="doppelcam" if offered.startswith("doppelcam") else None)
        await _Line(desk, socket).serve()

    @router.post("/api/orders")
    def order(order: Annotated[Order, Body()]) -> dict[str, bool]:
        desk.order(order)
        return {"done": True}

    @router.get("/api/state")
    def state() -> State:
        return desk.state()

    @router.get("/api/figures")
    def figures() -> Figures:
        return desk.figures()

    @router.get("/api/schema")
    def schema() -> dict[str, Any]:
        return {"orders": ORDERS.json_schema(), "events": EVENTS.json_schema()}

    @router.post("/api/photos")
    def photo(photo: Annotated[UploadFile, File()]) -> dict[str, str]:
        return {"photo": desk.keep_photo(photo.filename or "photo", photo.file.read())}

    @router.get("/api/before.jpg")
    def before() -> Response:
        pixels = desk.before()
        if pixels is None:
            raise HTTPException(503, "no picture came")
        done, data = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, BEFORE_QUALITY])
        if not done:
            raise HTTPException(503, "the picture cannot be encoded")
        return Response(data.tobytes(), media_type="image/jpeg", headers={"Cache-Control": "no-store"})

    return router


class _Line:
    """One listener: the newest state, the latest notes, and figures at a steady beat."""

    def __init__(self, desk: Desk, socket: WebSocket) -> None:
        self._desk, self._socket = desk, socket
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._state: State | None = None
        self._notes: deque[Note] = deque(maxlen=NOTES)
        self._credit, self._credit_s = BURST, self._loop.time()
        self._wrong = 0

    async def serve(self) -> None:
        """Go on until the listener has gone."""
        end = self._desk.listen(self._hear)
        telling = asyncio.create_task(self._tell(), name="telling")
        try:
            while True:
                if not self._may(await self._socket.receive_text()):
                    where = self._socket.client
                    log.warning(
                        "%s /ws: too many messages, or none that are orders", where.host if where else "unknown"
                    )
                    await self._socket.close(POLICY, "too many messages, or none that are orders")
                    break
        except (WebSocketDisconnect, RuntimeError, KeyError):  # gone, or it has sent no text
            pass
        finally:
            end()
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)

    def _hear(self, event: Event) -> None:
        """Called in any thread."""
        self._loop.call_soon_threadsafe(self._take, event)

    def _take(self, event: Event) -> None:
        if isinstance(event, State):
            self._state = event
        elif isinstance(event, Note):
            self._notes.append(event)
        self._news.set()

    def _may(self, text: str) -> bool:
        """Carry out an order; says whether this listener may go on."""
        now_s = self._loop.time()
        self._credit = min(BURST, self._credit + (now_s - self._credit_s) * ORDERS_PER_S) - 1
        self._credit_s = now_s
        if self._credit < 0:
            return False
        try:
            self._desk.order(ORDERS.validate_json(text))
        except ValidationError as error:
            self._wrong += 1
            first = error.errors(include_url=False, include_input=False)[0]
            self._take(Note(text=f"this is no order: {first['msg']}", hint="load the page again", warning=True))
        except LiveError as error:
            self._take(Note(text=error.message, hint=error.hint, warning=True))
        return self._wrong < ATTEMPTS

    async def _tell(self) -> None:
        try:
            while True:
                try:
                    await asyncio.wait_for(self._news.wait(), FIGURES_S)
                except TimeoutError:
                    await self._send(self._desk.figures())
                self._news.clear()
                state, self._state = self._state, None
                if state is not None:
                    await self._send(state)
                while self._notes:
                    await self._send(self._notes.popleft())
        except (WebSocketDisconnect, RuntimeError):
            return

    async def _send(self, event: Event) -> None:
        await self._socket.send_text(EVENTS.dump_json(event).decode())
