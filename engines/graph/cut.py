"""Moves what does not depend on the frame out of a network, so that it is computed once; knows inputs, not faces.

Of inswapper these are the Linears that make 24 vectors of the identity: 9 % of its weights, read for every frame else.
"""

from __future__ import annotations

from dataclasses import dataclass

from onnx import ModelProto, TensorProto

from engines.graph.view import View, extract, weight_bytes

MOST_FRONTIER_BYTES = 4 << 20
"""Of what is handed over for each identity and kept for each frame in flight: 40 times what inswapper needs, and still
nothing to a GPU. What is larger are pictures of features, which a network would rather make than read."""
LEAST_GAIN_BYTES = 64 << 10
"""Of weights that no frame reads any more; less is read in no time, and two models are more than one."""
_RANDOM = ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial")


@dataclass(frozen=True, slots=True)
class Cut:
    """A network in two parts that do together what the whole did.

    Attributes:
        frame: run for every frame: takes the target, and ``frontier`` in place of other inputs.
        style: run once: the other inputs -> ``frontier``.
        frontier: names of the tensors that are handed over, as they were in the whole.
        moved_nodes: how many nodes run once now.
        moved_bytes: of weights that no frame reads any more.
        frontier_bytes: of what is handed over.
    """

    frame: ModelProto
    style: ModelProto
    frontier: tuple[str, ...]
    moved_nodes: int
    moved_bytes: int
    frontier_bytes: int


def cut(model: ModelProto, target: str) -> Cut | None:
    """Cut a network where what depends on its target begins.

    Args:
        model: cleaned, with inferred types; only read.
        target: the input that is new with every frame.

    Returns:
        Both parts; None where nothing is gained, an output does not depend on the target, or the frontier would be
        larger than :data:`MOST_FRONTIER_BYTES`. There is a gain where :data:`LEAST_GAIN_BYTES` of weights are moved, or
        an input in double precision, which TensorRT has not.
    """
    view = View.of(model)
    moved = _without_growth(view, _seldom(view, target))
    made = {name for number in moved for name in view.nodes[number].output}
    if made.intersection(view.outputs):
        return None
    frontier = tuple(
        name for name in view.maker if name in made and any(n not in moved for n in view.readers.get(name, ()))
    )
    size = view.bytes(frontier)
    if not frontier or size > MOST_FRONTIER_BYTES:
        return None
    frame = extract(model, [*view.inputs, *frontier], view.outputs)
    others = [name for name in view.inputs if name != target]
    gain = weight_bytes(model) - weight_bytes(frame)
    if gain < LEAST_GAIN_BYTES and not any(view.kinds[name] == TensorProto.DOUBLE for name in others):
        return None
    return Cut(frame, extract(model, others, frontier), frontier, len(moved), gain, size)


def _seldom(view: View, target: str) -> set[int]:
    """Nodes that read something of the other inputs, and nothing of the target or of chance."""
    steady = {name for name in view.inputs if name != target}
    found = set()
    for number, node in enumerate(view.nodes):
        read = {name for name in node.input if name}
        if read & steady and read <= steady | view.constants.keys() and node.op_type not in _RANDOM:
            found.add(number)
            steady.update(node.output)
    return found


def _without_growth(view: View, moved: set[int]) -> set[int]:
    """Leave with the frame what only makes a tensor larger, as Expand does: better handed over small."""
    left = set(moved)
    for number in sorted(moved, reverse=True):
        node = view.nodes[number]
        inside = any(reader in left for name in node.output for reader in view.readers.get(name, ()))
        read = [name for name in node.input if name and name not in view.constants]
        floats = [view.elements(name) for name in node.input if view.kinds.get(name) == TensorProto.FLOAT]
        has_weights = len(floats) > len(read) and max(floats) > 1
        if not inside and not has_weights and view.bytes(read) < view.bytes(node.output):
            left.remove(number)
    return left
