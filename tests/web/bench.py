"""One table of the web path, stock aiortc beside the program's own, in one run: ``python -m tests.web.bench``.

Five minutes. A picture is 1280 x 720 at 30 a second, everything runs on this machine, the browser without a GPU. Where
ours swaps it is ``doppelcam serve`` itself, and stock aiortc has the same loop behind it. Times are taken from numbers
in the pictures: ``stamp`` says how. ``--only trip,show`` measures a part.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from realtime.machine import describe
from tests.conftest import ROOT
from tests.web.camera_file import write_camera
from tests.web.chromium import Seen, Tab, missing, open_browser
from tests.web.served import Program, Served, serve
from tests.web.viewer import Looked, Viewing

PARTS = ("trip", "show", "oneway", "slow", "viewers")
QUARTER_S = 4 / 30
"""Between two pictures of a consumer that is four times too slow."""
SETTLE_S = 5.0
"""Before a browser is measured: its jitter buffer and the rate of its encoder find their places."""


@dataclass
class Row:
    """One line of the table.

    Attributes:
        what: is measured.
        target: that ours has to meet.
        stock: figures of stock aiortc.
        ours: the same of the program.
        met: whether ours meets the target.
    """

    what: str
    target: str
    stock: str = ""
    ours: str = ""
    met: bool | None = None


@dataclass
class Bench:
    """What is measured on, and what was found.

    Attributes:
        clips: folder of real clips, ``None``: the demo.
        camera: what the browser has for a camera.
        tell: told what is being done.
        rows: of the table, by part.
        details: what the browser's own statistics say, for whoever looks for lost time.
    """

    clips: Path | None
    camera: Path
    tell: Callable[[str], None]
    rows: dict[str, Row] = field(default_factory=dict)
    details: dict[str, dict[str, float | str]] = field(default_factory=dict)

    def note(self, key: str, what: str, target: str, peers: str, text: str, met: bool) -> None:
        """Put one figure into the table."""
        row = self.rows.setdefault(key, Row(what, target))
        if peers == "stock":
            row.stock = text
        else:
            row.ours, row.met = text, met

    def trip(self, peers: str) -> None:
        """Browser to server to browser, with the mesh swap in between."""
        self._browse(peers, "swap", 20 if peers == "ours" else 12)

    def show(self, peers: str) -> None:
        """Server to browser."""
        self._browse(peers, "stamps", 15 if peers == "ours" else 10)

    def _browse(self, peers: str, show: str, seconds: float) -> None:
        sends = show == "swap"
        with self._server(peers, show) as served, open_browser(self.camera) as browser:
            tab = Tab(browser, served.url)
            tab.open_plain()
            wish = {"codec": "h264", "hurry": True} if peers == "ours" else {}
            tab.connect("/session" if sends else "/whep", send=sends, decoded=not sends, **wish)
            tab.wait_for_picture()
            first_ms = tab.take().first_ms
            tab.watch(SETTLE_S)
            before = tab.stats()
            seen = tab.watch(seconds)
            after = tab.stats()
        self.details[f"{show}, {peers}"] = hops(before, after, seen, sends=sends)
        delays = seen.round_trips_ms() if sends else seen.one_way_ms()
        name, most = ("browser - swap - browser", (60, 90)) if sends else ("server - browser", (45, None))
        self._delay(show, f"{name}, camera to screen" if sends else f"{name}, to screen", most, peers, delays, seconds)
        if sends:
            self.note(
                "first", "first picture after the click", "1000 ms", peers, f"{first_ms:.0f} ms", first_ms <= 1000
            )

    def _server(self, peers: str, show: str) -> Served | Program:
        """The program itself where ours swaps; else the measuring one."""
        if (peers, show) != ("ours", "swap"):
            return serve(peers, show, self.clips)
        return Program(Path(tempfile.mkdtemp(dir=self.camera.parent)))

    def oneway(self, peers: str) -> None:
        """From one aiortc to another."""
        with serve(peers, "stamps", self.clips) as served:
            looked = Viewing(f"{served.url}/whep", 10, ours=peers == "ours").finish()
        self._delay("oneway", "aiortc - aiortc, one way", (15, None), peers, looked.delays_ms, 10)

    def slow(self, peers: str) -> None:
        """A consumer that takes every fourth picture."""
        seconds = 60 if peers == "ours" else 12
        with serve(peers, "stamps", self.clips) as served:
            looked = Viewing(f"{served.url}/whep", seconds, ours=peers == "ours", every_s=QUARTER_S).finish()
        delay_ms = _last_delay_ms(looked)
        text = f"{delay_ms:.0f} ms, {looked.grown_mb:+.0f} MB ({seconds} s)"
        met = delay_ms < 300 and looked.grown_mb < 30
        self.note("slow", "a consumer four times too slow, at its end", "< 300 ms, < 30 MB", peers, text, met)

    def viewers(self, peers: str) -> None:
        """What four viewers cost the server, and what one does."""
        shares, rates = [], []
        with serve(peers, "stamps", self.clips) as served:
            for count in (1, 4):
                viewing = Viewing(f"{served.url}/whep", 9, count=count, ours=peers == "ours")
                shares.append(served.cpu_share(8))
                rates.append(len(viewing.finish().delays_ms) / 9)
        ratio = shares[1] / shares[0]
        text = f"{ratio:.2f} ({shares[0]:.2f} and {shares[1]:.2f} cores; {rates[0]:.0f} and {rates[1]:.0f} pictures/s)"
        self.note("viewers", "processor, 4 viewers over 1", "1.30", peers, text, ratio <= 1.3)

    def _delay(
        self,
        key: str,
        what: str,
        most: tuple[float, float | None],
        peers: str,
        delays_ms: Sequence[float],
        seconds: float,
    ) -> None:
        """Note percentiles of a delay."""
        if not delays_ms:
            self.note(key, what, "", peers, "nothing came", met=False)
            return
        p50, p95 = np.percentile(delays_ms, [50, 95])
        target = f"p50 {most[0]}" + (f", p95 {most[1]}" if most[1] else "") + " ms"
        met = p50 <= most[0] and (most[1] is None or p95 <= most[1])
        self.note(
            key, what, target, peers, f"p50 {p50:.1f}, p95 {p95:.1f} ms, {len(delays_ms) / seconds:.1f}/s", bool(met)
        )


def _last_delay_ms(looked: Looked) -> float:
    """The delay of the last five seconds: it is where a growing one has got to."""
    end_s = looked.t_s[-1] if looked.t_s else 0.0
    last = [delay for t_s, delay in zip(looked.t_s, looked.delays_ms, strict=True) if t_s > end_s - 5]
    return float(np.percentile(last, 95)) if last else float("inf")


Stats = dict[str, dict[str, float]]


def hops(before: Stats, after: Stats, seen: Seen, *, sends: bool) -> dict[str, float | str]:
    """Where the time goes in the browser: means in ms a picture between two looks at its statistics."""

    def mean(kind: str, name: str, count: str) -> float:
        old, new = before.get(kind, {}), after.get(kind, {})
        pictures = new.get(count, 0) - old.get(count, 0)
        return round(1e3 * (new.get(name, 0) - old.get(name, 0)) / pictures, 1) if pictures else 0.0

    found: dict[str, float | str] = {
        "in": f"{after['inbound'].get('frameWidth')}x{after['inbound'].get('frameHeight')}",
        "jitter_buffer_ms": mean("inbound", "jitterBufferDelay", "jitterBufferEmittedCount"),
        "decode_ms": mean("inbound", "totalDecodeTime", "framesDecoded"),
        "arrival_to_decoded_ms": mean("inbound", "totalProcessingDelay", "framesDecoded"),
    }
    decoded = Seen(sent=seen.sent, shown=seen.decoded)
    delays = decoded.round_trips_ms() if sends else decoded.one_way_ms()
    if delays:
        found["to_decoded_p50_ms"] = round(float(np.median(delays)), 1)
    if sends:
        out = after.get("outbound", {})
        found["out"] = f"{out.get('frameWidth')}x{out.get('frameHeight')} {out.get('encoderImplementation')}"
        found["encode_ms"] = mean("outbound", "totalEncodeTime", "framesEncoded")
        found["pacer_ms"] = mean("outbound", "totalPacketSendDelay", "packetsSent")
    return found


def table(bench: Bench) -> Table:
    """For people."""
    machine = describe()
    drawn = Table(title=f"The web path at 1280x720, 30 pictures/s. {machine}", title_justify="left", expand=False)
    for name in ("measured", "target", "stock aiortc", "ours", ""):
        drawn.add_column(name)
    for row in bench.rows.values():
        verdict = "" if row.met is None else "met" if row.met else "MISSED"
        drawn.add_row(row.what, row.target, row.stock, row.ours, verdict)
    return drawn


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--peers", default="stock,ours")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    given = parser.parse_args()
    console, errors = Console(width=180), Console(stderr=True)
    clips = ROOT.parent / "shared" / "data" / "clips"
    with tempfile.TemporaryDirectory() as folder:
        errors.print("drawing a camera")
        where = clips if clips.is_dir() else None
        bench = Bench(where, write_camera(Path(folder) / "camera.y4m", where), errors.print)
        for part in given.only.split(","):
            if part in ("trip", "show") and (why := missing()):
                errors.print(f"{part}: left out, {why}")
                continue
            for peers in given.peers.split(","):
                errors.print(f"{part}, {peers} (load {os.getloadavg()[0]:.1f})")
                getattr(bench, part)(peers)
    console.print(table(bench))
    for name, found in bench.details.items():
        console.print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in found.items()), highlight=False)
    if given.json:
        figures = {"machine": describe(), "rows": [asdict(row) for row in bench.rows.values()], "hops": bench.details}
        given.json.write_text(json.dumps(figures, indent=2))
    sys.exit(0 if all(row.met in (True, None) for row in bench.rows.values()) else 1)


if __name__ == "__main__":
    main()
