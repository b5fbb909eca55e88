"""The pasting kernel against the processor's device, built by g++ and run on the memory of the host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.cuda import blocks
from tests.faces import pictures_of
from tests.kernels import material, runs
from tests.kernels.host import HostKernels
from tests.kernels.material import RGB01, SPECS, apart, beyond, noise, oval, similarity, sized, smooth_output
from tests.kernels.runs import NO_GAIN, NO_OFFSET

pytestmark = pytest.mark.kernels_host
TONE = np.array([1.1, 0.9, 1.2], np.float32), np.array([-9, 4, 12], np.float32)
SEEN = 2e-3
"""Share of the pixels that may differ, by one grey level: those whose sum lies on the edge between two."""


@pytest.mark.parametrize("side", [64, 61])
@pytest.mark.parametrize("tiles", [1, 2, 3])
@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize("scale", [2.3, 1.0, 0.6, 0.45, 0.3, 0.2, 0.11])
def test_what_is_pasted_is_the_processors_within_a_grey_level(
    kernels: HostKernels, side: int, tiles: int, kind: str, scale: float
) -> None:
    spec = sized(SPECS[kind], tiles, side)
    output, opacity, before = smooth_output(spec, 7), oval(side * tiles), noise(8, 151, 201)
    for corner in ((60.0, 40.0), (-20.0, -25.0), (170.0, 120.0), (-400.0, 0.0)):
        picture_from_patch = similarity(scale / tiles, 0.4, *corner)
        ours, right = before.copy(), before.copy()
        assert runs.paste(kernels, ours, output, spec, picture_from_patch, opacity, TONE)
        material.paste(right, output, spec, picture_from_patch, opacity, TONE)
        most, share = apart(ours, right)
        assert most <= 1
        assert share < SEEN
        rectangle = blocks.place(opacity, picture_from_patch, (201, 151)).rectangle
        np.testing.assert_array_equal(beyond(ours, rectangle), beyond(before, rectangle))


@settings(max_examples=40)
@given(
    st.integers(1, 90), st.integers(1, 70), st.floats(-4, 2), st.floats(-4, 4), st.floats(-200, 200),
    st.floats(-200, 200), st.integers(0, 99),
)  # fmt: skip
def test_nothing_beyond_the_rectangle_changes_wherever_the_face_is(
    kernels: HostKernels, width: int, height: int, octaves: float, angle: float, x: float, y: float, seed: int
) -> None:
    spec, before = sized(RGB01, side=33), noise(seed, height, width)
    output, opacity = smooth_output(spec, 7), np.zeros((33, 33), np.uint8)
    left, top, right, bottom = np.sort(np.random.default_rng(seed).integers(1, 32, (2, 2)), axis=0).ravel()
    opacity[top : bottom + 1, left : right + 1] = 255
    picture_from_patch = similarity(2**octaves, angle, x, y)
    ours, theirs = before.copy(), before.copy()
    assert runs.paste(kernels, ours, output, spec, picture_from_patch, opacity)
    material.paste(theirs, output, spec, picture_from_patch, opacity, (NO_GAIN, NO_OFFSET))
    assert apart(ours, theirs)[0] <= 1
    rectangle = blocks.place(opacity, picture_from_patch, (width, height)).rectangle
    np.testing.assert_array_equal(beyond(ours, rectangle), beyond(before, rectangle))
    np.testing.assert_array_equal(beyond(theirs, rectangle), beyond(before, rectangle))


@pytest.mark.parametrize("scale", [2.1, 0.9, 0.24])
@pytest.mark.data
def test_a_real_face_is_pasted_as_the_processor_does(kernels: HostKernels, data_dir: Path, scale: float) -> None:
    before, other = pictures_of(data_dir / "clips" / "help.mkv", 21)[::20]
    spec, opacity, place = sized(RGB01, side=128), oval(128), similarity(scale, -0.2, 230, 90)
    output = material.crop(other, similarity(1.9, 0.1, 200, 60), spec)
    ours, right = before.copy(), before.copy()
    assert runs.paste(kernels, ours, output, spec, place, opacity, TONE)
    material.paste(right, output, spec, place, opacity, TONE)
    most, share = apart(ours, right)
    assert most <= 1
    assert share < SEEN


def test_half_precision_is_pasted_too(kernels: HostKernels) -> None:
    spec, place = replace(RGB01, dtype="float16"), similarity(1.4, 0.2, 50, 30)
    output, opacity, before = smooth_output(RGB01, 7), oval(64), noise(8, 151, 201)
    ours, right = before.copy(), before.copy()
    assert runs.paste(kernels, ours, output.astype(np.float16), spec, place, opacity)
    material.paste(right, output, RGB01, place, opacity, (NO_GAIN, NO_OFFSET))
    assert apart(ours, right)[0] <= 1


@pytest.mark.parametrize(
    ("fault", "least"),
    [("nan", (8, 0)), ("infinite", (8, 0)), ("black", (8, 0)), ("constant", (8, 0)), ("flat", (0, 1.0))],
)
def test_what_is_no_picture_is_not_pasted(kernels: HostKernels, fault: str, least: tuple[float, float]) -> None:
    output = smooth_output(RGB01, 7)
    if fault in {"nan", "infinite"}:
        output[0, 1, 30, 30] = {"nan": np.nan, "infinite": np.inf}[fault]
    else:
        output[:] = {"black": 0, "constant": 0.5, "flat": 0.3}[fault]
    before = noise(8, 151, 201)
    after = before.copy()
    assert not runs.paste(kernels, after, output, RGB01, similarity(1, 0, 50, 30), oval(64), least=least)
    np.testing.assert_array_equal(after, before)


def test_one_colour_alone_makes_no_picture_although_its_channels_differ(kernels: HostKernels) -> None:
    output = smooth_output(RGB01, 7)
    output[:] = np.array([0.8, 0.5, 0.4], np.float32)[None, :, None, None]  # a hundred grey levels from end to end
    picture, place = noise(8, 151, 201), similarity(1, 0, 50, 30)
    assert runs.paste(kernels, picture.copy(), output, RGB01, place, oval(64), least=(8, 0))
    assert not runs.paste(kernels, picture.copy(), output, RGB01, place, oval(64), least=(8, 1.0))
