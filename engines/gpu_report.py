"""What of a GPU is here and what is missing, from the best way to run networks to the last; runs none of them.

Whatever may crash or hang is tried in a process of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from engines import card, isolated, registry, store
from engines.contract import Availability
from engines.cuda import opening, provider
from engines.cuda.toolkit import COMPILER
from engines.errors import DeviceError, EngineError, ModelError, install_extra
from engines.plan import Plan, built_plans, how_to_build
from engines.tensorrt.api import installed
from engines.tensorrt.probe import probe as probe_tensorrt

TRIAL = "engines.gpu_trial"
MOST_S = 60.0
"""A first start compiles the kernels."""
UPDATE = "update the NVIDIA driver, and see whether nvidia-smi shows the GPU"


class Finding(NamedTuple):
    """One thing that was looked at.

    Attributes:
        name: for people.
        found: whether it can be used, what was found, and what to do where it cannot.
    """

    name: str
    found: Availability


def parts() -> tuple[Finding, ...]:
    """Say of everything that a network on the GPU needs whether it is here, in the order in which it is needed."""
    return (
        Finding("GPU", opening.ask_driver()),
        Finding("CuPy", _cupy()),
        Finding("back end", _back_end()),
        Finding("TensorRT", _tensorrt()),
        Finding("ONNX Runtime's CUDA", _provider()),
    )


def can_be_driven() -> bool:
    """Say whether frames can be sent to the GPU."""
    return opening.probe().ok


def chain(found: Sequence[Finding]) -> tuple[Finding, ...]:
    """Say of each way to run networks, the best first, whether it can be used here and what it lacks.

    Args:
        found: what ``parts`` gave.
    """
    gpu, *packages, runtime = found
    host = registry.probe("runtime", "onnxrt")
    return (
        Finding("1 TensorRT", _all_of("in half precision, for models with a plan", [gpu, *packages])),
        Finding("2 ONNX Runtime CUDA", _all_of("for every other model", [gpu, runtime])),
        Finding("3 ONNX Runtime CPU", Availability(host.ok, host.reason.partition(" (")[0], host.hint)),
    )


def plans() -> tuple[Finding, ...]:
    """Say which plans have been built, and which models that are here, and that TensorRT could run, have none."""
    found, bare = [], []
    for name in card.names():
        try:
            model = card.load_card(name)
            here = registry.serves("tensorrt", model) and store.locate(model) is not None
        except ModelError:  # told where models are looked at
            continue
        if built := built_plans(name):
            found.append(Finding(f"plan of {name}", Availability(True, "; ".join(map(_described, built)))))
        elif here:
            bare.append(name)
    if bare:
        fix = f"{how_to_build(bare[0])}; a run builds those that it paints with by itself"
        found.append(Finding("plans", Availability(False, f"not built: {', '.join(bare)}", fix)))
    return tuple(found)


class Memory(NamedTuple):
    """What a run takes of the GPU before any network is opened.

    Attributes:
        device: its name, and what drives it.
        cuda: version that the driver supports.
        total_bytes: of the GPU.
        free_bytes: of it, while the frames are in flight.
        lines: what is allocated: "device" or "pinned", what for, bytes.
        remarks: what does not run as well as it should.
    """

    device: str
    cuda: str
    total_bytes: int
    free_bytes: int
    lines: tuple[tuple[str, str, int], ...]
    remarks: tuple[str, ...]


def memory() -> Memory:
    """Send frames to the GPU and back, in another process, and list what that has allocated.

    Raises:
        DeviceError: it failed, crashed or hung.
    """
    told = _tried("device", "the GPU", UPDATE)
    if "error" in told:
        raise DeviceError(told["error"], told["hint"])
    lines = tuple((where, what, nbytes) for where, what, nbytes in told["allocations"])
    return Memory(told["name"], told["cuda"], told["memory_bytes"], told["free_bytes"], lines, tuple(told["remarks"]))


def _tried(what: str, words: str, hint: str) -> Mapping[str, Any]:
    try:
        return isolated.ask(words, isolated.module(TRIAL, what), hint, MOST_S)
    except EngineError as error:
        return {"error": error.message, "hint": error.hint}


def _back_end() -> Availability:
    there = [name for name, (_, needs) in opening.BACK_ENDS.items() if all(map(opening.is_there, needs))]
    if not there:
        return Availability(False, f"none of {', '.join(opening.BACK_ENDS)} is installed", install_extra("gpu"))
    return Availability(True, ", ".join(there))


def _cupy() -> Availability:
    if not opening.is_there("cupy"):
        return Availability(False, "not installed", install_extra("gpu"))
    if not opening.probe().ok:
        return Availability(True, "installed; not tried without a GPU")
    told = _tried("kernels", "CuPy", COMPILER)
    if "error" in told:
        return Availability(False, told["error"], told["hint"])
    return Availability(True, "compiles the kernels")


def _tensorrt() -> Availability:
    if installed() is None:
        return Availability(False, "not installed", install_extra("gpu"))
    if not opening.ask_driver().ok:
        return Availability(True, "installed; not started without a GPU")
    return probe_tensorrt()


def _provider() -> Availability:
    """Say whether ONNX Runtime runs on the GPU: a build that lists the provider may still lack its libraries."""
    host = registry.probe("runtime", "onnxrt")
    if not host.ok:
        return host
    version, _, providers = host.reason.partition(" (")
    if provider.NAME not in providers:
        return Availability(False, f"{version} is built without it", provider.INSTALL)
    if not opening.ask_driver().ok:
        return Availability(True, f"{version} has it; not started without a GPU")
    found = provider.probe()
    return Availability(True, version) if found.ok else found


def _all_of(what: str, needed: Sequence[Finding]) -> Availability:
    lacking = [part for part in needed if not part.found.ok]
    if not lacking:
        return Availability(True, what)
    return Availability(False, f"lacks: {', '.join(part.name for part in lacking)}", lacking[0].found.hint)


def _described(plan: Plan) -> str:
    note = plan.sidecar
    size = f"pictures of {note.sizes}" if note.sizes else "x".join(map(str, next(iter(note.shapes.values()), ())))
    return f"{note.precision}, {size}, for {note.gpu} and TensorRT {note.tensorrt}"
