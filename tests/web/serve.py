"""A server of one station for measuring: stock aiortc or the program's own peers before the same pictures.

``python -m tests.web.serve --peers stock --show swap`` prints its address as its first line and serves until its
standard input ends. Shows: ``stamps`` are pictures with the clock in them, 30 a second; ``echo`` is what a peer sends;
``swap`` is the same with the mesh swap of the real loop in between.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import uvicorn
from fastapi import FastAPI, Request, Response

from realtime import app, config, loop
from realtime.config import Settings
from realtime.errors import SourceError
from realtime.meter import Meter
from realtime.placard import placard
from realtime.sinks import SinkInfo
from realtime.sources import SourceInfo
from realtime.types import U8, Frame
from realtime.web.station import Arrival, Inlet, Outlet, Station
from tests.web import stamp
from tests.web.camera_file import FPS, pictures
from tests.web.stock import StockPeers


def pixels_of(arrival: Arrival) -> U8:
    """(H, W, 3) uint8 BGR, an array of its own."""
    return cast(U8, arrival.picture.to_ndarray(format="bgr24"))


class InletSource:
    """What a peer sends, as the live loop wants it."""

    def __init__(self, inlet: Inlet) -> None:
        self._inlet = inlet
        self._seq = -1
        self._closed = False
        self.info = SourceInfo("a peer", stamp.PICTURE, float(FPS), live=True, patient=True)

    def read(self) -> Frame:
        """The newest picture that was not read."""
        while not self._closed:
            arrival = self._inlet.take(0.2)
            if arrival is not None:
                self._seq += 1
                return Frame(self._seq, arrival.t_capture_s, pixels_of(arrival))
        raise SourceError("closed", "", fatal=False)

    def close(self) -> None:
        """End a read that waits."""
        self._closed = True


class OutletSink:
    """What viewers see."""

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet
        self.info = SinkInfo("viewers", stamp.PICTURE, 0.0, live=True)

    def write(self, frame: Frame) -> None:
        """Show it."""
        self._outlet.show(frame)

    def close(self) -> None:
        """Nothing to give back."""


def show_stamps(station: Station, stop: threading.Event, clips: Path | None) -> None:
    """Pictures that carry the moment at which they were shown."""
    stock = list(pictures(clips))
    begun_s = time.perf_counter()
    number = 0
    while not stop.wait(max(0.0, begun_s + number / FPS - time.perf_counter())):
        pixels: U8 = stock[number % len(stock)].copy()
        stamp.write(pixels, int(time.time() * 1e6))
        station.outlet.show(Frame(number, time.perf_counter(), pixels))
        number += 1


def show_echo(station: Station, stop: threading.Event) -> None:
    """What the peer sends, unchanged."""
    seq = 0
    while not stop.is_set():
        arrival = station.browser.take(0.2)
        if arrival is not None:
            seq += 1
            station.outlet.show(Frame(seq, arrival.t_capture_s, pixels_of(arrival)))


def show_swap(station: Station, stop: threading.Event, settings: Settings, ready: threading.Event) -> None:
    """What the peer sends, with the face of the built-in portrait."""
    with app.open_networks(settings) as networks:
        meter = Meter()
        scene = app.set_up(settings, networks, meter, print_error)
        show = loop.Show(
            open_source=lambda _: InletSource(station.browser),
            open_sinks=[lambda _: OutletSink(station.outlet)],
            process=scene.pipeline,
            meter=meter,
            budget=app.build_budget(settings, works_ahead=networks.device.works_ahead),
            make_card=placard,
            on_event=print_error,
            on_ready=lambda *_: ready.set(),
            attached=networks.device.attached,
        )
        loop.run(show, stop, loop.Limits(stall_s=3600))
        print_error(str(meter.snapshot().to_dict()))


def print_error(text: str) -> None:
    """Standard output belongs to the address."""
    print(text, file=sys.stderr, flush=True)


def application(station: Station, make_peers: Callable[..., Any], settings: Settings) -> FastAPI:
    """POST an offer to /session (sends and watches), /whip (sends) or /whep (watches)."""

    @asynccontextmanager
    async def life(web: FastAPI) -> AsyncIterator[None]:
        web.state.peers = make_peers(station, settings.web, on_event=lambda *said: print_error(str(said)))
        yield
        await web.state.peers.close_all()

    web = FastAPI(lifespan=life)
    ways: dict[str, dict[str, Any]] = {
        "session": {"sends": station.browser, "watches": True},
        "whip": {"sends": station.browser, "watches": False},
        "whep": {"sends": None, "watches": True},
    }

    async def answer(request: Request, way: str) -> Response:
        got = await web.state.peers.answer((await request.body()).decode(), f"a peer at {way}", **ways[way])
        return Response(got.sdp, 201, {"Location": f"/peers/{got.peer_id}"}, "application/sdp")

    web.add_api_route("/{way}", answer, methods=["POST"])
    return web


def peers_of(name: str) -> Callable[..., Any]:
    """The class that answers offers."""
    if name == "stock":
        return StockPeers
    return cast("Callable[..., Any]", importlib.import_module("realtime.web.peers").Peers)


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", choices=["stock", "ours"], default="ours")
    parser.add_argument("--show", choices=["stamps", "echo", "swap"], default="swap")
    parser.add_argument("--clips", type=Path)
    given = parser.parse_args()
    settings = config.load(None, [])
    logging.basicConfig(level=logging.WARNING)
    station, stop, ready = Station(), threading.Event(), threading.Event()
    body: dict[str, Callable[[], None]] = {
        "stamps": lambda: show_stamps(station, stop, given.clips),
        "echo": lambda: show_echo(station, stop),
        "swap": lambda: show_swap(station, stop, settings, ready),
    }
    web = application(station, peers_of(given.peers), settings)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(web, log_level="warning", timeout_graceful_shutdown=1))
    show = threading.Thread(target=body[given.show], name="show")
    serve = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), name="web")
    show.start()
    serve.start()
    if given.show == "swap":
        ready.wait()
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    sys.stdin.read()
    stop.set()
    server.should_exit = True
    serve.join(5)
    show.join(5)
    os._exit(0)


if __name__ == "__main__":
    main()
