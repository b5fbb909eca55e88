"""A network of free size stays one graph for all its sizes; what half precision would spoil is found all the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engines.errors import ModelError
from engines.fp16 import to_fp16
from engines.fp16.check import run
from engines.graph import prepare
from engines.graph.view import shape_of
from engines.sizes import Sizes, with_size
from engines.trial import apart, trial_inputs
from tests.e2e.test_scrfd_real import shared_card
from tests.freenets import SIZES, free_detector
from tests.halfnets import SPELLINGS, by_reference
from tests.networks import with_free_size

pytestmark = pytest.mark.fp16

EVERY_SIZE = (*SIZES.corners, (128, 32), (64, 128))


@pytest.mark.parametrize("size", EVERY_SIZE)
def test_it_computes_what_the_file_does_at_every_size(size: tuple[int, int]) -> None:
    free = free_detector()
    prepared = prepare(free.model, free.card)
    assert [shape_of(value) for value in prepared.model.graph.input] == [(1, 3, -1, -1)]
    assert [shape_of(value) for value in prepared.model.graph.output] == [(-1, 4)]
    given = dict(zip(("picture",), trial_inputs(with_size(free.card, size), 1), strict=True))
    assert apart(run(free.model, given)["rows"], run(prepared.model, given)["rows"]) < 1e-6


def test_of_one_size_it_is_fixed_as_ever() -> None:
    free = free_detector()
    prepared = prepare(free.model, with_size(free.card, SIZES.best))
    assert prepared.at_best is None
    assert not {"Shape", "Cast"} & {node.op_type for node in prepared.model.graph.node}
    assert shape_of(prepared.model.graph.output[0]) == (96, 4)


def test_a_file_that_bears_one_size_only_is_refused() -> None:
    stiff = free_detector(stiff=True)
    with pytest.raises(ModelError, match="cannot be prepared for these inputs") as caught:
        prepare(stiff.model, stiff.card)
    assert "the size" in caught.value.hint
    prepare(stiff.model, with_size(stiff.card, SIZES.best))
    with pytest.raises(ModelError, match="the size of picture is not fixed"):
        prepare(stiff.model, replace(stiff.card, sizes=None))


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_its_norms_are_found_where_its_size_is_known(spelling: str) -> None:
    """Next to a picture of unknown size no mean is small; so the graph of the best size is asked."""
    free = free_detector(spelling=spelling)
    prepared = prepare(free.model, free.card)
    assert prepared.at_best is not None
    known = to_fp16(prepared.at_best).report.kept
    nodes = SPELLINGS[spelling][1]
    assert list(known.values()).count("normalisation") >= nodes - 1  # one may be made of a reciprocal and its product
    assert known.keys() <= to_fp16(prepared.model, names=known).report.kept.keys()
    if spelling == "pow":
        assert to_fp16(prepared.model).report.islands["normalisation"] < nodes, "without being asked it misses some"


def test_the_size_of_a_layer_is_worked_out_in_single_precision() -> None:
    """In half precision 2049 is 2048, and a layer would be enlarged to another size than that which it meets."""
    free = free_detector()
    prepared = prepare(free.model, free.card)
    assert prepared.at_best is not None
    converted = to_fp16(prepared.model, names=to_fp16(prepared.at_best).report.kept)
    assert converted.report.islands["works out a shape"] == 4
    wide = with_size(free.card, (16 * 1025, 16))
    given = dict(zip(("picture",), trial_inputs(wide, 1), strict=True))
    right, got = run(free.model, given)["rows"], by_reference(converted.model, given)["rows"]
    assert got.shape == right.shape
    assert apart(right, got) < 0.01


@pytest.mark.data
@pytest.mark.parametrize("name", ["scrfd_500m", "scrfd_2.5g"])
def test_real_detectors_are_one_graph_for_the_sizes_of_their_cards(name: str, data_dir: Path, tmp_path: Path) -> None:
    path = with_free_size(data_dir / "models" / f"{name}_kps.onnx", tmp_path / "free.onnx")
    card = shared_card(name)
    outputs = tuple(replace(spec, shape=(-1, spec.shape[-1])) for spec in card.outputs)
    free = replace(card, inputs=(replace(card.inputs[0], shape=(1, 3, -1, -1)),), outputs=outputs)
    assert isinstance(free.sizes, Sizes)
    prepared = prepare(path, free)
    assert prepared.at_best is not None
    assert set(to_fp16(prepared.at_best).report.islands) == {"end of an output"}
    rng = np.random.default_rng(0)
    for width, height in (*free.sizes.corners, (384, 640)):
        given = {card.inputs[0].name: rng.standard_normal((1, 3, height, width)).astype(np.float32)}
        right, got = (
            run(fixed := prepare(path, with_size(free, (width, height))).model, given),
            run(prepared.model, given),
        )
        assert [value.name for value in fixed.graph.output] == list(got)
        for output, values in right.items():
            np.testing.assert_allclose(got[output], values, atol=1e-5)
