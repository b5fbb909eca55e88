"""What the process that builds tells the one that asked, a line of JSON each; knows neither of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from engines.building.settings import BuildSettings
from engines.card import ModelCard

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Request:
    """What is built.

    Attributes:
        card: of the model, as published.
        settings: how.
        force: also where a plan is here already that fits.
    """

    card: ModelCard
    settings: BuildSettings
    force: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of the work has begun: a name in :data:`engines.building.progress.STAGES`."""

    name: str
    kind: Literal["stage"] = "stage"


@dataclass(frozen=True, slots=True)
class PhaseBegun:
    """A phase inside a stage has begun.

    Attributes:
        name: unique among the phases under way.
        parent: the phase that it is part of; empty for none.
        steps: how many it has, >= 1.
    """

    name: str
    parent: str
    steps: int
    kind: Literal["phase"] = "phase"


@dataclass(frozen=True, slots=True)
class StepDone:
    """A step of a phase is done: its number from 0."""

    name: str
    step: int
    kind: Literal["step"] = "step"


@dataclass(frozen=True, slots=True)
class PhaseDone:
    """A phase is over, perhaps before all its steps were done."""

    name: str
    kind: Literal["phase done"] = "phase done"


@dataclass(frozen=True, slots=True)
class Said:
    """A line of TensorRT's log."""

    severity: Severity
    text: str
    kind: Literal["said"] = "said"


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A file that is no use unless the build comes to its end; told before it is written."""

    path: Path
    kind: Literal["unfinished"] = "unfinished"


@dataclass(frozen=True, slots=True)
class Failed:
    """The end: an error for people.

    Attributes:
        error: name of its class in :mod:`engines.errors`.
        message: see :class:`engines.errors.LiveError`.
        hint: likewise.
    """

    error: str
    message: str
    hint: str
    kind: Literal["failed"] = "failed"


@dataclass(frozen=True, slots=True)
class Finished:
    """The end: there is a plan.

    Attributes:
        plan: its file.
        is_new: whether it was built now.
        reasons: why the plan that was here before was not used; empty where there was none.
    """

    plan: Path
    is_new: bool
    reasons: tuple[str, ...] = field(default=())
    kind: Literal["finished"] = "finished"


Message = Stage | PhaseBegun | StepDone | PhaseDone | Said | Unfinished | Failed | Finished
_MESSAGES: TypeAdapter[Any] = TypeAdapter(Annotated[Message, Field(discriminator="kind")])
_REQUESTS: TypeAdapter[Any] = TypeAdapter(Request)


def to_line(message: Message | Request) -> bytes:
    """Write a message as one line."""
    adapter = _REQUESTS if isinstance(message, Request) else _MESSAGES
    return adapter.dump_json(message) + b"\n"


def read_message(line: bytes) -> Message:
    """Read what :func:`to_line` wrote.

    Raises:
        ValueError: it is none.
    """
    message: Message = _MESSAGES.validate_json(line)
    return message


def read_request(line: bytes) -> Request:
    """Read what :func:`to_line` wrote.

    Raises:
        ValueError: it is none.
    """
    request: Request = _REQUESTS.validate_json(line)
    return request
