"""Where the plan of a card lies, what the note beside it says, and when it is refused; knows files, not TensorRT.

A plan is a network compiled for one kind of GPU, and holds code: whoever may write one runs what he likes. So none is
read that has no note of this program beside it, or that has changed since, and each is kept in the user's own folder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config

from engines.card import ModelCard
from engines.conform import fits
from engines.contract import TensorSpec
from engines.cuda.driver import Gpu
from engines.errors import EngineError
from engines.folders import user_folder
from engines.store import disk

FORMAT = 1
"""Of the note, and of the way in which networks are prepared: a change of either makes every older plan a stale one."""
PRECISION = "fp16"
"""What is built unasked."""
_MAGIC = b"ftrt"  # of TensorRT's own; those of TensorRT-RTX start with vtrt
_VERSION_AT = 24  # major, minor, patch, build, one byte each
_HEADER_BYTES = 28
_MOST_NOTE_BYTES = 1 << 20

_Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Shape = tuple[int, ...]


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True)
class Sidecar:
    """What is written beside a plan: from what, by what and for what it was built.

    Attributes:
        model: name of the card.
        model_sha256: of the file that it was built from.
        shapes: of every input and output, by its name.
        style_inputs: inputs that another, small network beside the plan computes from the inputs of the card other than
            its target; empty where the plan takes those itself.
        precision: "fp16", "fp32" or "int8".
        tensorrt: version that built it, in full, e.g. "11.4.0.106".
        gpu: name.
        capability: compute capability, e.g. (8, 9).
        uuid: of the very card it was built on. For people: another of the same name will do.
        driver: version of CUDA that the driver supported, e.g. "13.0".
        program: version of this program.
        settings: of the builder, for people.
        plan_sha256: of the plan; :func:`keep` fills it in.
        style_sha256: of the small network; empty without one. Likewise.
        format: see :data:`FORMAT`.
    """

    model: str
    model_sha256: _Hash
    shapes: Mapping[str, _Shape]
    style_inputs: tuple[str, ...]
    precision: str
    tensorrt: str
    gpu: str
    capability: tuple[int, int]
    uuid: str
    driver: str
    program: str
    settings: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    plan_sha256: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    style_sha256: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    format: int = FORMAT


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
        card: every axis of its inputs fixed: each size, and each number of pictures in one run, has a plan of its own.
        precision: see :class:`Sidecar`.
    """
    size = "x".join(map(str, target_of(card).shape))
    return user_folder() / "plans" / f"{card.name}.{size}.{precision}.plan"


def target_of(card: ModelCard) -> TensorSpec:
    """Find the input that is new with every frame: the one that ``[decode]`` calls target, else the first."""
    name = str(card.decode.get("target", card.inputs[0].name))
    return next((spec for spec in card.inputs if spec.name == name), card.inputs[0])


def how_to_build(name: str) -> str:
    """Say what a person does to have the plan of a model, as an instruction."""
    return f"doppelcam models build {name}"


def find_plan(card: ModelCard, model_sha256: str, gpu: Gpu, tensorrt: str, precision: str = PRECISION) -> Plan | str:
    """Find the plan of a card, and refuse it where it was built for something else.

    What is in the plan is only looked at by :meth:`Plan.read`.

    Args:
        card: every axis of its inputs fixed.
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
    sidecar = _note(path)
    if isinstance(sidecar, str):
        return sidecar
    wrong = _mismatch(sidecar, card, model_sha256, gpu, tensorrt)
    return f"the plan of {card.name} {wrong}" if wrong else Plan(path, sidecar)


def open_plan(path: Path) -> Plan:
    """Read the note of a plan.

    Raises:
        EngineError: there is no plan or no note, or it cannot be understood.
    """
    sidecar = _note(path) if path.is_file() else f"{path} is not there"
    if isinstance(sidecar, str):
        raise EngineError(sidecar, "doppelcam models build, with the name of the model")
    return Plan(path, sidecar)


def built_plans(name: str) -> tuple[Plan, ...]:
    """List the plans of a model, of every size and precision, whether or not they fit this machine.

    Args:
        name: of its card.
    """
    notes = {path: _note(path) for path in sorted((user_folder() / "plans").glob(f"{name}.*.plan"))}
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
    note = _note_path(path)
    files = {**({plan.style_path: style} if style else {}), path: data, note: _text(known)}
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
        (sidecar.tensorrt != tensorrt, f"was built by TensorRT {sidecar.tensorrt}, this is {tensorrt}"),
        (built != here, f"was built for compute capability {built}, this GPU has {here}"),
        (sidecar.gpu != gpu.name, f"was built for {sidecar.gpu}, this is {gpu.name}"),
        (
            _numbers(gpu.driver) < _numbers(sidecar.driver),
            f"was built with a driver for CUDA {sidecar.driver}, this one is older: CUDA {gpu.driver}",
        ),
    )
    return next((text for wrong, text in found if wrong), "")


def _note(path: Path) -> Sidecar | str:
    """Read the note beside a plan, or say in words why that cannot be done."""
    note = _note_path(path)
    try:
        with note.open("rb") as file:
            table: Any = json.loads(file.read(_MOST_NOTE_BYTES))
    except FileNotFoundError:
        return f"{path} has no note of this program beside it, and a plan from elsewhere is never run: it holds code"
    except OSError as error:
        return f"{note} cannot be read: {error.strerror}"
    except (ValueError, RecursionError):
        return f"{note} is damaged"
    if isinstance(table, dict) and table.get("format") != FORMAT:
        return f"{path} was built by a version of this program that prepared networks otherwise"
    try:
        return TypeAdapter(Sidecar).validate_python(table)
    except ValidationError as error:
        return f"{note} is damaged: {error.errors()[0]['msg']}"


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


def _note_path(path: Path) -> Path:
    return path.with_suffix(".json")


def _text(sidecar: Sidecar) -> bytes:
    return (json.dumps(asdict(sidecar), indent=2, ensure_ascii=False) + "\n").encode()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]
