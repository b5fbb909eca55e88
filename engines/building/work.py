"""The stages of a build, from a verified file to a plan with its note; runs in a process of its own."""

from __future__ import annotations

import importlib.metadata
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from onnx import ModelProto

from engines import store
from engines.building.api import TensorRtBuilder, load_builder
from engines.building.messages import Finished, PhaseBegun, Request, Stage, StepDone, Unfinished
from engines.building.network import Source, Tell, build_network
from engines.building.settings import BuildSettings, fixed
from engines.card import ModelCard
from engines.cuda import opening
from engines.cuda.driver import Gpu
from engines.errors import EngineError
from engines.fp16 import to_fp16
from engines.graph import Prepared, prepare
from engines.graph.view import shape_of
from engines.plan import Plan, find_plan, keep, plan_path
from engines.sidecar import Sidecar
from engines.sizes import profile_of, served, with_size
from engines.store import disk
from engines.store.lock import alone

Note = dict[str, str | int | float | bool]
"""What is written into the note beside the plan, for people."""


def work(request: Request, tell: Tell) -> Finished:
    """Build a plan, unless there is one that fits.

    Args:
        request: what, and how.
        tell: is told of everything under way.

    Returns:
        Where it is.

    Raises:
        ModelError: the file is missing, damaged or cannot be prepared, the samples cannot be used, or the disk refuses.
        EngineError: TensorRT is not installed, or cannot build it.
        DeviceError: no GPU can be used.
    """
    start_s = time.monotonic()
    settings, card = request.settings, fixed(request.card, request.settings)
    settings.demand_possible()
    trt = load_builder()
    tell(Stage("checking the model"))
    file = store.find(card)
    with closing(opening.open_driver()) as driver:
        job = _Job(card, file, store.fingerprint(file, card), settings, trt, driver.gpu, tell)
        found = job.find()
        if isinstance(found, Plan) and not request.force:
            return Finished(found.path, is_new=False)
        place = plan_path(card, settings.precision)
        reasons = () if isinstance(found, Plan) or not place.exists() else (found,)
        disk.make_folder(place.parent)
        with alone(place, doing="building"):
            return Finished(job.build(start_s).path, is_new=True, reasons=reasons)


@dataclass(frozen=True, slots=True)
class _Job:
    """One build. ``note`` fills up on the way."""

    card: ModelCard
    file: Path
    sha256: str
    settings: BuildSettings
    trt: TensorRtBuilder
    gpu: Gpu
    tell: Tell
    note: Note = field(default_factory=dict)

    def __post_init__(self) -> None:
        choices = self.settings
        self.note["optimisation"] = choices.optimisation
        self.note["workspace_bytes"] = choices.workspace_bytes
        self.note["strict_nans"] = choices.strict_nans

    def find(self) -> Plan | str:
        """Find the plan that is here, and prove it; or say why there is none that will do."""
        found = find_plan(self.card, self.sha256, self.gpu, self.trt.__version__, self.settings.precision)
        if isinstance(found, Plan):
            try:
                found.read()
                if found.sidecar.style_inputs:
                    found.read_style()
            except EngineError as error:
                return error.message
        return found

    def build(self, start_s: float) -> Plan:
        """Build it."""
        self.tell(Stage("preparing the graph"))
        network, sidecar, style = self._network()
        place = plan_path(self.card, self.settings.precision)
        disk.need_room(place, len(network) + len(style))  # before minutes are spent; a plan is about as large
        self.tell(Stage("building"))
        cache = _timings_path(place.parent, self.gpu, self.trt.__version__)
        source = Source(self.card.name, network, profile_of(self.card))
        built = build_network(self.trt, source, self.settings, _read(cache), self.tell)
        self.tell(Stage("writing"))
        self._write_timings(cache, built.timings)
        self.note["seconds"] = round(time.monotonic() - start_s, 1)
        for each in (place.with_suffix(".style.onnx"), place, place.with_suffix(".json")):
            self.tell(Unfinished(each.with_name(f"{each.name}.part")))
        return keep(self.card, built.plan, style, sidecar)

    def _network(self) -> tuple[bytes, Sidecar, bytes]:
        """Make the network to build, the note, and the small network beside it: all that is kept while TensorRT works.

        A network of inswapper's size takes 3 GB while it is prepared.
        """
        prepared = prepare(self.file, self.card)
        style = prepared.style_model.SerializeToString() if prepared.style_model else b""
        return self._converted(prepared).SerializeToString(), self._sidecar(prepared), style

    def _converted(self, prepared: Prepared) -> ModelProto:
        """Give the network the precision that was asked for."""
        network, precision = prepared.model, self.settings.precision
        self.note["nodes"] = len(network.graph.node)
        if precision == "fp32":
            return network
        if precision == "int8" and self.settings.calibration is not None:
            from engines.building.samples import read_samples  # noqa: PLC0415  (numba and the quantiser, for this only)
            from engines.int8 import to_int8  # noqa: PLC0415

            self.tell(Stage("calibrating"))
            sizes = served(self.card)
            shown = with_size(self.card, sizes.best if sizes else None)
            samples = read_samples(self.settings.calibration, shown, prepared.style_model, self._read_one)
            quantised = to_int8(network, samples)
            network = quantised.model
            self.note["whole_number_layers"] = quantised.layers
            self.note["whole_number_error"] = round(max(error.rms for error in quantised.errors), 5)
        self.tell(Stage("converting"))
        islands = to_fp16(prepared.at_best).report.kept if prepared.at_best else ()
        converted = to_fp16(network, names=islands)
        self.note["islands"] = sum(converted.report.islands.values())
        return converted.model

    def _read_one(self, done: int, of: int) -> None:
        if done == 1:
            self.tell(PhaseBegun("reading samples", "", of))
        self.tell(StepDone("reading samples", done - 1))

    def _write_timings(self, cache: Path, timings: bytes) -> None:
        if timings:
            part = cache.with_name(f"{cache.name}.part")
            with alone(cache, wait=True):  # builds of other models write it too
                self.tell(Unfinished(part))
                with disk.plain_errors(cache):
                    part.write_bytes(timings)
                disk.commit(part, cache)

    def _sidecar(self, prepared: Prepared) -> Sidecar:
        """Write the note; its figures are filled in on the way."""
        graph = prepared.model.graph
        return Sidecar(
            self.card.name,
            self.sha256,
            {value.name: shape_of(value) or () for value in (*graph.input, *graph.output)},
            prepared.frontier,
            self.settings.precision,
            self.trt.__version__,
            self.gpu.name,
            self.gpu.capability,
            self.gpu.uuid,
            self.gpu.driver,
            _version(),
            self.note,
            served(self.card),
        )


def _version() -> str:
    try:
        return importlib.metadata.version("doppelcam")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _timings_path(folder: Path, gpu: Gpu, tensorrt: str) -> Path:
    """Say where what was measured on a GPU lies: another model of it, or another version, measures anew."""
    kind = "".join(letter if letter.isalnum() else "-" for letter in gpu.name)
    major, minor = gpu.capability
    return folder / f"{kind}.{major}{minor}.{tensorrt}.timings"


def _read(cache: Path) -> bytes:
    """Read a timing cache; one that is not there or cannot be read costs the time to measure again."""
    try:
        return cache.read_bytes()
    except OSError:
        return b""
