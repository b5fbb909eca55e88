"""The identity matrix is found in files as their makers published them, and nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from engines.emap import read_emap
from engines.errors import ModelError, install_extra
from tests.facenets import emap_of, latent_swapper

RANDOM = np.random.default_rng(0)
MATRIX = RANDOM.normal(size=(512, 512)).astype(np.float32)
OTHER = RANDOM.normal(size=(512, 512)).astype(np.float32)
SMALL = np.zeros((512, 256), np.float32)


def saved(path: Path, weights: Sequence[NDArray[np.floating]]) -> Path:
    values = [numpy_helper.from_array(weight, f"w{n}") for n, weight in enumerate(weights)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "network", ends[:1], ends[1:], values)
    onnx.save(helper.make_model(graph), str(path))
    return path


@pytest.mark.parametrize(
    "weights", [[SMALL, MATRIX], [OTHER, MATRIX], [MATRIX], [MATRIX, SMALL], [SMALL, MATRIX, SMALL]]
)
def test_the_last_one_is_taken_or_else_the_only_one(tmp_path: Path, weights: list[NDArray[np.float32]]) -> None:
    found = read_emap(saved(tmp_path / "m.onnx", weights))
    np.testing.assert_array_equal(found, MATRIX)
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    assert found.flags.writeable


def test_half_precision_is_widened(tmp_path: Path) -> None:
    found = read_emap(saved(tmp_path / "m.onnx", [SMALL, MATRIX.astype(np.float16)]))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, MATRIX.astype(np.float16).astype(np.float32))


@pytest.mark.parametrize(
    ("weights", "said"), [([], "but has none"), ([SMALL], "but has none"), ([MATRIX, OTHER, SMALL], "2 of them")]
)
def test_a_file_without_a_clear_one_is_refused(tmp_path: Path, weights: list[NDArray[np.float32]], said: str) -> None:
    with pytest.raises(ModelError, match=said) as error:
        read_emap(saved(tmp_path / "m.onnx", weights))
    assert "its maker" in error.value.hint


def test_what_is_no_onnx_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"\xff" * 99)
    for name in ("m.onnx", "none.onnx"):
        with pytest.raises(ModelError, match=r"cannot be read as an ONNX model"):
            read_emap(tmp_path / name)


def test_without_the_package_the_way_to_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "m.onnx", [MATRIX])
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModelError, match="not installed") as error:
        read_emap(path)
    assert error.value.hint == install_extra("neural")


def test_it_is_found_in_a_network_of_inswappers_build(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(latent_swapper(seed=3).model, str(path))
    np.testing.assert_array_equal(read_emap(path), emap_of(3))
