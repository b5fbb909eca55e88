"""Makes a model take several pictures in one run, and proves that it does; knows axes, not what the pictures show.

Most networks were exported for one picture, though nothing in them depends on it but the shapes they declare. Those are
changed in memory. Some have a number of pictures built in as well: they fail, or mix the pictures up, so a batch is
only believed once it has given what single runs give.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from engines.card import ModelCard
from engines.conform import Found, check_file, fits
from engines.contract import Engine, TensorSpec
from engines.errors import EngineError, install_extra
from engines.trial import apart, trial_inputs

TOLERANCE = 2e-3
"""How far a batch may be from single runs, over the largest value: half a grey level of a picture. Kernels for another
shape add in another order, which changes the last bits; a picture that got the part of another differs altogether."""


def batch_of(card: ModelCard) -> int:
    """Say how many pictures a card takes in one run: -1 for any number, 1 where it takes none."""
    return next((spec.shape[0] for spec in card.inputs if _is_picture(spec)), 1)


def with_batch(card: ModelCard, pictures: int) -> ModelCard:
    """Write a card for another number of pictures in one run.

    Args:
        card: for any number.
        pictures: in one run, >= 1; -1 for any number.

    Returns:
        The card with the leading axis of its pictures, and of every output that has the same, set to that.
    """
    before = batch_of(card)

    def changed(spec: TensorSpec) -> TensorSpec:
        return replace(spec, shape=(pictures, *spec.shape[1:])) if spec.shape[:1] == (before,) else spec

    return replace(
        card,
        inputs=tuple(changed(spec) if _is_picture(spec) else spec for spec in card.inputs),
        outputs=tuple(changed(spec) for spec in card.outputs),
    )


def open_batched(card: ModelCard, pictures: int, make: Callable[[ModelCard], Engine]) -> Engine:
    """Open a model for several pictures in one run.

    Args:
        card: for one picture.
        pictures: in one run, >= 2.
        make: opens an engine for a card.

    Returns:
        The engine. It has given for several random pictures what single runs give.

    Raises:
        EngineError: the model cannot take several pictures at once.
    """
    one, many = with_batch(card, 1), with_batch(card, pictures)
    with ExitStack() as on_failure:
        try:
            with closing(make(one)) as single:
                batched = make(many)
                on_failure.callback(batched.close)
                _prove(one, single, batched, pictures)
        except EngineError as error:
            raise EngineError(
                f"model {card.name} cannot take {pictures} pictures in one run: {error.message}",
                "take them one after another (batch 1)",
            ) from error
        on_failure.pop_all()
    return batched


def declared_otherwise(card: ModelCard, inputs: Found, outputs: Found) -> tuple[str, ...]:
    """Find the tensors of a file that declare another number of pictures than a card.

    Args:
        card: the card.
        inputs: that the runtime reports.
        outputs: that the runtime reports.

    Returns:
        The file's names of them; empty where the card is for one picture, or the file takes any number.

    Raises:
        EngineError: the file has other tensors than the card, whatever the number of pictures.
    """
    if batch_of(card) in (1, -1):
        return ()
    names = check_file(with_batch(card, -1), inputs, outputs)
    pairs = [*zip(card.inputs, names[0], strict=True), *zip(card.outputs, names[1], strict=True)]
    found: Mapping[str, tuple[tuple[int, ...], str]] = {**inputs, **outputs}
    return tuple(name for spec, name in pairs if not fits(spec.shape, found[name][0]))


def widened(path: Path, card: ModelCard, names: tuple[str, ...]) -> bytes:
    """Rewrite the declared number of pictures of an ONNX file, in memory.

    Args:
        path: of the file.
        card: that states the number.
        names: of the file's tensors to change.

    Returns:
        The changed file.

    Raises:
        EngineError: the package onnx is not installed.
    """
    try:
        import onnx  # noqa: PLC0415  (optional, and slow to import)
    except ImportError as error:
        raise EngineError(
            f"{path.name} declares a single picture, and the package onnx that could change that is not installed",
            install_extra("neural"),
        ) from error
    model = onnx.load(path)
    for value in (*model.graph.input, *model.graph.output):
        if value.name in names:
            value.type.tensor_type.shape.dim[0].dim_value = batch_of(card)
    del model.graph.value_info[:]  # the shapes in between, which the runtime works out again
    changed: bytes = model.SerializeToString()
    return changed


def _is_picture(spec: TensorSpec) -> bool:
    """Whether an input is one of the pictures: what is no picture (an identity, a weight) belongs to all of them."""
    return spec.layout != "other"


def _prove(card: ModelCard, single: Engine, batched: Engine, pictures: int) -> None:
    """Raise ``EngineError`` where a batch of random pictures gives something else than the pictures one by one."""
    alone = [trial_inputs(card, seed) for seed in range(pictures)]
    for mine in alone[1:]:
        mine[:] = [
            own if _is_picture(spec) else shared for spec, own, shared in zip(card.inputs, mine, alone[0], strict=True)
        ]
    together = [
        np.concatenate(parts) if _is_picture(spec) else parts[0]
        for spec, parts in zip(card.inputs, zip(*alone, strict=True), strict=True)
    ]
    results = [out.copy() for out in batched.run(*together)]
    for number, tensors in enumerate(alone):
        for spec, one, many in zip(card.outputs, single.run(*tensors), results, strict=True):
            if spec.shape[:1] == (1,) and (worst := apart(one, many[number : number + 1])) > TOLERANCE:
                raise EngineError(
                    f"{spec.name!r} of picture {number + 1} is {worst:.1%} apart from what a single run gives", "-"
                )
