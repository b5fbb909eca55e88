"""The HTTP application: the page, WebRTC's three doors, health and figures; knows no socket and no thread."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from realtime.errors import LiveError
from realtime.meter import Meter
from realtime.web.access import Access, Door
from realtime.web.doorlog import plain
from realtime.web.figures import exposition
from realtime.web.peers import PeerError, Peers
from realtime.web.station import Inlet, Station

log = logging.getLogger(__name__)

PAGE = Path(__file__).parent / "page"
SDP = "application/sdp"
_PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; connect-src 'self'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), microphone=(self)",
    "Cache-Control": "no-cache",  # asked again each time, and not sent again where nothing changed
}


@dataclass(frozen=True, slots=True)
class Parts:
    """What the application serves.

    Attributes:
        station: where pictures come and go.
        peers: who is connected.
        meter: of the run.
        door: what is asked of whoever comes.
        more: further routes, such as those of the desk.
        ice_servers: told to WHIP and WHEP clients.
    """

    station: Station
    peers: Peers
    meter: Meter
    door: Door
    more: tuple[APIRouter, ...] = ()
    ice_servers: tuple[str, ...] = ()


def make_app(parts: Parts) -> ASGIApp:
    """Make the application; of the loop's thread that will serve it."""
    app = FastAPI(title="doppelcam", docs_url=None, redoc_url=None, openapi_url=None)
    app.exception_handler(LiveError)(_explain)
    app.exception_handler(StarletteHTTPException)(_explain_http)
    app.exception_handler(ClientDisconnect)(_explain_cut)
    for router in (_doors(parts), _figures(parts), *parts.more):
        app.include_router(router)
    app.mount("/", _Page(directory=PAGE, html=True))
    if parts.door.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(parts.door.origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=["Location", "Link"],
        )
    return Access(app, parts.door)


def _doors(parts: Parts) -> APIRouter:
    """WHIP (RFC 9725), WHEP (draft-ietf-wish-whep) and the page's own: an offer in, an answer out, DELETE to end."""
    router = APIRouter()
    station = parts.station
    _add_door(router, parts, "/whip", "WHIP", station.whip, watches=False)
    _add_door(router, parts, "/whep", "WHEP", None, watches=True)
    _add_door(router, parts, "/session", "browser", station.browser, watches=True)
    return router


def _add_door(router: APIRouter, parts: Parts, path: str, kind: str, sends: Inlet | None, *, watches: bool) -> None:
    links = [f'<{server.partition("@")[2] or server}>; rel="ice-server"' for server in parts.ice_servers]

    async def offer(request: Request, sdp: Annotated[str, Depends(_sdp_of)]) -> Response:
        answer = await parts.peers.answer(sdp, f"{kind} {_who(request)}", sends=sends, watches=watches)
        headers = {"Location": f"{path}/{answer.peer_id}", "ETag": f'"{answer.peer_id}"'}
        response = Response(answer.sdp, 201, headers, SDP)
        for link in links:
            response.headers.append("Link", link)
        return response

    async def end(peer_id: str) -> Response:
        if not await parts.peers.close(peer_id):
            raise HTTPException(404, "there is no such session")
        return Response(status_code=200)

    async def options() -> Response:
        return Response(status_code=204, headers={"Allow": "POST, OPTIONS", "Accept-Post": SDP})

    router.add_api_route(path, offer, methods=["POST"])
    router.add_api_route(path, options, methods=["OPTIONS"])
    router.add_api_route(f"{path}/{{peer_id}}", end, methods=["DELETE"])


async def _sdp_of(request: Request) -> str:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != SDP:
        raise HTTPException(415, f"an offer is {SDP}, not {kind or 'nothing'}")
    try:
        return (await request.body()).decode("utf-8")
    except UnicodeDecodeError as error:
        raise HTTPException(400, "the offer is no text") from error


def _figures(parts: Parts) -> APIRouter:
    router = APIRouter()

    @router.get("/healthz")
    async def health() -> JSONResponse:
        stats = parts.meter.snapshot()
        ok = stats.recent.fps_out > 0
        words = "pictures come" if ok else "no picture came in the last moments"
        return JSONResponse({"ok": ok, "why": words}, 200 if ok else 503)

    @router.get("/metrics")
    async def metrics() -> Response:
        text, kind = exposition(parts.meter.snapshot(), parts.peers.describe())
        return Response(text, media_type=kind)

    return router


class _Page(StaticFiles):
    """The page's files, with what keeps other pages and scripts out of it."""

    def file_response(self, *args: object, **kwargs: object) -> Response:
        """Answer with a file."""
        response: Response = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        response.headers.update(_PAGE_HEADERS)
        return response


def _who(request: Request) -> str:
    bearer = request.scope["bearer"]
    address = request.client.host if request.client else "unknown"
    return f"at {address}" if bearer.name == address else f"{bearer.name} at {address}"


async def _explain(request: Request, error: Exception) -> Response:
    assert isinstance(error, LiveError)
    status = error.status if isinstance(error, PeerError) else 409
    log.warning("%s", plain(f"{_who(request)} {request.url.path}: {status}: {error.message}"))
    return JSONResponse({"error": error.message, "try": error.hint}, status)


async def _explain_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, StarletteHTTPException)
    hint = "the page lists what there is" if error.status_code == 404 else "see the README on WHIP and WHEP"
    return JSONResponse({"error": error.detail, "try": hint}, error.status_code)


async def _explain_cut(request: Request, error: Exception) -> Response:
    del request, error
    return JSONResponse({"error": "the body is too large or was cut off", "try": "send it again"}, 413)
