"""Pictures, tensors and places for the kernels, and what the processor makes of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from engines.contract import TensorSpec
from engines.cpu import CpuDevice
from engines.cuda import blocks
from engines.lane import tile_of
from realtime.types import F32, F64, U8
from tests.kernels.runs import Tone

DEVICE = CpuDevice()
RGB01 = TensorSpec("x", (1, 3, 64, 64), "float32", "NCHW", "RGB", (0.0,) * 3, (1 / 255,) * 3)
BGR11 = TensorSpec("x", (1, 64, 64, 3), "float32", "NHWC", "BGR", (127.5, 120.0, 110.0), (1 / 128, 1 / 100, 1 / 90))
SPECS = {"NCHW RGB": RGB01, "NHWC BGR": BGR11}


def sized(spec: TensorSpec, tiles: int = 1, side: int = 64) -> TensorSpec:
    """The same kind of tensor for so many tiles each way, of so many pixels each."""
    picture = (3, side, side) if spec.layout == "NCHW" else (side, side, 3)
    return replace(spec, shape=(tiles * tiles, *picture))


def noise(seed: int, *shape: int) -> U8:
    """Blurred, so that bilinear samples of neighbours mean something."""
    rough = np.random.default_rng(seed).integers(0, 256, (*shape, 3), np.uint8)
    return np.asarray(cv2.GaussianBlur(rough, (0, 0), 1.5), np.uint8)


def oval(side: int) -> U8:
    """A mask with a soft rim; the outermost pixels are 0."""
    mask = np.zeros((side, side), np.uint8)
    cv2.ellipse(mask, (side // 2, side // 2), (side // 3, side * 2 // 5), 0, 0, 360, (255,), -1)
    return np.asarray(cv2.GaussianBlur(mask, (0, 0), side / 32), np.uint8)


def similarity(scale: float, angle_rad: float, x: float, y: float) -> F64:
    """(2, 3) that turns, scales and then moves by x, y."""
    c, s = scale * np.cos(angle_rad), scale * np.sin(angle_rad)
    return np.array([[c, -s, x], [s, c, y]])


def levels(tensor: NDArray[Any], spec: TensorSpec) -> F64:
    """A tensor in grey levels."""
    rule = (1, 3, 1, 1) if spec.layout == "NCHW" else (1, 1, 1, 3)
    return tensor.astype(np.float64) / np.reshape(spec.scale, rule) + np.reshape(spec.mean, rule)


def values(grey: F64, spec: TensorSpec) -> F32:
    """The inverse of ``levels``."""
    rule = (1, 3, 1, 1) if spec.layout == "NCHW" else (1, 1, 1, 3)
    return ((grey - np.reshape(spec.mean, rule)) * np.reshape(spec.scale, rule)).astype(np.float32)


def crop(picture: U8, picture_from_crop: F64, spec: TensorSpec) -> F32:
    """What the processor cuts out."""
    out, tiles = np.zeros(spec.shape, np.float32), blocks.tiles_of(spec)
    for tile in range(tiles * tiles):
        DEVICE.crop(picture, tile_of(picture_from_crop, tiles, tile), spec, out[tile : tile + 1])
    return out


def smooth_output(spec: TensorSpec, seed: int) -> F32:
    """A picture as a network makes one, normalised."""
    tiles, (width, height) = blocks.tiles_of(spec), spec.size
    return crop(noise(seed, height * tiles, width * tiles), np.eye(2, 3), spec)


def paste(picture: U8, output: F32, spec: TensorSpec, picture_from_patch: F64, opacity: U8, tone: Tone) -> None:
    """What the processor pastes."""
    patch = np.zeros((*opacity.shape, 4), np.uint8)
    DEVICE.develop(output, spec, *tone, patch)
    patch[..., 3] = opacity
    DEVICE.paste(picture, patch, picture_from_patch)


def apart(one: U8, other: U8) -> tuple[int, float]:
    """Most grey levels between two pictures, and the share of pixels that differ at all."""
    difference = np.abs(one.astype(int) - other).max(axis=2)
    return int(difference.max()), float((difference > 0).mean())


def beyond(picture: U8, rectangle: blocks.Rectangle) -> U8:
    """The pixels outside a rectangle, as a list."""
    outside = np.ones(picture.shape[:2], bool)
    outside[rectangle.top : rectangle.bottom, rectangle.left : rectangle.right] = False
    return picture[outside]
