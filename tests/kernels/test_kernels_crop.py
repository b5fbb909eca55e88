"""The crop kernel against the processor's device, built by g++ and run on the memory of the host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.faces import pictures_of
from tests.kernels import material, runs
from tests.kernels.host import HostKernels
from tests.kernels.material import RGB01, SPECS, levels, noise, similarity, sized

pytestmark = pytest.mark.kernels_host
ROUNDED = 0.52
"""The processor's crop is bytes, the kernel's is not: half a grey level, and what single precision adds."""
HALF = 0.1
"""Grey levels that half precision adds."""


@pytest.mark.parametrize("tiles", [1, 2, 3])
@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("place", [(0.9, 0.3, 40.0, 20.0), (2.5, -1.2, -30.0, 90.0), (0.4, 3.0, 120.0, 130.0)])
def test_a_crop_is_the_processors_within_its_rounding(
    kernels: HostKernels, tiles: int, kind: str, dtype: str, place: tuple[float, ...]
) -> None:
    plain = sized(SPECS[kind], tiles, side=61)
    spec, picture, picture_from_crop = replace(plain, dtype=dtype), noise(1, 131, 173), similarity(*place)
    made = levels(runs.crop(kernels, picture, picture_from_crop, spec), spec)
    right = levels(material.crop(picture, picture_from_crop, plain), plain)
    assert np.abs(made - right).max() < ROUNDED + (HALF if dtype == "float16" else 0)


@settings(max_examples=25)
@given(st.integers(1, 40), st.integers(1, 40), st.floats(0.05, 20), st.floats(-4, 4), st.floats(-1e6, 1e6), st.data())
def test_a_crop_of_any_picture_from_anywhere_is_right(
    kernels: HostKernels, width: int, height: int, scale: float, angle: float, x: float, data: st.DataObject
) -> None:
    spec, picture = replace(RGB01, shape=(1, 3, 9, 11)), noise(2, height, width)
    if data.draw(st.booleans()):
        x = x % width
    picture_from_crop = similarity(scale, angle, x, data.draw(st.floats(-50, 50)))
    made = levels(runs.crop(kernels, picture, picture_from_crop, spec), spec)
    # Steps of a rough picture times the error of a coordinate in single precision.
    assert np.abs(made - levels(material.crop(picture, picture_from_crop, spec), spec)).max() < 1.5


@pytest.mark.parametrize("number", [0, 20])
@pytest.mark.data
def test_a_real_crop_is_the_processors_within_its_rounding(kernels: HostKernels, data_dir: Path, number: int) -> None:
    picture = pictures_of(data_dir / "clips" / "help.mkv", 21)[number]
    for place in ((1.9, 0.1, 200.0, 60.0), (2.6, -0.4, 500.0, 300.0), (0.7, 0.0, 300.2, 150.7)):
        spec = sized(RGB01, side=128)
        made = levels(runs.crop(kernels, picture, similarity(*place), spec), spec)
        assert np.abs(made - levels(material.crop(picture, similarity(*place), spec), spec)).max() < ROUNDED


def test_a_letterbox_is_a_crop(kernels: HostKernels) -> None:
    spec, picture = replace(RGB01, shape=(1, 3, 64, 96)), noise(3, 120, 192)
    k = 2.5
    picture_from_input = np.array([[k, 0, (k - 1) / 2], [0, k, (k - 1) / 2]])
    made = levels(runs.crop(kernels, picture, picture_from_input, spec), spec)
    assert np.abs(made - levels(material.crop(picture, picture_from_input, spec), spec)).max() < 1
    assert not made[:, :, 50:].any()
