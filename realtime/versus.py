"""Times a swap against insightface's on this machine, side by side, with a stub for the network; shows nothing.

What is timed, for the card ``inswapper_128``:

- theirs: the whole of insightface's ``INSwapper.get(paste_back=True)``: similarity, crop, blob, latent, network, mask,
  paste; with as many OpenCV threads as OpenCV takes by itself, because that is what its users have, and again with one;
- ours: the whole of ``CropSwapper.swap``: similarity, crop, normalise, network, mask, tone, develop, paste; with one.

The network of both is a stub that hands its input on; what a run of it takes, timed in the same rounds through the same
calls, is subtracted. Each round times each once, in turn, on a fresh picture in the same memory, so that whatever else
the machine does meets all of them alike; ours, which takes a hundredth, several times in a row. Figures are medians. On
a busy machine what takes long is interrupted and what is short is not, so the processor time of one thread is told too:
that ratio hardly depends on what else runs.
"""

from __future__ import annotations

import io
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np

from engines.card import decode_as, load_card
from engines.contract import Device
from engines.onnxrt import OnnxRuntimeEngine
from realtime import app, geometry
from realtime.config import Settings
from realtime.cropnet import CropNetwork
from realtime.errors import ConfigError, install_extra
from realtime.machine import describe
from realtime.meter import Meter
from realtime.opacity import Opacity
from realtime.rehearsal import close_up
from realtime.sources import SourceWish, open_source
from realtime.swappers import Look
from realtime.swappers.crop import CropSwapper
from realtime.swappers.latent import LatentSwapperRule
from realtime.track import Tracker
from realtime.types import F32, U8, Face, Size

SCENES: tuple[tuple[Size, int], ...] = ((Size(1280, 720), 300), (Size(1920, 1080), 400), (Size(1920, 1080), 200))
"""Size of the picture, and height of the face in it from forehead to chin in pixels."""
CARD = "inswapper_128"
RUNS = 15
"""Rounds for each scene."""
IN_A_ROW = 5
"""Runs of ours in a round, each on a fresh copy."""
LOOK_FRAMES = 60
"""Pictures of the input in which a face is looked for."""
FULL_PX = 0.2
"""Share of the crop's side at each border in which insightface's mask is not full: it is eroded by a tenth of the
crop's size and blurred by a twentieth to each side, both a little rounded up."""


@dataclass(frozen=True, slots=True)
class Shot:
    """One scene: a picture and the face in it."""

    size: Size
    face_px: int
    picture: U8
    face: Face


class Ours:
    """Our swapper of the card, with a stub for its network."""

    def __init__(self, device: Device, stub: Path) -> None:
        card = load_card(CARD)
        rule = decode_as(card, LatentSwapperRule)
        self._latent: F32 = np.full((1, 512), 512**-0.5, np.float32)
        self._engine = OnnxRuntimeEngine(card, stub, threads=1)
        network = CropNetwork(card, self._engine, device, rule)
        meter = Meter()
        opacity = Opacity(rule.template, network.side, meter)
        self._swapper = CropSwapper(network, {rule.source: self._latent}, opacity, Look(), meter)
        self.network, self._target = network, np.zeros(network.spec.shape, np.float32)
        self.threads = cv2.getNumThreads()
        self._now_s = 0.0

    def swap(self, picture: U8, face: Face) -> U8:
        """Paint into a picture, and return it."""
        self._now_s += 1 / 30
        self._swapper.swap(picture, face, self._now_s, ())
        return picture

    def stub(self) -> None:
        """Run the network alone."""
        self._engine.run(self._target, self._latent)


class Theirs:
    """insightface's swapper with the same stub for its network."""

    def __init__(self, stub: Path) -> None:
        import onnxruntime as ort  # noqa: PLC0415 - after the packages were looked for
        from insightface.model_zoo.inswapper import INSwapper  # noqa: PLC0415

        options = ort.SessionOptions()
        options.log_severity_level = 3  # it warns that nothing uses what insightface looks for
        self._session = ort.InferenceSession(str(stub), options, providers=["CPUExecutionProvider"])
        self._swapper = INSwapper(str(stub), self._session)
        self._source = SimpleNamespace(normed_embedding=np.full(512, 512**-0.5, np.float32))
        self._fed = {
            "target": np.zeros((1, 3, 128, 128), np.float32),
            "source": self._source.normed_embedding[None],
        }

    def swap(self, picture: U8, face: Face) -> U8:
        """Return a painted copy."""
        kps = face.points5 - np.float32(0.5)  # theirs count from the centre of the first pixel
        painted: U8 = self._swapper.get(picture, SimpleNamespace(kps=kps), self._source, paste_back=True)
        return painted

    def stub(self) -> None:
        """Run the network alone."""
        self._session.run(["output"], self._fed)


def measure(settings: Settings, tell: Callable[[str], None], runs: int = RUNS) -> dict[str, Any]:
    """Run the comparison.

    Args:
        settings: as for a live run; ``input.what`` is where the face is taken from.
        tell: told what is being done.
        runs: rounds for each scene.

    Returns:
        Figures ready for JSON: ``vs``, a list of {``size``, ``face_px``, ``ours_ms``, ``theirs_ms``, ``ratio``, ``cpu``
        {``ours_ms``, ``theirs_ms``, ``ratio``}, ``psnr_db``}; ``threads`` of OpenCV {``ours``, ``theirs``}; ``runs``;
        ``machine``. ``cpu`` is processor time with one thread each; ``psnr_db`` is that of our picture against theirs
        where the masks of both are full.

    Raises:
        ConfigError: a package is not installed, or there is no face in the input.
        LiveError: the input or a model cannot be used.
    """
    _check_packages()
    every = cv2.getNumThreads()  # before a device says otherwise
    with app.open_networks(settings) as networks, TemporaryDirectory() as folder, _quiet():
        stub = write_stub(Path(folder) / "stub.onnx")
        ours, theirs = Ours(networks.device, stub), Theirs(stub)
        results = []
        for size, face_px in SCENES:
            tell(f"{size}, a face of {face_px} pixels, {runs} rounds")
            results.append(_compare(ours, theirs, shoot(settings, networks, size, face_px), runs, every))
        threads = {"ours": ours.threads, "theirs": every}
        cv2.setNumThreads(ours.threads)
    return {"vs": results, "threads": threads, "runs": runs, "machine": describe()}


def write_stub(path: Path) -> Path:
    """Write a model with the tensors of the card that hands its target on as its output; return its path."""
    import onnx  # noqa: PLC0415 - after the packages were looked for
    from onnx import TensorProto, helper, numpy_helper  # noqa: PLC0415

    shape = [1, 3, 128, 128]
    graph = helper.make_graph(
        [helper.make_node("Identity", ["target"], ["output"])],
        "stub",
        [
            helper.make_tensor_value_info("target", TensorProto.FLOAT, shape),
            helper.make_tensor_value_info("source", TensorProto.FLOAT, [1, 512]),
        ],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(np.eye(512, dtype=np.float32), "emap")],  # theirs looks for it at the end
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def shoot(settings: Settings, networks: app.Networks, size: Size, face_px: int) -> Shot:
    """Show the face of the input at a wanted height in the middle of a picture, and find it there.

    Raises:
        ConfigError: there is no face in the input.
        SourceError: the input cannot be used.
    """
    source = open_source(app.name_ends(settings).source, SourceWish(size=None, paced=False, loop=True))
    try:
        eye = Tracker(networks.detector, networks.mesh_net, settings.tracking.min_presence, Meter())
        for number in range(LOOK_FRAMES):
            frame = source.read()
            if frame is None:
                break
            if seen := eye.follow(frame.pixels, number / 30, 1).faces:
                nearer = close_up(seen[0].box_xyxy, face_px, size)
                picture = np.asarray(cv2.warpAffine(frame.pixels, nearer, size), np.uint8)
                if found := Tracker(networks.detector, networks.mesh_net, 0.5, Meter()).follow(picture, 0.0, 1).faces:
                    return Shot(size, face_px, picture, found[0])
    finally:
        source.close()
    raise ConfigError(f"no face in the first {LOOK_FRAMES} pictures of {source.info.name}", "give another --input")


def both_full(ours: Ours, shot: Shot) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Say where in a picture the masks of both programs show nothing but the new face, (H, W)."""
    network = ours.network
    side = network.side
    shown = np.zeros((side, side), np.uint8)
    Opacity("arcface_128", side, Meter()).write(
        shot.picture, shot.face, network.picture_from_crop(shot.face.points5), None, 0.0, (), shown
    )
    border = int(np.ceil(FULL_PX * side))
    full = np.zeros_like(shown)
    full[border:-border, border:-border] = shown[border:-border, border:-border] // 255
    picture_from_crop = network.picture_from_crop(shot.face.points5)
    crop_from_picture = geometry.invert(picture_from_crop)
    laid = cv2.warpAffine(full * 255, crop_from_picture, shot.size, flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
    return np.asarray(laid == 255)


def psnr_db(one: U8, other: U8) -> float:
    """Peak signal-to-noise ratio of two arrays of grey levels."""
    off = np.subtract(one, other, dtype=np.float64)
    return float(10 * np.log10(255**2 / max(float((off * off).mean()), 1e-9)))


def _compare(ours: Ours, theirs: Theirs, shot: Shot, runs: int, every: int) -> dict[str, Any]:
    """Time both on one scene."""
    contestants: list[tuple[str, int, int, Callable[[U8], object]]] = [
        ("theirs", every, 1, lambda picture: theirs.swap(picture, shot.face)),
        ("their stub", every, 1, lambda _: theirs.stub()),
        ("ours", ours.threads, IN_A_ROW, lambda picture: ours.swap(picture, shot.face)),
        ("our stub", ours.threads, IN_A_ROW, lambda _: ours.stub()),
        ("theirs, 1 thread", 1, 1, lambda picture: theirs.swap(picture, shot.face)),
    ]
    wall_ms: dict[str, list[float]] = {name: [] for name, *_ in contestants}
    cpu_ms: dict[str, list[float]] = {name: [] for name, *_ in contestants}
    picture = shot.picture.copy()
    for number in range(runs + 1):  # the first is not counted
        for name, threads, in_a_row, run in contestants:
            cv2.setNumThreads(threads)
            for _ in range(in_a_row):
                np.copyto(picture, shot.picture)
                wall_s, cpu_s = time.perf_counter(), time.thread_time()
                run(picture)
                if number:
                    cpu_ms[name].append((time.thread_time() - cpu_s) * 1e3)
                    wall_ms[name].append((time.perf_counter() - wall_s) * 1e3)
    same = both_full(ours, shot)
    mine, other = ours.swap(shot.picture.copy(), shot.face), theirs.swap(shot.picture, shot.face)
    return {
        "size": str(shot.size),
        "face_px": shot.face_px,
        **_ratio(wall_ms, "theirs"),
        "cpu": _ratio(cpu_ms, "theirs, 1 thread"),
        "psnr_db": round(psnr_db(mine[same], other[same]), 1),
    }


def _ratio(samples_ms: dict[str, list[float]], theirs: str) -> dict[str, float]:
    """Take the medians, and the stubs from them."""
    took = {name: float(np.median(samples)) for name, samples in samples_ms.items()}
    ours_ms, theirs_ms = took["ours"] - took["our stub"], took[theirs] - took["their stub"]
    return {"ours_ms": round(ours_ms, 3), "theirs_ms": round(theirs_ms, 2), "ratio": round(theirs_ms / ours_ms, 1)}


def _check_packages() -> None:
    """Raise ``ConfigError`` where a package is missing."""
    missing = [name for name in ("insightface", "onnx") if find_spec(name) is None]
    if missing:
        raise ConfigError(f"a comparison with insightface needs {' and '.join(missing)}", install_extra("neural"))


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what insightface prints, and what its own packages warn it of, from the terminal."""
    with redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
