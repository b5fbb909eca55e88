"""Tables of devices and runtimes, and the two doors that open them; knows names and reasons, imports only on use."""

from __future__ import annotations

import importlib
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from engines.contract import Availability, Device, Engine
from engines.errors import DeviceError, EngineError, install_extra

if TYPE_CHECKING:
    from engines.card import ModelCard


class Entry(NamedTuple):
    """One line of a table.

    Attributes:
        target: ``"module:Class"``, or a function that makes one; the module has ``probe() -> Availability``.
        needs: packages to import that it cannot work without.
        install: how to get them.
        providers: whether a runtime can run on several things, see :mod:`engines.providers`.
        on_device: whether a runtime computes in the memory of the device that is opened, and is given it.
        takes: another runtime whose models it takes, whether or not a card names it.
        doubtful: whether what a runtime computes is compared with a card's first runtime before it is used, because it
            may take a lower precision than the model states.
    """

    target: str
    needs: tuple[str, ...]
    install: str
    providers: bool = False
    doubtful: bool = False
    on_device: bool = False
    takes: str = ""


DEVICES: dict[str, Entry] = {
    "cuda": Entry("engines.cuda.device:CudaDevice", (), install_extra("gpu")),
    "cpu": Entry("engines.cpu:CpuDevice", ("cv2", "numba"), "pip install opencv-python numba"),
}
"""Best first; the last one always works."""

RUNTIMES: dict[str, Entry] = {
    "litert": Entry("engines.litert:LiteRtEngine", ("ai_edge_litert",), "pip install ai-edge-litert"),
    "onnxrt": Entry("engines.onnxrt:OnnxRuntimeEngine", ("onnxruntime",), "pip install onnxruntime", providers=True),
    "openvino": Entry("engines.openvino:OpenVinoEngine", ("openvino",), "pip install openvino", doubtful=True),
    "tensorrt": Entry("engines.tensorrt.open:open_planned", (), install_extra("gpu"), on_device=True, takes="onnxrt"),
}

Kind = Literal["device", "runtime"]
_TABLES: dict[Kind, dict[str, Entry]] = {"device": DEVICES, "runtime": RUNTIMES}


def probe(kind: Kind, name: str) -> Availability:
    """Say whether a device or runtime can be used here.

    Args:
        kind: which table.
        name: in that table.

    Returns:
        Usable or not, and why: no such name, a package is not installed, or it is installed but does not load.
    """
    table = _TABLES[kind]
    if name not in table:
        return Availability(False, f"there is no {kind} {name!r}", f"use one of: {', '.join(table)}")
    entry = table[name]
    missing = [package for package in entry.needs if find_spec(package) is None]
    if missing:
        return Availability(False, f"package {', '.join(missing)} is not installed", entry.install)
    try:
        found: Availability = _module(entry).probe()
    except (ImportError, OSError) as error:  # OSError: a shared library of the package is missing or damaged
        if isinstance(error, ImportError) and (error.name or "").partition(".")[0] == "engines":
            raise  # a bug of this program, which no installation mends
        return Availability(False, f"{', '.join(entry.needs)} is installed but does not load: {error}", entry.install)
    return found


def open_device(name: str) -> Device:
    """Open a device.

    Args:
        name: in ``DEVICES``.

    Returns:
        The device.

    Raises:
        DeviceError: it cannot be used here; the message says why.
    """
    found = probe("device", name)
    if not found.ok:
        raise DeviceError(f"device {name!r} cannot be used: {found.reason}", found.hint)
    device: Device = _load(DEVICES[name])()
    return device


def open_best_device() -> tuple[Device, tuple[str, ...]]:
    """Open the first device that can be used here.

    Returns:
        The device, and why each better one is not it.
    """
    *better, last = DEVICES
    reasons: list[str] = []
    for name in better:
        found = probe("device", name)
        try:
            if found.ok:
                return open_device(name), tuple(reasons)
            reasons.append(f"not {name}: {found.reason}")
        except DeviceError as error:
            reasons.append(f"not {name}: {error.message}")
    return open_device(last), tuple(reasons)


def open_engine(
    card: ModelCard,
    runtime: str = "auto",
    threads: int = 0,
    provider: str = "auto",
    allow_cpu: bool = False,
    batch: int = 1,
    device: Device | None = None,
    size: tuple[int, int] | None = None,
) -> Engine:
    """Find a model's file, verify it and load it.

    Args:
        card: the model, for one picture.
        runtime: in ``RUNTIMES``, or "auto": the first that the card names. "auto" never takes another in its place
            when that one cannot be used, because a slower one would go unnoticed.
        threads: for a runtime on the processor; 0 for as many as pay: one for the embedded models, where a second
            gains a quarter and takes the core that camera and meeting need, else one for each core.
        provider: what ONNX Runtime runs on, in ``providers.PROVIDERS``, or "auto": the first that runs the model.
            Other runtimes run on the processor.
        allow_cpu: let operators that the provider lacks go to the processor.
        batch: pictures in one run, >= 1.
        device: that the run works on, for a runtime that computes in its memory.
        size: width and height in pixels of the pictures that it will mostly get, where the card leaves that free: for a
            runtime that computes in the memory of a device, where an engine takes one size.

    Returns:
        The engine; its ``runtime`` says what really runs.

    Raises:
        ModelError: the file is missing or damaged.
        EngineError: the runtime or the provider is unknown, cannot serve this card, or cannot be used here, or the
            model cannot take so many pictures in one run; the message says why.
    """
    from engines import store  # noqa: PLC0415  (platformdirs and pydantic load only when a model is opened)
    from engines.batch import batch_of, open_batched, with_batch  # noqa: PLC0415

    name = card.runtimes[0] if runtime == "auto" else runtime
    entry = _usable(card, name)
    path = store.find(card)
    extra: dict[str, Any] = {"provider": provider, "allow_cpu": allow_cpu} if entry.providers else {}
    if entry.on_device:
        extra |= {"device": device, "size": size}
    load = partial(_load(entry), path=path, threads=threads or _threads_for(path), **extra)

    doubtful = entry.doubtful and name != card.runtimes[0]

    def make(asked: ModelCard) -> Engine:
        with ExitStack() as on_failure:
            engine: Engine = load(asked)
            on_failure.callback(engine.close)
            if doubtful and batch_of(asked) <= 1:  # more are held against single runs
                _demand_precision(asked, path, name, engine)
            on_failure.pop_all()
        return engine

    if entry.on_device:  # a plan was built for so many pictures, and is checked against its card
        return make(with_batch(card, batch))
    return open_batched(card, batch, make) if batch > 1 else make(card)


def on_device(card: ModelCard, device: Device | None) -> tuple[str, ...]:
    """List the runtimes that could run a model in the memory of a device, where that has one of its own."""
    if device is None or not device.works_ahead:
        return ()
    return tuple(name for name, entry in RUNTIMES.items() if entry.on_device and serves(name, card))


def serves(name: str, card: ModelCard) -> bool:
    """Say whether a runtime of ``RUNTIMES`` takes the models of a card."""
    return name in card.runtimes or RUNTIMES[name].takes in card.runtimes


def _usable(card: ModelCard, name: str) -> Entry:
    """Find a runtime that serves a card, or raise ``EngineError``."""
    if name in RUNTIMES and not serves(name, card):
        raise EngineError(
            f"runtime {name!r} cannot serve model {card.name}", f"use one of: {', '.join(card.runtimes)}, or auto"
        )
    found = probe("runtime", name)
    if not found.ok:
        served = any(other != name and probe("runtime", other).ok for other in card.runtimes)
        hint = f"{found.hint}, or leave the runtime at auto" if served else found.hint
        raise EngineError(f"model {card.name} needs runtime {name!r}: {found.reason}", hint)
    return RUNTIMES[name]


def _threads_for(path: Path) -> int:
    from engines.folders import EMBEDDED  # noqa: PLC0415
    from engines.processor import cores  # noqa: PLC0415

    return 1 if path.parent == EMBEDDED else cores()


def _demand_precision(card: ModelCard, path: Path, name: str, engine: Engine) -> None:
    """Hold an engine against the card's first runtime, once for each model, version and processor."""
    from engines import precision, store  # noqa: PLC0415
    from engines.processor import processor  # noqa: PLC0415

    first = card.runtimes[0]
    versions = (probe("runtime", name).reason, probe("runtime", first).reason)
    key = (store.fingerprint(path, card), *versions, processor())
    precision.demand_precision(
        card, engine, lambda: open_engine(card, first, provider="cpu"), key, precision.verdicts()
    )


def _module(entry: Entry) -> ModuleType:
    return importlib.import_module(entry.target.partition(":")[0])


def _load(entry: Entry) -> type:
    loaded: type = getattr(_module(entry), entry.target.partition(":")[2])
    return loaded
