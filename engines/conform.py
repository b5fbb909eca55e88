"""Holds an engine to its card: what the file has, what a caller hands over, what is told of it; knows no runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from engines.card import ModelCard
from engines.contract import TensorSpec
from engines.errors import EngineError

Found = Mapping[str, tuple[tuple[int, ...], str]]
"""What a runtime reports: name of a tensor -> (shape with -1 for a free axis, numpy dtype name)."""


Shapes = tuple[tuple[int, ...], ...]
"""Shapes of the inputs of one run."""

MOST_SHAPES = 4
"""Shapes of free inputs for which an engine keeps its buffers: a detector uses two, and photos others before it."""


class CardEngine:
    """What every engine tells of itself: the card's words, and what really runs."""

    def __init__(self, card: ModelCard, runtime: str) -> None:
        self._card = card
        self._runtime = runtime

    @property
    def runtime(self) -> str:
        """See :class:`engines.contract.Engine`."""
        return self._runtime

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """See :class:`engines.contract.Engine`."""
        return self._card.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """See :class:`engines.contract.Engine`."""
        return self._card.outputs


def threads_text(threads: int) -> str:
    """Say a number of threads: "1 thread", "2 threads"."""
    return f"{threads} thread{'s' if threads > 1 else ''}"


def check_file(card: ModelCard, inputs: Found, outputs: Found) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Refuse a file whose tensors are not those of its card.

    Args:
        card: the card; an axis may be free in it or in the file.
        inputs: that the runtime reports.
        outputs: that the runtime reports.

    Returns:
        What the file calls the inputs and the outputs of the card, in the card's order.

    Raises:
        EngineError: a tensor of the card is not in the file, or has another shape or type there.
    """
    return _names(card, card.inputs, inputs), _names(card, card.outputs, outputs)


def _names(card: ModelCard, specs: Sequence[TensorSpec], found: Found) -> tuple[str, ...]:
    """Find the tensors of a card in a file: by name, and then those that may be called anything by shape and type."""
    taken = {spec.name for spec in specs}
    names = []
    for spec in specs:
        fitting = [name for name, (shape, dtype) in found.items() if dtype == spec.dtype and fits(spec.shape, shape)]
        if spec.any_name and spec.name not in found:
            fitting = [name for name in fitting if name not in taken]
        else:
            fitting = [name for name in fitting if name == spec.name]
        if len(fitting) != 1:
            have = " ".join(map(str, reversed(found[spec.name]))) if spec.name in found else f"only {', '.join(found)}"
            raise EngineError(
                f"model {card.name}: the card says {spec.name!r} is {spec.dtype} {spec.shape}, the file has {have}",
                "correct the card, or use the file that it was written for",
            )
        names += fitting
        taken.update(fitting)
    return tuple(names)


def check_call(card: ModelCard, tensors: Sequence[NDArray[Any]]) -> None:
    """Refuse arrays that the model does not take: some runtimes are handed raw addresses.

    Args:
        card: the card.
        tensors: one for each input.

    Raises:
        EngineError: the number, a shape, a type or the memory layout is wrong.
    """
    if len(tensors) != len(card.inputs):
        raise EngineError(f"{card.name} takes {len(card.inputs)} inputs, got {len(tensors)}", "report this as a bug")
    for spec, tensor in zip(card.inputs, tensors, strict=True):
        check_tensor(card, spec, tensor)


def check_tensor(card: ModelCard, spec: TensorSpec, tensor: NDArray[Any]) -> None:
    """Refuse an array that an input does not take.

    Args:
        card: the card.
        spec: of the input.
        tensor: for it.

    Raises:
        EngineError: its shape, type or memory layout is wrong.
    """
    if tensor.dtype != spec.dtype or not fits(tensor.shape, spec.shape) or not tensor.flags.c_contiguous:
        raise EngineError(
            f"{card.name}: {spec.name!r} must be a C-contiguous {spec.dtype} {spec.shape}, "
            f"got {tensor.dtype} {tensor.shape}",
            "report this as a bug",
        )


def check_result(card: ModelCard, spec: TensorSpec, shape: tuple[int, ...]) -> None:
    """Refuse an output that a model gives in another shape than its card says.

    Args:
        card: the card.
        spec: of the output.
        shape: that came out, or will.

    Raises:
        EngineError: so it is.
    """
    if not fits(spec.shape, shape):
        raise EngineError(
            f"{card.name} gives {spec.name!r} as {shape}, its card says {spec.shape}",
            "correct the card, or use the file that it was written for",
        )


def fits(shape: Sequence[int], other: Sequence[int]) -> bool:
    """Say whether two shapes can be the same.

    Args:
        shape: sizes of the axes; -1 takes any size.
        other: the same of another tensor.

    Returns:
        Whether they have as many axes, and axis by axis the same size.
    """
    return len(shape) == len(other) and all(n == m or -1 in (n, m) for n, m in zip(shape, other, strict=True))
