"""What the note beside a plan says, and how it is read and written; knows words and files, not what a plan is for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config

from engines.sizes import Sizes

FORMAT = 2
"""Of the note, and of the way in which networks are prepared: a change of either makes every older plan a stale one."""
_MOST_BYTES = 1 << 20

_Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Shape = tuple[int, ...]


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True)
class Sidecar:
    """What is written beside a plan: from what, by what and for what it was built.

    Attributes:
        model: name of the card.
        model_sha256: of the file that it was built from.
        shapes: of every input and output, by its name; -1 for an axis that follows from the size of the pictures.
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
        sizes: of the pictures that the plan serves; None where that is the one in ``shapes``.
        plan_sha256: of the plan; :func:`engines.plan.keep` fills it in.
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
    sizes: Sizes | None = None
    plan_sha256: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    style_sha256: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    format: int = FORMAT


def note_path(plan: Path) -> Path:
    """Say where the note of a plan lies."""
    return plan.with_suffix(".json")


def read_note(plan: Path) -> Sidecar | str:
    """Read the note beside a plan, or say in words why that cannot be done."""
    note = note_path(plan)
    try:
        with note.open("rb") as file:
            table: Any = json.loads(file.read(_MOST_BYTES))
    except FileNotFoundError:
        return f"{plan} has no note of this program beside it, and a plan from elsewhere is never run: it holds code"
    except OSError as error:
        return f"{note} cannot be read: {error.strerror}"
    except (ValueError, RecursionError):
        return f"{note} is damaged"
    if isinstance(table, dict) and table.get("format") != FORMAT:
        return f"{plan} was built by a version of this program that prepared networks otherwise"
    try:
        return TypeAdapter(Sidecar).validate_python(table)
    except ValidationError as error:
        return f"{note} is damaged: {error.errors()[0]['msg']}"


def note_text(sidecar: Sidecar) -> bytes:
    """Write a note as JSON that a person can read."""
    return (json.dumps(asdict(sidecar), indent=2, ensure_ascii=False) + "\n").encode()
