"""The law of the machine room: what a device and an engine promise, with shapes and who owns which buffer.

Arrays only: nothing here knows what a face is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from engines.errors import EngineError

Layout = Literal["NHWC", "NCHW", "other"]
Colour = Literal["RGB", "BGR", "none"]
TONE_STEP = 4
"""Every so many pixels each way tell the tone of a picture, see :meth:`Lane.tones`: 1024 of a crop of 128 pixels."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One tensor of a model, as its card states it.

    The normalised value of a pixel is ``(pixel - mean) * scale`` with ``pixel`` in 0..255, per channel in the order of
    ``colour``; for an output that is a picture, the pixel is ``value / scale + mean``. The card says it, the device
    obeys it, nothing else in the program knows it.

    Attributes:
        name: name inside the model file.
        shape: full shape with the batch axis; -1 for a free axis.
        dtype: numpy name, e.g. "float32".
        layout: where the channels are; "other" for a tensor that is no picture.
        colour: order of the channels; "none" for a tensor that is no picture.
        mean: per channel, in 0..255.
        scale: per channel.
        any_name: whether a file may call it something else, because nobody published its name or conversions differ:
            there it is the only tensor of its shape and type.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    layout: Layout = "other"
    colour: Colour = "none"
    mean: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    any_name: bool = False

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of a picture in pixels, -1 where free; means nothing for a tensor that is no picture."""
        height, width = self.shape[1:3] if self.layout == "NHWC" else self.shape[2:4]
        return width, height


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a device or runtime can be used here, and if not, why and what to do.

    Attributes:
        ok: usable.
        reason: what was found, for the banner and ``doctor``: "LiteRT 2.3.0" or "package openvino is not installed".
        hint: how to make it usable; empty when it is.
    """

    ok: bool
    reason: str
    hint: str = ""


class Engine(Protocol):
    """One loaded model on one runtime. Used by one thread at a time.

    Every buffer is allocated when the engine is opened; ``run`` allocates nothing that it can avoid.
    """

    @property
    def runtime(self) -> str:
        """Runtime and provider that really run, e.g. ``"litert 2.3.0, 1 thread"``."""

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Inputs in call order."""

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Outputs in the order that ``run`` returns."""

    def run(self, *tensors: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Run the model once.

        Args:
            tensors: one array for each input, C-contiguous, of the shape and dtype of its spec. Only read.

        Returns:
            One array for each output. They belong to the engine and are valid until the next ``run``: copy what must
            live longer.

        Raises:
            EngineError: wrong shape or dtype, or the runtime failed.
        """

    def close(self) -> None:
        """Free the model. Safe to call twice."""


@runtime_checkable
class SlottedEngine(Engine, Protocol):
    """An engine that computes on a GPU, from and into memory that it is given, for several frames in flight.

    What is enqueued runs in the order of the stream; nothing here waits. An input that is not bound is one that seldom
    changes: the engine keeps it, see ``hold``.
    """

    def bind(self, slot: int, addresses: Mapping[str, int]) -> None:
        """Say where the tensors of a slot lie, before its first ``enqueue``.

        Again only when whoever bound it before has done with it: runs that were captured keep their addresses.

        Args:
            slot: number of the frame in flight, from 0.
            addresses: device addresses by the names of the card; those of the target and of every output.

        Raises:
            EngineError: no such tensor, or the runtime refuses the address.
        """

    def hold(self, slot: int, name: str, tensor: NDArray[Any], stream: int) -> None:
        """Take over an input that seldom changes; does nothing where it holds the same values already.

        Args:
            slot: see ``bind``.
            name: of the input on the card.
            tensor: of the shape and dtype of its spec; copied before this returns.
            stream: handle of the stream that the next ``enqueue`` of this slot goes to.
        """

    def enqueue(self, slot: int, stream: int) -> None:
        """Start one run.

        Args:
            slot: see ``bind``.
            stream: its handle; never the null stream.

        Raises:
            EngineError: the runtime refused.
        """


@dataclass(frozen=True, slots=True)
class CropPlan:
    """What a lane does with its network; fixed for the run.

    Attributes:
        name: of the network, for people.
        target: the input that takes the crop, with its full shape: k * k pictures for a face in k * k tiles.
        picture: number of the output that is painted, in the engine's order; -1 where outputs are only read.
        least_range: grey levels between the darkest and the brightest value below which an output is no picture: a face
            under any light has a hundred.
        least_deviation: of the channel that varies most, in grey levels, below which it is one flat colour; 0 where the
            tone is not measured.
        bares: whether a face that could not be painted is one that must not be shown.
    """

    name: str
    target: TensorSpec
    picture: int = -1
    least_range: float = 8.0
    least_deviation: float = 0.0
    bares: bool = True

    @property
    def tiles(self) -> int:
        """Tiles along one side of the crop, k."""
        return round(max(self.target.shape[0], 1) ** 0.5)


class Lane(Protocol):
    """The way of crops through one network on one device: cut, run, measure, paint. Used by one thread.

    On the processor everything has happened when a call returns. A device that works ahead returns before: then only
    ``outputs`` waits, and what went wrong is told by :meth:`Device.finish`.
    """

    def start(
        self, pixels: NDArray[np.uint8], picture_from_crop: NDArray[np.float64], others: Mapping[str, NDArray[Any]]
    ) -> None:
        """Cut a crop and run the network on it.

        Args:
            pixels: (H, W, 3) uint8 BGR, of a frame that has begun. Only read.
            picture_from_crop: (2, 3) between centres of pixels, of the whole crop, all tiles together.
            others: the other inputs by name.

        Raises:
            EngineError: the runtime failed.
        """

    def outputs(self) -> tuple[NDArray[Any], ...]:
        """Wait for the latest run.

        Returns:
            One array for each output of the engine, on the host; valid until the next ``start``.
        """

    def tones(
        self, who: int, weight: NDArray[np.float32], before: NDArray[np.float32], after: NDArray[np.float32]
    ) -> None:
        """Measure the tone of the crop and of what was made of it.

        A device that works ahead gives the figures of the latest frame of that person that it knows of, and waits only
        where it knows none.

        Args:
            who: number of the person.
            weight: (h / TONE_STEP, w / TONE_STEP) rounded up, float32 0..1, how much each pixel that counts does, see
                ``TONE_STEP``; not all 0.
            before: (2, 3) float32; overwritten, of the crop.
            after: (2, 3) float32; overwritten, of the new picture; may be no numbers.
        """

    def paint(
        self,
        who: int,
        pixels: NDArray[np.uint8],
        picture_from_crop: NDArray[np.float64],
        opacity: NDArray[np.uint8],
        gain: NDArray[np.float32],
        offset: NDArray[np.float32],
        retouch: Callable[[NDArray[np.uint8]], None] | None = None,
    ) -> None:
        """Develop the new picture and blend it into the frame, as ``CpuDevice.develop`` and ``CpuDevice.paste`` do.

        Args:
            who: number of the person, for :meth:`Device.finish`.
            pixels: of the latest ``start``; painted into when this returns, or when the frame is finished.
            picture_from_crop: of the latest ``start``.
            opacity: (side, side) uint8, its outermost pixels 0; may be strided. Copied before this returns.
            gain: (3,) float32 BGR, multiplies the pixel.
            offset: (3,) float32 BGR in grey levels, added after that.
            retouch: changes the (side, side, 4) uint8 patch, opacity included, before it is pasted. A device that works
                ahead has no patch to show.

        Raises:
            EngineError: the output is no picture; not a pixel has changed.
            DeviceError: the device cannot retouch.
        """

    def close(self) -> None:
        """Free what the lane holds; the engine is its opener's. Safe to call twice."""


class Failure(NamedTuple):
    """Something that was not painted, found out when the frame was finished.

    Attributes:
        who: number of the person, as given to ``paint``.
        error: why.
        bares: see :class:`CropPlan`.
    """

    who: int
    error: EngineError
    bares: bool


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a frame.

    Attributes:
        failures: what was not painted.
        laps_ms: time on the device by the name of the step; empty where it was not measured.
        remarks: what does not run as well as it should, and why, in words; each in one report only.
    """

    failures: Sequence[Failure] = ()
    laps_ms: Mapping[str, float] = field(default_factory=dict)
    remarks: Sequence[str] = ()


class Device(Protocol):
    """Where pictures are cropped, drawn and blended; ``cpu.py`` is the reference that every other must agree with.

    A frame is taken up with ``begin`` and given back with ``finish``. In between its array stands for it, and so does
    a view of any rectangle of it: a device with a memory of its own knows by the address which of its copies is meant,
    reads from that copy and paints into it, while the array keeps the picture as it came. Such a device refuses other
    views (mirrored, every second row), and work on a frame that was submitted. Arrays that were not begun are worked on
    where they are.
    """

    @property
    def name(self) -> str:
        """For people, e.g. ``"cpu (AMD EPYC, 2 cores)"``."""

    @property
    def works_ahead(self) -> bool:
        """Whether calls return before the work is done, so that two frames in flight gain something."""

    def attached(self) -> AbstractContextManager[None]:
        """Make the device usable in the calling thread, for as long as the context lasts.

        The thread that opened it needs none.
        """

    def begin(self, pixels: NDArray[np.uint8]) -> None:
        """Take up a frame.

        Args:
            pixels: (H, W, 3) uint8 BGR, C-contiguous. Belongs to the device until ``finish``; nobody writes to it.

        Raises:
            DeviceError: two frames are in flight already, or there is no memory for one of this size.
        """

    def submit(self, pixels: NDArray[np.uint8]) -> None:
        """Say that a frame is painted, so that it can be brought back. Safe to leave out and to call twice."""

    def finish(self, pixels: NDArray[np.uint8]) -> Report:
        """Wait for a frame; its array then holds what was painted. Does nothing for one that was not begun.

        Raises:
            DeviceError: the device failed or is closed; the array is as it came.
        """

    def lane(self, plan: CropPlan, engine: Engine) -> Lane:
        """Make the way of crops through a network.

        Args:
            plan: what is done.
            engine: any: one that is no ``SlottedEngine`` of this device is run on the host. One that is has memory for
                one lane: whoever asks with the same plan again is given that one, and shares it.

        Raises:
            DeviceError: there is no memory for it, or the engine has a lane with another plan.
        """

    def close(self) -> None:
        """Free everything. Safe to call twice."""

    def crop(
        self,
        picture: NDArray[np.uint8],
        picture_from_crop: NDArray[np.float64],
        spec: TensorSpec,
        out: NDArray[np.float32],
    ) -> None:
        """Cut a crop out of a picture and normalise it into an engine's input.

        Bilinear; outside the picture counts as black before normalisation.

        Args:
            picture: (H, W, 3) uint8 BGR.
            picture_from_crop: (2, 3) affine that takes a crop pixel's centre to picture pixels (pixel centres at
                integers).
            spec: layout, colour order, mean and scale of the input.
            out: the input tensor, shape ``spec.shape``; overwritten.
        """

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
        """Lay what a mesh covers in a picture out as a texture.

        Args:
            picture: (h, w, 3) uint8 BGR, at least 2 pixels each way. Only read.
            mesh: (n, 3) float32 points in its pixels (pixel centres at integers).
            facing: (n,) float32, how well each point is seen, 0..1.
            corners: (m, m, 3) int32 mesh points of each texel's triangle, -1 where there is no surface.
            weights: (m, m, 3) float32 barycentric weights.
            out: (m, m, 3) float32 BGR 0..255; written only where the surface lies inside the picture.
            seen: (m, m) float32; overwritten with ``facing`` where ``out`` was written, else 0.
        """

    def draw(
        self,
        picture: NDArray[np.uint8],
        mesh: NDArray[np.float32],
        attributes: NDArray[np.float32],
        triangles: NDArray[np.int32],
        texture: NDArray[np.uint8],
        opacity: NDArray[np.float32],
    ) -> None:
        """Draw a textured mesh into a picture, nearest surface first, faces that look away left out.

        Args:
            picture: (h, w, 3) uint8 BGR; painted into where the mesh is.
            mesh: (n, 3) float32 points in its pixels (pixel centres at integers), smaller z is nearer.
            attributes: (n, 8) float32 for each point: u, v in the texture (0..1); opacity (0..1); offset x, y in pixels
                from the drawn place to the place of the unpainted picture that is shown under the texture there; a
                factor for each channel of the texture.
            triangles: (m, 3) int32, positive area (x right, y down) faces the viewer. A device may keep what is drawn
                once, so it must not change after that.
            texture: (t, t, 3) uint8 BGR; must not change either.
            opacity: (m, m, 2) float32 0..1 laid out like the texture, multiplied with the points' opacity and offset:
                what stands before the surface is neither painted over nor moved.
        """
