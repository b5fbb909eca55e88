"""Where the plan of a card lies, and when it is refused; knows files, not TensorRT.

A plan is a network compiled for one kind of GPU, and holds code: whoever may write one runs what he likes. So none is
read that has no note of this program beside it, or that has changed since, and each is kept in the user's own folder.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from engines.card import ModelCard
from engines.conform import fits
from engines.contract import TensorSpec
from engines.cuda.driver import Gpu
from engines.errors import EngineError
from engines.folders import user_folder
from engines.sidecar import Sidecar, note_path, note_text, read_note
from engines.sizes import Sizes, served, with_size, words
from engines.store import disk

PRECISION = "fp16"
"""What is built unasked."""
_MAGIC = b"ftrt"  # of TensorRT's own; those of TensorRT-RTX start with vtrt
_VERSION_AT = 24  # major, minor, patch, build, one byte each
_HEADER_BYTES = 28


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan and its note.

    Attributes:
        path: of the plan.
        sidecar: its note.
    """

    path: Path
    sidecar: Sidecar

    @property
    def style_path(self) -> Path:
        """Of the small network; only there where the note names style inputs."""
        return self.path.with_suffix(".style.onnx")

    def read(self) -> bytes:
        """Read the plan, and prove that it is the one that was built.

        Raises:
            EngineError: it cannot be read, has changed since, or is none of the TensorRT that its note names.
        """
        data = _proven(self.path, self.sidecar.plan_sha256, self.sidecar.model)
        if wrong := header_fault(data, self.sidecar.tensorrt):
            raise EngineError(f"{self.path} {wrong}", how_to_build(self.sidecar.model))
        return data

    def read_style(self) -> bytes:
        """Read the small network that gives the style inputs; raises as :meth:`read` does."""
        return _proven(self.style_path, self.sidecar.style_sha256, self.sidecar.model)


def plan_path(card: ModelCard, precision: str = PRECISION) -> Path:
    """Say where the plan of a card lies; it need not exist.

    Args:
        card: each size, each range of sizes and each number of pictures in one run has a plan of its own.
        precision: see :class:`Sidecar`.
    """
    size = "x".join(_axes(card))
    return user_folder() / "plans" / f"{card.name}.{size}.{precision}.plan"


def target_of(card: ModelCard) -> TensorSpec:
    """Find the input that is new with every frame: the one that ``[decode]`` calls target, else the first."""
    name = str(card.decode.get("target", card.inputs[0].name))
    return next((spec for spec in card.inputs if spec.name == name), card.inputs[0])


def how_to_build(name: str, size: tuple[int, int] | None = None) -> str:
    """Say what a person does to have the plan of a model, perhaps for pictures of one size, as an instruction."""
    return f"doppelcam models build {name}{f' --size {words(size)}' if size else ''}"


def find_plan(card: ModelCard, model_sha256: str, gpu: Gpu, tensorrt: str, precision: str = PRECISION) -> Plan | str:
    """Find the plan of a card, and refuse it where it was built for something else.

    What is in the plan is only looked at by :meth:`Plan.read`.

    Args:
        card: every axis of its inputs fixed, or free within ``card.sizes``: then the plan serves all of these.
        model_sha256: of the model's file.
        gpu: to run it on.
        tensorrt: version to run it with, in full.
        precision: see :class:`Sidecar`.

    Returns:
        The plan, or in words why there is none that will do.
    """
    path = plan_path(card, precision)
    if not path.is_file():
        return f"no plan of {card.name} in {precision} has been built"
    sidecar = read_note(path)
    if isinstance(sidecar, str):
        return sidecar
    wrong = _mismatch(sidecar, card, model_sha256, gpu, tensorrt)
    return f"the plan of {card.name} {wrong}" if wrong else Plan(path, sidecar)


def open_plan(path: Path) -> Plan:
    """Read the note of a plan.

    Raises:
        EngineError: there is no plan or no note, or it cannot be understood.
    """
    sidecar = read_note(path) if path.is_file() else f"{path} is not there"
    if isinstance(sidecar, str):
        raise EngineError(sidecar, "doppelcam models build, with the name of the model")
    return Plan(path, sidecar)


def built_plans(name: str) -> tuple[Plan, ...]:
    """List the plans of a model, of every size and precision, whether or not they fit this machine.

    Args:
        name: of its card.
    """
    notes = {path: read_note(path) for path in sorted((user_folder() / "plans").glob(f"{name}.*.plan"))}
    return tuple(
        Plan(path, sidecar)
        for path, sidecar in notes.items()
        if isinstance(sidecar, Sidecar) and sidecar.model == name  # a name may be the beginning of another
    )


def keep(card: ModelCard, data: bytes, style: bytes, sidecar: Sidecar) -> Plan:
    """Write a plan and its note where :func:`find_plan` looks; what was there is replaced.

    The note comes last: where it is interrupted, what is there is no plan, and not one with the note of another.

    Args:
        card: that it was built for.
        data: the plan.
        style: the small network that gives the style inputs, as ONNX; empty where there are none.
        sidecar: everything but the hashes of these two.

    Raises:
        ModelError: it cannot be written.
    """
    path = plan_path(card, sidecar.precision)
    known = replace(sidecar, plan_sha256=_sha256(data), style_sha256=_sha256(style) if style else "")
    plan = Plan(path, known)
    disk.make_folder(path.parent)
    disk.need_room(path, len(data) + len(style))
    note = note_path(path)
    files = {**({plan.style_path: style} if style else {}), path: data, note: note_text(known)}
    for place, content in files.items():  # where the disk gets full here, the plan before stays
        with disk.plain_errors(place):
            _part(place).write_bytes(content)
    with disk.plain_errors(note):
        note.unlink(missing_ok=True)
    for place in files:
        disk.commit(_part(place), place)
    return plan


def header_fault(data: bytes, tensorrt: str) -> str:
    """Say what is wrong with the first bytes of a plan; empty where nothing is.

    Args:
        data: the plan.
        tensorrt: version that is to read it.
    """
    if len(data) < _HEADER_BYTES or not data.startswith(_MAGIC):
        return "is no plan of TensorRT"
    built = data[_VERSION_AT : _VERSION_AT + 3]
    if list(built) != _numbers(tensorrt)[:3]:
        return f"was built by TensorRT {'.'.join(map(str, built))}, this is {tensorrt}"
    return ""


def _mismatch(sidecar: Sidecar, card: ModelCard, model_sha256: str, gpu: Gpu, tensorrt: str) -> str:
    """Say what else a plan was built for; empty where it will do."""
    taken = [target_of(card)] if sidecar.style_inputs else card.inputs
    others = [spec for spec in (*taken, *card.outputs) if not fits(spec.shape, sidecar.shapes.get(spec.name, ()))]
    built, here = (".".join(map(str, capability)) for capability in (sidecar.capability, gpu.capability))
    found = (
        (
            sidecar.model_sha256 != model_sha256,
            f"was built from another file: sha256 {sidecar.model_sha256[:12]}, not {model_sha256[:12]}",
        ),
        *(
            (True, f"has {spec.name!r} as {sidecar.shapes.get(spec.name)}, the card says {spec.shape}")
            for spec in others
        ),
        (
            sidecar.sizes != (sizes := served(card)),
            f"was built for pictures of {_range(sidecar.sizes)}, the card says {_range(sizes)}",
        ),
        (sidecar.tensorrt != tensorrt, f"was built by TensorRT {sidecar.tensorrt}, this is {tensorrt}"),
        (built != here, f"was built for compute capability {built}, this GPU has {here}"),
        (sidecar.gpu != gpu.name, f"was built for {sidecar.gpu}, this is {gpu.name}"),
        (
            _numbers(gpu.driver) < _numbers(sidecar.driver),
            f"was built with a driver for CUDA {sidecar.driver}, this one is older: CUDA {gpu.driver}",
        ),
    )
    return next((text for wrong, text in found if wrong), "")


def _range(sizes: Sizes | None) -> str:
    return f"{sizes}, best {words(sizes.best)}" if sizes else "one size"


def _axes(card: ModelCard) -> list[str]:
    """Write the shape of a card's target; an axis of any size as the range that is served."""
    shape, sizes = target_of(card).shape, served(card)
    if sizes is None:
        return [str(n) for n in shape]
    least, _, most = (target_of(with_size(card, size)).shape for size in sizes.corners)
    return [str(n) if n == m else f"{n}-{m}" for n, m in zip(least, most, strict=True)]


def _proven(path: Path, sha256: str, model: str) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise EngineError(f"{path} cannot be read: {error.strerror}", how_to_build(model)) from error
    if _sha256(data) != sha256:
        raise EngineError(f"{path} is not what this program built: it has changed since", how_to_build(model))
    return data


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]
