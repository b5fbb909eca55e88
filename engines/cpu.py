"""The processor as a device: the reference that every other device must agree with; knows pictures, not faces."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import cv2
import numpy as np
from numpy.typing import NDArray

from engines import patch as patches
from engines import raster
from engines.contract import Availability, CropPlan, Engine, Report, TensorSpec
from engines.lane import HostLane
from engines.paste import Paster
from engines.processor import processor

_Rule = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]
_DONE = Report()
_Layers = tuple[NDArray[np.uint8], NDArray[np.int16], NDArray[np.float32], NDArray[np.float32]]


def probe() -> Availability:
    """Say what the processor works with.

    Returns:
        Always usable: importing this module has already loaded OpenCV.
    """
    return Availability(True, f"OpenCV {cv2.__version__}")


class CpuDevice:
    """Crops with OpenCV, unwraps and draws with kernels. Used by one thread: it keeps scratch between calls."""

    def __init__(self) -> None:
        # Crops and faces are so small that handing them out to OpenCV's threads costs more than it saves, and the other
        # core has a camera and a meeting to serve.
        cv2.setNumThreads(1)
        self._crops: dict[tuple[int, int], tuple[NDArray[np.uint8], NDArray[np.uint8]]] = {}
        self._drawing: _Layers | None = None
        self._tables: dict[TensorSpec, NDArray[np.float32]] = {}
        self._rules: dict[TensorSpec, _Rule] = {}
        self._paster = Paster()

    @property
    def name(self) -> str:
        """See :class:`engines.contract.Device`."""
        return f"cpu ({processor()})"

    @property
    def works_ahead(self) -> bool:
        """See :class:`engines.contract.Device`."""
        return False

    def attached(self) -> AbstractContextManager[None]:
        """See :class:`engines.contract.Device`: any thread may use it."""
        return nullcontext()

    def begin(self, pixels: NDArray[np.uint8]) -> None:
        """See :class:`engines.contract.Device`: frames are worked on where they are."""

    def submit(self, pixels: NDArray[np.uint8]) -> None:
        """See :class:`engines.contract.Device`."""

    def finish(self, pixels: NDArray[np.uint8]) -> Report:
        """See :class:`engines.contract.Device`."""
        return _DONE

    def lane(self, plan: CropPlan, engine: Engine) -> HostLane:
        """See :class:`engines.contract.Device`."""
        return HostLane(self, plan, engine)

    def close(self) -> None:
        """See :class:`engines.contract.Device`."""

    def crop(
        self,
        picture: NDArray[np.uint8],
        picture_from_crop: NDArray[np.float64],
        spec: TensorSpec,
        out: NDArray[np.float32],
    ) -> None:
        """See :class:`engines.contract.Device`.

        A pixel has 256 values, so with channels last normalising is a look-up: exact, and four times faster than
        arithmetic in OpenCV.
        """
        width, height = spec.size
        cut, other = self._scratch(width, height)
        _cut(picture, picture_from_crop, cut)
        if spec.layout == "NCHW":
            mean, scale, _ = self._rule_of(spec)
            patches.normalise(cut.reshape(height, -1), _channels(spec), mean, scale, out[0])
            return
        if spec.colour == "RGB":
            cv2.cvtColor(cut, cv2.COLOR_BGR2RGB, dst=other)
            cut = other
        cv2.LUT(cut, self._table_of(spec), dst=out[0])

    def develop(
        self,
        tensor: NDArray[np.float32],
        spec: TensorSpec,
        gain: NDArray[np.float32],
        offset: NDArray[np.float32],
        out: NDArray[np.uint8],
    ) -> tuple[float, float]:
        """Turn an engine's output into a picture: the inverse of ``crop``, with a change of tone.

        Several tiles in one batch are woven: of k * k tiles of (h, w), tile number i holds the rows from ``i // k`` on
        and the columns from ``i % k`` on, every k-th of each.

        Args:
            tensor: output of the shape (k * k, 3, h, w) or (k * k, h, w, 3).
            spec: its layout, colour order, mean and scale.
            gain: (3,) float32 BGR, multiplies the pixel.
            offset: (3,) float32 BGR in grey levels, added after that.
            out: (k * h, k * w, 4) uint8; blue, green and red are overwritten, rounded and clipped; the fourth channel
                is left alone.

        Returns:
            The least and the greatest value of any channel before ``gain``, in grey levels; both are NaN when any value
            is not finite.
        """
        mean, _, factor = self._rule_of(spec)
        tiles = round(len(tensor) ** 0.5)
        pixels = out.view(np.uint32)[..., 0]
        low, high = np.inf, -np.inf
        for number in range(len(tensor)):
            woven = pixels[number // tiles :: tiles, number % tiles :: tiles] if tiles > 1 else pixels
            planes = _planes(tensor[number], spec)
            least, most = patches.develop(planes, _channels(spec), factor, mean, gain, offset, woven)
            if np.isnan(least):
                return np.nan, np.nan
            low, high = min(low, least), max(high, most)
        return low, high

    def tone(
        self, tensor: NDArray[np.float32], spec: TensorSpec, weight: NDArray[np.float32], out: NDArray[np.float32]
    ) -> None:
        """Measure the tone of a picture that is an engine's input or output.

        Args:
            tensor: (n, 3, h, w) or (n, h, w, 3); every ``TONE_STEP``th pixel each way of the first picture counts.
            spec: its layout, colour order, mean and scale.
            weight: (h / TONE_STEP, w / TONE_STEP) rounded up, float32 0..1, how much each of those pixels
                counts; not all 0.
            out: (2, 3) float32; overwritten with the mean and the standard deviation of blue, green and red, in grey
                levels.
        """
        mean, _, factor = self._rule_of(spec)
        patches.tone(_planes(tensor[0], spec), _channels(spec), factor, mean, weight, out)

    def paste(
        self, picture: NDArray[np.uint8], patch: NDArray[np.uint8], picture_from_patch: NDArray[np.float64]
    ) -> None:
        """Blend an upright patch into a picture, touching nothing but the pixels that it covers.

        Bilinear, colour and opacity each for itself; outside the patch nothing is painted. While two or more pixels of
        the patch lie on one of the picture, each way, the patch is halved first, by averages.

        Args:
            picture: (H, W, 3) uint8 BGR, each of its rows contiguous; painted into.
            patch: (h, w, 4) uint8 blue, green, red and opacity, not premultiplied. The opacity of its outermost pixels
                must be 0.
            picture_from_patch: (2, 3) similarity between centres of pixels; may lead outside the picture.
        """
        self._paster.paste(picture, patch, picture_from_patch)

    def unwrap(
        self,
        picture: NDArray[np.uint8],
        mesh: NDArray[np.float32],
        facing: NDArray[np.float32],
        corners: NDArray[np.int32],
        weights: NDArray[np.float32],
        out: NDArray[np.float32],
        seen: NDArray[np.float32],
    ) -> None:
        """See :class:`engines.contract.Device`.

        A picture much finer than the texture is halved first, once or several times: OpenCV averages pairs many times
        faster than it does anything else.
        """
        xy = np.ascontiguousarray(mesh[:, :2])
        texels_px = float(np.ptp(mesh[:, 1])) / out.shape[0]
        while texels_px >= 2 and min(picture.shape[:2]) >= 4:
            width, height = picture.shape[1] // 2, picture.shape[0] // 2
            picture = cv2.resize(picture[: height * 2, : width * 2], (width, height), interpolation=cv2.INTER_AREA)
            xy = xy / np.float32(2) - np.float32(0.25)  # the centre of the first pixel lies between the first two
            texels_px /= 2
        raster.unwrap(picture, xy, facing, corners, weights, out, seen)

    def draw(
        self,
        picture: NDArray[np.uint8],
        mesh: NDArray[np.float32],
        attributes: NDArray[np.float32],
        triangles: NDArray[np.int32],
        texture: NDArray[np.uint8],
        opacity: NDArray[np.float32],
    ) -> None:
        """See :class:`engines.contract.Device`."""
        height, width = picture.shape[:2]
        original, nearest, depth, planes = self._layers(height * width, len(triangles))
        original = original[: height * width * 3].reshape(height, width, 3)
        nearest = nearest[: height * width].reshape(height, width)
        depth = depth[: height * width].reshape(height, width)
        np.copyto(original, picture)
        raster.rasterise(mesh, triangles, nearest, depth)
        raster.planes(mesh, attributes, triangles, planes)
        raster.paint(picture, original, nearest, planes, texture, opacity)

    def _layers(self, pixels: int, triangles: int) -> _Layers:
        """Return the scratch of a drawing, allocated anew only when a larger face or mesh than ever comes."""
        if self._drawing is None or self._drawing[2].size < pixels or len(self._drawing[3]) != triangles:
            room = pixels * 3 // 2
            self._drawing = (
                np.empty(room * 3, np.uint8),
                np.empty(room, np.int16),
                np.empty(room, np.float32),
                np.zeros((triangles, raster.ATTRIBUTES, 3), np.float32),
            )
        return self._drawing

    def _scratch(self, width: int, height: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Return two (height, width, 3) buffers, allocated when a size is first seen."""
        if (width, height) not in self._crops:
            self._crops[width, height] = (
                np.empty((height, width, 3), np.uint8),
                np.empty((height, width, 3), np.uint8),
            )
        return self._crops[width, height]

    def _rule_of(self, spec: TensorSpec) -> _Rule:
        """Return mean, scale and its inverse of a picture's channels, (3,) each, made when a spec is first seen."""
        if spec not in self._rules:
            scale = np.array(spec.scale)
            rule = np.array(spec.mean), scale, 1 / scale
            self._rules[spec] = rule[0].astype(np.float32), rule[1].astype(np.float32), rule[2].astype(np.float32)
        return self._rules[spec]

    def _table_of(self, spec: TensorSpec) -> NDArray[np.float32]:
        """Return the table from a pixel's value to an NHWC input's, made when a spec is first seen.

        It is (1, 256, 3), or (1, 256) where all channels are treated alike, which OpenCV looks up twice as fast.
        """
        if spec not in self._tables:
            values = np.arange(256, dtype=np.float64)
            rules = zip(spec.mean, spec.scale, strict=True)
            columns = [((values - mean) * scale).astype(np.float32)[None] for mean, scale in rules]
            alike = len(set(zip(spec.mean, spec.scale, strict=True))) == 1
            self._tables[spec] = columns[0] if alike else np.ascontiguousarray(np.stack(columns, axis=-1))
        return self._tables[spec]


def _cut(picture: NDArray[np.uint8], picture_from_crop: NDArray[np.float64], out: NDArray[np.uint8]) -> None:
    """Cut a crop out, bilinear, black outside the picture.

    The whole picture made smaller, as detectors want it, is a plain resize: three to eighty times faster.
    """
    height, width = out.shape[:2]
    if (size := _shrunk(picture, picture_from_crop)) and size[0] <= width and size[1] <= height:
        cv2.resize(picture, size, dst=out[: size[1], : size[0]], interpolation=cv2.INTER_LINEAR)
        out[size[1] :] = 0
        out[: size[1], size[0] :] = 0
        return
    cv2.warpAffine(
        picture,
        picture_from_crop,
        (width, height),
        dst=out,
        flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_CONSTANT,
    )


def _shrunk(picture: NDArray[np.uint8], picture_from_crop: NDArray[np.float64]) -> tuple[int, int] | None:
    """Return the size of the picture in a crop that shows it whole, not enlarged, from its corner, in whole pixels."""
    (k, skew, x), (turn, down, y) = picture_from_crop.tolist()
    if k < 1 or (skew, turn, down, x, y) != (0, 0, k, (k - 1) / 2, (k - 1) / 2):
        return None
    width, height = picture.shape[1] / k, picture.shape[0] / k
    return (int(width), int(height)) if width.is_integer() and height.is_integer() else None


def _planes(tensor: NDArray[np.float32], spec: TensorSpec) -> NDArray[np.float32]:
    """One picture in a tensor as (3, h, w), a view."""
    return tensor if spec.layout == "NCHW" else tensor.transpose(2, 0, 1)


def _channels(spec: TensorSpec) -> tuple[int, int, int]:
    """Places of blue, green and red in a tensor, which are also those of its channels in a picture."""
    return (2, 1, 0) if spec.colour == "RGB" else (0, 1, 2)
