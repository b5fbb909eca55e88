"""Has TensorRT build the plan of an ONNX network; knows its builder, no card and no file. In a process of its own only.

Precision is no switch of the builder: the network states it, see :mod:`engines.fp16`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from engines.building.api import Builder, IBuilderConfig, Monitor, MonitorClass, OnnxParser, TensorRtBuilder
from engines.building.messages import Message, PhaseBegun, PhaseDone, Said, StepDone
from engines.building.settings import BuildSettings
from engines.errors import EngineError
from engines.sizes import Profile
from engines.tensorrt.api import Logger, LoggerClass, Words

Tell = Callable[[Message], bool]
"""Passes a message on, from any thread; says whether anybody still wants to hear."""
MOST_ERRORS = 5
"""Of the parser's, in one message: the first one tells, the others often follow from it."""
_HINTS = (
    ("out of memory", "close what else uses the GPU, or give the build less: --workspace, --boost 1"),
    ("OutOfMemory", "close what else uses the GPU, or give the build less: --workspace, --boost 1"),
    ("insufficient workspace", "give it more memory: leave --workspace out"),
)
"""What TensorRT says when it fails, and what a person can do."""


@dataclass(frozen=True, slots=True)
class Built:
    """What the builder made.

    Attributes:
        plan: the plan.
        timings: its timing cache, for the next build on the same GPU.
    """

    plan: bytes
    timings: bytes


@dataclass(frozen=True, slots=True)
class Source:
    """What a plan is built of.

    Attributes:
        name: of the model, for people.
        network: as ONNX, strongly typed, every shape fixed but for what follows from the inputs in ``profile``.
        profile: between which shapes inputs of free size are; empty without any.
    """

    name: str
    network: bytes
    profile: Profile


def build_network(trt: TensorRtBuilder, source: Source, settings: BuildSettings, timings: bytes, tell: Tell) -> Built:
    """Build a plan.

    Args:
        trt: the bindings; the context of the GPU is current.
        source: of what.
        settings: how.
        timings: a timing cache, perhaps of another GPU or version; empty for none.
        tell: is told of every phase and of what TensorRT warns of.

    Returns:
        The plan.

    Raises:
        EngineError: TensorRT does not start, does not understand the network, or cannot build it; the message has its
            words.
    """
    words = Words()
    # Both outlive the builder, whose threads use them.
    logger, monitor = _listening(trt, words, tell), _watching(trt, tell)
    return _build(trt, source, settings, timings, _Ears(logger, monitor, words))


@dataclass(frozen=True, slots=True)
class _Ears:
    """What listens to the builder."""

    logger: Logger
    monitor: Monitor
    words: Words


def _build(trt: TensorRtBuilder, source: Source, settings: BuildSettings, timings: bytes, ears: _Ears) -> Built:
    try:
        builder = trt.Builder(ears.logger)
    except (TypeError, RuntimeError) as error:  # what the bindings make of a library that gives none
        raise _refusal(f"TensorRT's builder does not start: {ears.words}") from error
    definition = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = trt.OnnxParser(definition, ears.logger)
    if not parser.parse(source.network):
        raise EngineError(
            f"TensorRT does not understand {source.name}: {_told(parser) or ears.words}",
            "serve it with runtime onnxrt, or update TensorRT",
        )
    config = builder.create_builder_config()
    config.progress_monitor = ears.monitor
    _configure(trt, config, settings)
    _set_sizes(builder, config, source, ears.words)
    _set_timings(config, timings)
    plan = builder.build_serialized_network(definition, config)
    if plan is None:
        raise _refusal(f"TensorRT cannot build {source.name}: {ears.words}")
    cache = config.get_timing_cache()
    return Built(_bytes(plan), _bytes(cache.serialize()) if cache is not None else b"")


def _configure(trt: TensorRtBuilder, config: IBuilderConfig, settings: BuildSettings) -> None:
    config.max_aux_streams = 0  # one stream: what is captured must not leave it, and small kernels gain nothing
    config.builder_optimization_level = settings.optimisation
    if settings.workspace_bytes:
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, settings.workspace_bytes)
    if settings.precision == "fp32":
        config.clear_flag(trt.BuilderFlag.TF32)  # on unless cleared, and has no more bits than half precision
    if settings.strict_nans:
        config.set_flag(trt.BuilderFlag.STRICT_NANS)


def _set_sizes(builder: Builder, config: IBuilderConfig, source: Source, words: Words) -> None:
    """Say between which shapes the inputs of free size will be; a network without any needs no profile."""
    if not source.profile:
        return
    profile = builder.create_optimization_profile()
    try:
        for name, (least, best, most) in source.profile.items():
            profile.set_shape(name, least, best, most)
    except ValueError as error:
        raise _refusal(f"TensorRT does not take the sizes of {source.name}: {error}") from error
    if config.add_optimization_profile(profile) < 0:
        raise _refusal(f"TensorRT does not take the sizes of {source.name}: {words}")


def _set_timings(config: IBuilderConfig, timings: bytes) -> None:
    """Take over what was measured before; from another GPU or version that is worth nothing, and an empty one is."""
    if not (timings and config.set_timing_cache(config.create_timing_cache(timings), False)):
        config.set_timing_cache(config.create_timing_cache(b""), False)


def _told(parser: OnnxParser) -> str:
    errors = [parser.get_error(number) for number in range(parser.num_errors)]
    words = [f"{error.node_operator()} {error.node_name()!r}: {error.desc().strip()}" for error in errors]
    more = [f"and {len(words) - MOST_ERRORS} more"] if len(words) > MOST_ERRORS else []
    return "; ".join([*words[:MOST_ERRORS], *more])


def _refusal(message: str) -> EngineError:
    hint = next((hint for said, hint in _HINTS if said in message), "update the NVIDIA driver and TensorRT, then again")
    return EngineError(message, hint)


def _listening(trt: TensorRtBuilder, words: Words, tell: Tell) -> Logger:
    """Make a logger that keeps errors for the end and tells warnings at once."""
    errors = (trt.ILogger.INTERNAL_ERROR, trt.ILogger.ERROR)

    def log(_: Logger, severity: Any, msg: str) -> None:
        if severity in errors:
            words.add(msg)
            tell(Said("error", msg.strip()))
        elif severity == trt.ILogger.WARNING:
            tell(Said("warning", msg.strip()))

    kind: LoggerClass = type("Logger", (cast(type, trt.ILogger),), {"log": log})  # type: ignore[assignment]  # its base is known only now
    return kind()


def _watching(trt: TensorRtBuilder, tell: Tell) -> Monitor:
    """Make a monitor that tells of every phase, and stops the build when nobody listens any more."""

    def phase_start(_: Monitor, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
        tell(PhaseBegun(phase_name, parent_phase or "", num_steps))

    def step_complete(_: Monitor, phase_name: str, step: int) -> bool:
        return tell(StepDone(phase_name, step))

    def phase_finish(_: Monitor, phase_name: str) -> None:
        tell(PhaseDone(phase_name))

    methods = {"phase_start": phase_start, "step_complete": step_complete, "phase_finish": phase_finish}
    kind: MonitorClass = type("Monitor", (cast(type, trt.IProgressMonitor),), methods)  # type: ignore[assignment]  # see above
    return kind()


def _bytes(made: Any) -> bytes:
    """Copy what TensorRT made: its memory goes with the builder."""
    return bytes(memoryview(made))
