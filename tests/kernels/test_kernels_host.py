"""The CUDA kernels against the processor's device: the same sources, built by g++ and run on the memory of the host."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engines.contract import TONE_STEP, TensorSpec
from engines.cpu import CpuDevice
from engines.cuda import blocks
from engines.lane import tile_of
from realtime.types import F32, F64, U8
from tests.kernels.host import KERNELS, HostKernels

pytestmark = pytest.mark.kernels_host
DEVICE = CpuDevice()
RGB01 = TensorSpec("x", (1, 3, 64, 64), "float32", "NCHW", "RGB", (0.0,) * 3, (1 / 255,) * 3)
BGR11 = TensorSpec("x", (1, 64, 64, 3), "float32", "NHWC", "BGR", (127.5, 120.0, 110.0), (1 / 128, 1 / 100, 1 / 90))
SPECS = {"NCHW RGB": RGB01, "NHWC BGR": BGR11}
NO_GAIN, NO_OFFSET = np.ones(3, np.float32), np.zeros(3, np.float32)


def at(array: NDArray[Any]) -> np.uint64:
    return np.uint64(array.ctypes.data)


def tiled(spec: TensorSpec, tiles: int) -> TensorSpec:
    return replace(spec, shape=(tiles * tiles, *spec.shape[1:]))


def noise(seed: int, *shape: int) -> U8:
    """Blurred, so that bilinear samples of neighbours mean something."""
    rough = np.random.default_rng(seed).integers(0, 256, (*shape, 3), np.uint8)
    return np.asarray(cv2.GaussianBlur(rough, (0, 0), 1.5), np.uint8)


def similarity(scale: float, angle_rad: float, x: float, y: float) -> F64:
    c, s = scale * np.cos(angle_rad), scale * np.sin(angle_rad)
    return np.array([[c, -s, x], [s, c, y]])


def crop_on_gpu(kernels: HostKernels, picture: U8, picture_from_crop: F64, spec: TensorSpec) -> NDArray[Any]:
    out = np.full(spec.shape, 7, spec.dtype)
    block = np.zeros(1, blocks.CROP)
    blocks.write_crop(block, picture_from_crop, picture.shape[1::-1], picture.strides[0])
    kernels.launch(
        "crop.cu", f"crop_{blocks.suffix(spec)}", (3, 1, 1), (64, 1, 1),
        (at(picture), at(block), at(out), *blocks.crop_arguments(spec)),
    )  # fmt: skip
    return out


def crop_on_cpu(picture: U8, picture_from_crop: F64, spec: TensorSpec) -> F32:
    out = np.zeros(spec.shape, np.float32)
    tiles = blocks.tiles_of(spec)
    for tile in range(tiles * tiles):
        DEVICE.crop(picture, tile_of(picture_from_crop, tiles, tile), spec, out[tile : tile + 1])
    return out


def levels(tensor: NDArray[Any], spec: TensorSpec) -> F64:
    """Grey levels."""
    rule = (1, 3, 1, 1) if spec.layout == "NCHW" else (1, 1, 1, 3)
    return tensor.astype(np.float64) / np.reshape(spec.scale, rule) + np.reshape(spec.mean, rule)


@pytest.mark.parametrize("tiles", [1, 2, 3])
@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("place", [(0.9, 0.3, 40.0, 20.0), (2.5, -1.2, -30.0, 90.0), (0.4, 3.0, 120.0, 130.0)])
def test_a_crop_is_the_processors_within_a_grey_level(
    kernels: HostKernels, tiles: int, kind: str, dtype: str, place: tuple[float, ...]
) -> None:
    spec, picture = replace(tiled(SPECS[kind], tiles), dtype=dtype), noise(1, 131, 173)
    picture_from_crop = similarity(*place)
    made = levels(crop_on_gpu(kernels, picture, picture_from_crop, spec), spec)
    right = levels(crop_on_cpu(picture, picture_from_crop, replace(spec, dtype="float32")), spec)
    assert np.abs(made - right).max() < 1 + (0.1 if dtype == "float16" else 0)


@settings(max_examples=25)
@given(st.integers(1, 40), st.integers(1, 40), st.floats(0.05, 20), st.floats(-4, 4), st.floats(-1e6, 1e6), st.data())
def test_a_crop_of_any_picture_from_anywhere_is_right(
    kernels: HostKernels, width: int, height: int, scale: float, angle: float, x: float, data: st.DataObject
) -> None:
    spec, picture = replace(RGB01, shape=(1, 3, 9, 11)), noise(2, height, width)
    if data.draw(st.booleans()):
        x = x % width
    picture_from_crop = similarity(scale, angle, x, data.draw(st.floats(-50, 50)))
    made = levels(crop_on_gpu(kernels, picture, picture_from_crop, spec), spec)
    # Steps of a rough picture times the error of a coordinate in single precision.
    assert np.abs(made - levels(crop_on_cpu(picture, picture_from_crop, spec), spec)).max() < 1.5


def test_a_letterbox_is_a_crop(kernels: HostKernels) -> None:
    spec, picture = replace(RGB01, shape=(1, 3, 64, 96)), noise(3, 120, 192)
    k = 2.5
    picture_from_input = np.array([[k, 0, (k - 1) / 2], [0, k, (k - 1) / 2]])
    made = levels(crop_on_gpu(kernels, picture, picture_from_input, spec), spec)
    assert np.abs(made - levels(crop_on_cpu(picture, picture_from_input, spec), spec)).max() < 1.5
    assert not made[:, :, 50:].any()


def measured(
    kernels: HostKernels, target: NDArray[Any], output: NDArray[Any], given: TensorSpec, made: TensorSpec, weight: F32
) -> NDArray[Any]:
    result, extents = np.zeros(1, blocks.MEASURED), np.zeros(5, blocks.EXTENT)
    end = blocks.suffix(made)
    kernels.launch("measure.cu", f"extent_{end}", (5, 1, 1), (256, 1, 1),
                   (at(output), at(extents), *blocks.layout_arguments(made)))  # fmt: skip
    kernels.launch(
        "measure.cu", f"measure_{end}", (1, 1, 1), (256, 1, 1),
        (at(target), at(output), at(extents), np.int32(5), at(weight), at(result), *blocks.worth_arguments(given),
         *blocks.layout_arguments(made)),
    )  # fmt: skip
    return result


def outputs(spec: TensorSpec, seed: int = 5) -> F32:
    """What a network might make: beyond the range here and there."""
    rule = (1, 3, 1, 1) if spec.layout == "NCHW" else (1, 1, 1, 3)
    grey = np.random.default_rng(seed).normal(120, 70, spec.shape)
    return ((grey - np.reshape(spec.mean, rule)) * np.reshape(spec.scale, rule)).astype(np.float32)


@pytest.mark.parametrize("tiles", [1, 2])
@pytest.mark.parametrize(
    ("given", "made"), [("NCHW RGB", "NCHW RGB"), ("NHWC BGR", "NHWC BGR"), ("NCHW RGB", "NHWC BGR")]
)
def test_tone_and_range_are_the_processors(kernels: HostKernels, tiles: int, given: str, made: str) -> None:
    before, after = tiled(SPECS[given], tiles), tiled(SPECS[made], tiles)
    target, output = outputs(before, 1), outputs(after, 2)
    weight = np.random.default_rng(3).uniform(0, 1, (-(-64 // TONE_STEP),) * 2).astype(np.float32)
    result = measured(kernels, target, output, before, after, weight)[0]
    for spec, tensor, name in ((before, target, "before"), (after, output, "after")):
        right = np.zeros((2, 3), np.float32)
        DEVICE.tone(tensor, spec, weight, right)
        np.testing.assert_allclose(result[name].reshape(2, 3), right, rtol=1e-4, atol=1e-2)
    patch = np.zeros((64 * tiles, 64 * tiles, 4), np.uint8)
    ends = DEVICE.develop(output, after, NO_GAIN, NO_OFFSET, patch)
    np.testing.assert_allclose((result["low"], result["high"]), ends, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_no_number_is_found_wherever_it_is(kernels: HostKernels, bad: float) -> None:
    weight = np.ones((16, 16), np.float32)
    for place in (0, 12_287, 5_000):
        output = outputs(RGB01)
        output.reshape(-1)[place] = bad
        result = measured(kernels, output, output, RGB01, RGB01, weight)[0]
        assert np.isnan(result["low"])
        assert np.isnan(result["high"])


def paste_on_gpu(
    kernels: HostKernels,
    picture: U8,
    output: NDArray[Any],
    spec: TensorSpec,
    picture_from_patch: F64,
    opacity: U8,
    tone: tuple[F32, F32] = (NO_GAIN, NO_OFFSET),
    least: tuple[float, float] = (8, 0),
) -> bool:
    weight = np.ones((-(-spec.size[1] // TONE_STEP), -(-spec.size[0] // TONE_STEP)), np.float32)
    result = measured(kernels, output, output, spec, spec, weight)
    placed = blocks.place(opacity, picture_from_patch, picture.shape[1::-1])
    block = np.zeros(1, blocks.PASTE)
    blocks.write_paste(block, placed, *tone, picture.strides[0], least)
    kernels.launch(
        "paste.cu", f"paste_{blocks.suffix(spec)}", (4, 1, 1), (64, 1, 1),
        (at(picture), at(block), at(output), at(opacity), at(result), *blocks.layout_arguments(spec)),
    )  # fmt: skip
    return bool(result["painted"][0])


def paste_on_cpu(
    picture: U8, output: F32, spec: TensorSpec, picture_from_patch: F64, opacity: U8, tone: tuple[F32, F32]
) -> None:
    patch = np.zeros((*opacity.shape, 4), np.uint8)
    DEVICE.develop(output, spec, *tone, patch)
    patch[..., 3] = opacity
    DEVICE.paste(picture, patch, picture_from_patch)


def oval(side: int) -> U8:
    mask = np.zeros((side, side), np.uint8)
    cv2.ellipse(mask, (side // 2, side // 2), (side // 3, side * 2 // 5), 0, 0, 360, (255,), -1)
    return np.asarray(cv2.GaussianBlur(mask, (0, 0), side / 32), np.uint8)


def smooth_output(spec: TensorSpec, seed: int) -> F32:
    """A picture as a network makes one, normalised."""
    tiles, (width, height) = blocks.tiles_of(spec), spec.size
    return crop_on_cpu(noise(seed, height * tiles, width * tiles), np.eye(2, 3), spec)


@pytest.mark.parametrize("tiles", [1, 2])
@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize("scale", [2.3, 1.0, 0.6, 0.45, 0.3, 0.2, 0.11])
@pytest.mark.parametrize("corner", [(60.0, 40.0), (-20.0, -25.0), (170.0, 120.0), (-400.0, 0.0)])
def test_what_is_pasted_is_the_processors_within_a_grey_level(
    kernels: HostKernels, tiles: int, kind: str, scale: float, corner: tuple[float, float]
) -> None:
    spec = tiled(SPECS[kind], tiles)
    output, opacity, before = smooth_output(spec, 7), oval(64 * tiles), noise(8, 151, 201)
    tone = np.array([1.1, 0.9, 1.2], np.float32), np.array([-9, 4, 12], np.float32)
    picture_from_patch = similarity(scale / tiles, 0.4, *corner)
    ours, right = before.copy(), before.copy()
    assert paste_on_gpu(kernels, ours, output, spec, picture_from_patch, opacity, tone)
    paste_on_cpu(right, output, spec, picture_from_patch, opacity, tone)
    apart = np.abs(ours.astype(int) - right)
    assert apart.max() <= (1 if scale / tiles > 0.5 else 2)  # each halving is rounded there, all at once here
    assert (apart > 1).mean() < 1e-3
    placed = blocks.place(opacity, picture_from_patch, before.shape[1::-1])
    left, top, right_x, bottom = placed.rectangle
    outside = np.ones(before.shape[:2], bool)
    outside[top:bottom, left:right_x] = False
    np.testing.assert_array_equal(ours[outside], before[outside])


def test_half_precision_is_painted_too(kernels: HostKernels) -> None:
    spec = replace(RGB01, dtype="float16")
    output, opacity, before = smooth_output(RGB01, 7), oval(64), noise(8, 151, 201)
    ours, right = before.copy(), before.copy()
    assert paste_on_gpu(kernels, ours, output.astype(np.float16), spec, similarity(1.4, 0.2, 50, 30), opacity)
    paste_on_cpu(right, output, RGB01, similarity(1.4, 0.2, 50, 30), opacity, (NO_GAIN, NO_OFFSET))
    assert np.abs(ours.astype(int) - right).max() <= 1


@pytest.mark.parametrize(
    ("fault", "least"),
    [("nan", (8, 0)), ("black", (8, 0)), ("constant", (8, 0)), ("flat", (0, 1.0))],
)
def test_what_is_no_picture_is_not_painted(kernels: HostKernels, fault: str, least: tuple[float, float]) -> None:
    output = smooth_output(RGB01, 7)
    if fault == "nan":
        output[0, 1, 30, 30] = np.nan
    else:
        output[:] = {"black": 0, "constant": 0.5, "flat": 0.3}[fault]
    before = noise(8, 151, 201)
    after = before.copy()
    assert not paste_on_gpu(kernels, after, output, RGB01, similarity(1, 0, 50, 30), oval(64), least=least)
    np.testing.assert_array_equal(after, before)


def draw_on_gpu(
    kernels: HostKernels, picture: U8, box: Sequence[int], mesh: F32, attributes: F32, triangles: NDArray[np.int32],
    texture: U8, opacity: F32,
) -> None:  # fmt: skip
    _, _, width, height = box
    block = np.zeros(1, blocks.MESH)
    block["left"], block["top"], block["width"], block["height"] = box
    block["pitch"], block["triangles"] = picture.strides[0], len(triangles)
    block["texture_side"], block["opacity_side"] = len(texture), len(opacity)
    original, nearest = np.zeros((height, width, 3), np.uint8), np.zeros((height, width), np.uint64)
    planes = np.zeros((len(triangles), 8, 3), np.float32)
    for name, block_x, arguments in (
        ("mesh_begin", 64, (picture, block, original, nearest)),
        ("mesh_rasterise", 4, (mesh, triangles, block, nearest)),
        ("mesh_planes", 64, (mesh, attributes, triangles, block, planes)),
        ("mesh_paint", 64, (picture, original, nearest, planes, texture, opacity, block)),
    ):
        kernels.launch("mesh.cu", name, (7, 1, 1), (block_x, 1, 1), tuple(map(at, arguments)))


@pytest.mark.parametrize("seed", range(4))
def test_a_mesh_is_drawn_as_the_processor_draws_it(kernels: HostKernels, seed: int) -> None:
    from realtime import topology

    random = np.random.default_rng(seed)
    picture, texture = noise(seed, 140, 160), noise(seed + 9, 96, 96)
    uv, triangles = topology.face_mesh().uv, np.ascontiguousarray(topology.closed_triangles(), np.int32)
    turn = random.uniform(-0.6, 0.6)
    x, y = (uv[:, 0] - 0.5) * 90, (uv[:, 1] - 0.5) * 110
    z = 30 * (uv[:, 0] - 0.5) ** 2 * 4
    mesh = np.stack([60 + x * np.cos(turn) + z * np.sin(turn), 55 + y, z * np.cos(turn) - x * np.sin(turn)], axis=1)
    mesh = mesh.astype(np.float32)
    attributes = np.zeros((468, 8), np.float32)
    attributes[:, :2] = uv
    attributes[:, 2] = random.uniform(0.5, 1, 468)
    attributes[:, 3:5] = random.uniform(-2, 2, 2)
    attributes[:, 5:] = random.uniform(0.8, 1.2, 3)
    opacity = random.uniform(0, 1, (32, 32, 2)).astype(np.float32)
    left, top, width, height = 12, 9, 121, 117
    ours, right = picture.copy(), picture.copy()
    draw_on_gpu(kernels, ours, (left, top, width, height), mesh, attributes, triangles, texture, opacity)
    part = right[top : top + height, left : left + width]
    DEVICE.draw(part, mesh, attributes, triangles, texture, opacity)
    apart = np.abs(ours.astype(int) - right)
    assert (ours != picture).any(axis=2).sum() > 5000
    # Where two triangles meet a pixel may go to the other one; the picture is the same to the eye.
    assert (apart.max(axis=2) > 1).mean() < 2e-3
    assert apart.mean() < 0.02
    outside = np.ones(picture.shape[:2], bool)
    outside[top : top + height, left : left + width] = False
    np.testing.assert_array_equal(ours[outside], picture[outside])


def test_a_mark_is_a_smooth_pattern_of_light(kernels: HostKernels) -> None:
    picture = np.clip(noise(4, 97, 161), 20, 230)
    cells = np.random.default_rng(1).uniform(-3, 3, (9, 16)).astype(np.float32)
    block = np.zeros(1, blocks.MARK)
    block["width"], block["height"], block["pitch"], block["columns"], block["rows"] = 161, 97, 161 * 3, 16, 9
    ours = picture.copy()
    kernels.launch("mark.cu", "mark", (5, 1, 1), (64, 1, 1), (at(ours), at(block), at(cells)))
    steps = cv2.resize(cells, (161, 97), interpolation=cv2.INTER_LINEAR)
    right = np.clip(np.floor(picture + steps[..., None] + 0.5), 0, 255)
    apart = np.abs(ours - right)
    assert apart.max() <= 1
    assert (apart > 0).mean() < 0.01


def test_the_blocks_are_laid_out_as_the_kernels_declare_them(kernels: HostKernels, tmp_path: Path) -> None:
    names = {"CropBlock": blocks.CROP, "PasteBlock": blocks.PASTE, "MeshBlock": blocks.MESH, "MarkBlock": blocks.MARK}
    lines = [f'printf("{kind} %zu\\n", sizeof({kind}));' for kind in (*names, "Measured")]
    for kind, dtype in names.items():
        lines += [f'printf("{kind}.{field} %zu\\n", offsetof({kind}, {field}));' for field in dtype.names or ()]
    declared = {"before": "before_mean", "after": "after_mean", "low": "low", "high": "high", "painted": "painted"}
    for field, name in declared.items():
        lines.append(f'printf("Measured.{field} %zu\\n", offsetof(Measured, {name}));')
    source, program = tmp_path / "layout.cpp", tmp_path / "layout"
    text = "\n".join(["#include <stddef.h>", "#include <stdio.h>", '#include "params.h"', "int main() {", *lines, "}"])
    source.write_text(text, encoding="utf-8")
    subprocess.run(["g++", f"-I{KERNELS}", "-o", str(program), str(source)], check=True)
    said = dict(line.split() for line in subprocess.check_output([str(program)], text=True).splitlines())
    for kind, dtype in {**names, "Measured": blocks.MEASURED}.items():
        assert int(said[kind]) == dtype.itemsize, kind
        for field, (_, offset, *_) in (dtype.fields or {}).items():
            if field != "spare":
                assert int(said[f"{kind}.{field}"]) == offset, (kind, field)
