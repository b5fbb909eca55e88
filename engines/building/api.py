"""The part of TensorRT's builder that this program uses, name by name; see :mod:`engines.tensorrt.api`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, cast

from engines.tensorrt.api import Logger, TensorRt, load


class NetworkDefinitionCreationFlag(Protocol):
    """Numbers of the bits that a network is made with."""

    STRONGLY_TYPED: Any


class BuilderFlag(Protocol):
    """Switches of the builder."""

    TF32: Any
    STRICT_NANS: Any


class MemoryPoolType(Protocol):
    """Kinds of memory that can be limited."""

    WORKSPACE: Any


class Monitor(Protocol):
    """Base of what is told how far the builder is; called from any of its threads."""

    def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
        """A phase begins."""

    def step_complete(self, phase_name: str, step: int) -> bool:
        """A step is done; says whether to go on."""

    def phase_finish(self, phase_name: str) -> None:
        """A phase is over."""


class MonitorClass(Protocol):
    """The class of :class:`Monitor`."""

    def __call__(self) -> Monitor:
        """Make one."""


class IHostMemory(Protocol):
    """Bytes that TensorRT made; has Python's buffer protocol."""

    @property
    def nbytes(self) -> int:
        """How many."""


class IOptimizationProfile(Protocol):
    """Between which shapes the inputs of a network are."""

    def set_shape(self, input: str, min: Sequence[int], opt: Sequence[int], max: Sequence[int]) -> None:  # noqa: A002  (TensorRT's names)
        """Say so of an input; raises ``ValueError`` where they are no range."""


class ITimingCache(Protocol):
    """What the builder measured before."""

    def serialize(self) -> IHostMemory:
        """Write it."""


class IBuilderConfig(Protocol):
    """How a plan is built."""

    progress_monitor: Monitor
    max_aux_streams: int
    builder_optimization_level: int

    def set_flag(self, flag: Any) -> None:
        """Switch something on."""

    def clear_flag(self, flag: Any) -> None:
        """Switch something off."""

    def set_memory_pool_limit(self, pool: Any, pool_size: int) -> None:
        """Limit a kind of memory."""

    def add_optimization_profile(self, profile: IOptimizationProfile) -> int:
        """Build for a profile; its number, below 0 where it is not taken."""

    def create_timing_cache(self, serialized_timing_cache: bytes) -> ITimingCache:
        """Read a cache; make an empty one of no bytes."""

    def set_timing_cache(self, cache: ITimingCache, ignore_mismatch: bool) -> bool:
        """Use a cache; refuses one of another GPU or version."""

    def get_timing_cache(self) -> ITimingCache | None:
        """Give the cache that is used."""


class INetworkDefinition(Protocol):
    """A network, as it was parsed."""


class Builder(Protocol):
    """What builds plans."""

    def create_network(self, flags: int) -> INetworkDefinition:
        """Make an empty network."""

    def create_builder_config(self) -> IBuilderConfig:
        """Make a configuration."""

    def create_optimization_profile(self) -> IOptimizationProfile:
        """Make an empty profile."""

    def build_serialized_network(self, network: INetworkDefinition, config: IBuilderConfig) -> IHostMemory | None:
        """Build a plan; nothing where it cannot."""


class BuilderClass(Protocol):
    """The class of :class:`Builder`."""

    def __call__(self, logger: Logger) -> Builder:
        """Make one; raises ``TypeError`` where the library gives none."""


class ParserError(Protocol):
    """Something that the parser did not understand."""

    def desc(self) -> str:
        """Say what."""

    def node_name(self) -> str:
        """Name of the node."""

    def node_operator(self) -> str:
        """Its operator."""


class OnnxParser(Protocol):
    """What reads ONNX into a network."""

    @property
    def num_errors(self) -> int:
        """How many things were not understood."""

    def get_error(self, index: int) -> ParserError:
        """Tell one of them."""

    def parse(self, model: bytes) -> bool:
        """Read a network."""


class ParserClass(Protocol):
    """The class of :class:`OnnxParser`."""

    def __call__(self, network: INetworkDefinition, logger: Logger) -> OnnxParser:
        """Make one."""


class TensorRtBuilder(TensorRt, Protocol):
    """The module, with what only the process that builds uses."""

    NetworkDefinitionCreationFlag: NetworkDefinitionCreationFlag
    BuilderFlag: BuilderFlag
    MemoryPoolType: MemoryPoolType
    IProgressMonitor: MonitorClass
    Builder: BuilderClass
    OnnxParser: ParserClass


def load_builder() -> TensorRtBuilder:
    """Import the bindings; raises as :func:`engines.tensorrt.api.load` does."""
    return cast(TensorRtBuilder, load())
