"""The swap of every family once more, slow and obvious, from what is published of the models; uses none of our code.

Pictures are (H, W, 3) uint8 BGR; points count from the centre of the first pixel, as insightface and OpenCV do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

Array = NDArray[Any]

# Pixels of the crop that the points belong to, at its published size.
ARCFACE_112 = np.array(
    [[38.2946, 51.6963], [73.5318, 51.5014], [56.0252, 71.7366], [41.5493, 92.3655], [70.7299, 92.2041]]
)
FFHQ_512 = np.array(
    [[192.98138, 239.94708], [318.90277, 240.19366], [256.63416, 314.01935], [201.26117, 371.41043],
     [313.08905, 371.15118]]
)  # fmt: skip
POINTS = {
    "arcface_112_v2": ARCFACE_112 / 112,
    "arcface_128": (ARCFACE_112 + np.array([8.0, 0.0])) / 128,
    "ffhq_512": FFHQ_512 / 512,
    "arcface_112_v1": np.array(
        [[0.35473214, 0.45658929], [0.64526786, 0.45658929], [0.5, 0.61154464], [0.37913393, 0.776875],
         [0.62086607, 0.776875]]
    ),
    "mtcnn_512": np.array(
        [[0.36562865, 0.46733799], [0.63305391, 0.46585885], [0.50019127, 0.61942959], [0.39032951, 0.77598822],
         [0.61178945, 0.77476328]]
    ),
    "dfl_whole_face": np.array(
        [[0.35342266, 0.39285716], [0.62797622, 0.39285716], [0.48660713, 0.5401786], [0.38839287, 0.68750011],
         [0.59821427, 0.68750011]]
    ),
}  # fmt: skip


def umeyama(src: Array, dst: Array) -> Array:
    """The similarity (2, 3) that takes ``src`` to ``dst`` with the least squared error, by the paper's formulas."""
    n = len(src)
    mean_src, mean_dst = src.mean(0), dst.mean(0)
    covariance = (dst - mean_dst).T @ (src - mean_src) / n
    u, d, vt = np.linalg.svd(covariance)
    s = np.diag([1.0, np.sign(np.linalg.det(u) * np.linalg.det(vt))])
    rotation = u @ s @ vt
    scale = np.trace(np.diag(d) @ s) / ((src - mean_src) ** 2).sum(1).mean()
    linear = scale * rotation
    return np.hstack([linear, (mean_dst - linear @ mean_src)[:, None]])


def crop_from_picture(points5: Array, template: str, side: int) -> Array:
    """Which crop a face is worked on in, as a map from the picture's pixels to the crop's."""
    return umeyama(np.asarray(points5, np.float64), POINTS[template] * side)


def inverse(m: Array) -> Array:
    """The other way."""
    return np.linalg.inv(np.vstack([m, [0, 0, 1]]))[:2]


def bilinear(picture: Array, x: Array, y: Array) -> Array:
    """Sample a picture at places (h, w); outside it is 0. float64."""
    height, width = picture.shape[:2]
    x0, y0 = np.floor(x).astype(int), np.floor(y).astype(int)
    total = np.zeros((*x.shape, picture.shape[2]))
    for dx, dy in ((0, 0), (1, 0), (0, 1), (1, 1)):
        xi, yi = x0 + dx, y0 + dy
        weight = (1 - np.abs(x - xi)) * (1 - np.abs(y - yi))
        inside = (xi >= 0) & (yi >= 0) & (xi < width) & (yi < height)
        total += np.where(inside, weight, 0)[..., None] * picture[yi.clip(0, height - 1), xi.clip(0, width - 1)]
    return total


def cut(picture: Array, points5: Array, template: str, side: int) -> Array:
    """The upright crop, uint8 as the published programs cut it."""
    m = inverse(crop_from_picture(points5, template, side))
    x, y = np.meshgrid(np.arange(side), np.arange(side))
    crop = bilinear(picture, m[0, 0] * x + m[0, 1] * y + m[0, 2], m[1, 0] * x + m[1, 1] * y + m[1, 2])
    return np.rint(crop).astype(np.uint8)


def tensor(crop: Array, mean: Array | float = 0.0, std: Array | float = 1.0) -> Array:
    """A crop as the networks take it: RGB, 0..1, minus mean, over std, channels first, one in a batch."""
    rgb = crop[..., ::-1] / 255.0
    return ((rgb - mean) / std).transpose(2, 0, 1)[None].astype(np.float32)


def made_picture(output: Array, mean: float = 0.0, std: float = 1.0) -> Array:
    """What a network made, (1, 3, h, w) RGB, as a crop."""
    rgb = output[0].transpose(1, 2, 0) * std + mean
    return np.rint(rgb[..., ::-1].clip(0, 1) * 255).astype(np.uint8)


def paste(picture: Array, made: Array, mask: Array, points5: Array, template: str) -> Array:
    """The picture with a crop laid over it, ``mask`` in 0..255; every pixel is asked where it lies in the crop."""
    side = made.shape[0]
    m = crop_from_picture(points5, template, side)
    x, y = np.meshgrid(np.arange(picture.shape[1]), np.arange(picture.shape[0]))
    patch = np.dstack([made, mask])
    laid = bilinear(patch, m[0, 0] * x + m[0, 1] * y + m[0, 2], m[1, 0] * x + m[1, 1] * y + m[1, 2])
    share = laid[..., 3:] / 255
    return np.rint(picture + (laid[..., :3] - picture) * share).clip(0, 255).astype(np.uint8)


def dfm_mask(seen: Array, made: Array) -> Array:
    """The mask of a DFM: the lesser of both, eroded twice by a cross of 3 x 3, blurred by 6.25 pixels of 224."""
    mask = np.minimum(seen, made).clip(0, 1)
    for _ in range(2):
        padded = np.pad(mask, 1, constant_values=1)
        mask = np.minimum.reduce(
            [padded[1:-1, 1:-1], padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:]]
        )
    sigma = 6.25 / 224 * len(mask)
    reach = np.arange(-int(4 * sigma), int(4 * sigma) + 1)
    bell = np.exp(-(reach**2) / (2 * sigma**2))
    bell /= bell.sum()

    def blurred(row: Array) -> Array:
        return np.convolve(np.pad(row, len(reach) // 2, "reflect"), bell, "valid")

    for axis in (0, 1):
        mask = np.apply_along_axis(blurred, axis, mask)
    return mask


def latent(embedding: Array, emap: Array | None, by: str) -> Array:
    """What an inswapper or hyperswap is told, (1, 512): as insightface does it, or as FaceFusion does."""
    vector = embedding.reshape(1, -1) / np.linalg.norm(embedding)
    if emap is not None:
        vector = vector @ emap
    if by == "insightface":
        vector = vector / np.linalg.norm(vector)
    return vector.astype(np.float32)


def tiles(crop: Array, k: int) -> list[Array]:
    """FaceFusion's pixel boost: every k-th pixel each way, row by row."""
    side = crop.shape[0] // k
    exploded = crop.reshape(side, k, side, k, 3).transpose(1, 3, 0, 2, 4)
    return list(exploded.reshape(k * k, side, side, 3))


def woven(pictures: list[Array], k: int) -> Array:
    """The way back."""
    side = pictures[0].shape[0]
    stack = np.stack(pictures).reshape(k, k, side, side, 3)
    return stack.transpose(2, 0, 3, 1, 4).reshape(side * k, side * k, 3)


def run(path: Path, **inputs: Array) -> list[Array]:
    """A network, by ONNX Runtime itself; ``__`` in a name stands for ``:``."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    found: list[Array] = session.run(None, {name.replace("__", ":"): value for name, value in inputs.items()})
    return found
