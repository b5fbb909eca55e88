"""Draws a textured mesh into a frame on the GPU; knows kernels and buffers, not what the mesh shows."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.cuda import blocks
from engines.cuda.driver import Buffer, Driver, Pinned, Stream
from engines.cuda.idle import wait_until_idle
from engines.cuda.lane import THREADS, grid_for
from engines.cuda.slot import Slot
from engines.errors import DeviceError

MOST_CONSTANTS = 8
"""Textures and lists of triangles that are kept on the device: a face has one for each size it is drawn at."""
WARP_PAIR = 64
"""Threads that share one triangle."""


class Constants:
    """Arrays that do not change, sent when they are first seen. The one unused for longest is dropped for a new one."""

    def __init__(self, driver: Driver, stream: Stream) -> None:
        self._driver, self._stream = driver, stream
        self._idle = driver.event()
        self._kept: dict[object, tuple[NDArray[Any], Pinned, Buffer]] = {}

    def address(self, array: NDArray[Any]) -> np.uint64:
        """Where an array lies on the device, for work that the stream is given from now on."""
        key = array.ctypes.data, array.shape, array.strides
        kept = self._kept.pop(key, None) or self._send(array)
        self._kept[key] = kept  # the latest comes last
        return np.uint64(kept[2].address)

    def _send(self, array: NDArray[Any]) -> tuple[NDArray[Any], Pinned, Buffer]:
        if len(self._kept) == MOST_CONSTANTS:
            wait_until_idle(self._idle, self._stream)  # work that uses it may be under way
            _free(self._kept.pop(next(iter(self._kept))))
        pinned = self._driver.pinned(array.nbytes, "constant of a mesh, sent")
        try:
            buffer = self._driver.buffer(array.nbytes, "constant of a mesh")
        except DeviceError:
            pinned.free()
            raise
        np.copyto(pinned.array, np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        self._driver.copy_in(buffer.address, pinned.array, self._stream)
        return array, pinned, buffer  # the array too: its address is another's as soon as it is gone

    def free(self) -> None:
        """Free all; the stream must be idle."""
        for kept in self._kept.values():
            _free(kept)
        self._kept.clear()


def _free(kept: tuple[NDArray[Any], Pinned, Buffer]) -> None:
    _, pinned, buffer = kept
    pinned.free()
    buffer.free()


class _Room:
    """Buffers for the mesh of one frame."""

    def __init__(self, driver: Driver, number: int, sizes: dict[str, int]) -> None:
        self.sizes = sizes
        self.parts: dict[str, Buffer] = {}
        with ExitStack() as on_failure:
            on_failure.callback(self.free)
            for name, nbytes in sizes.items():
                self.parts[name] = driver.buffer(nbytes, f"mesh of frame {number}: {name}")
            on_failure.pop_all()

    def address(self, name: str) -> np.uint64:
        return np.uint64(self.parts[name].address)

    def free(self) -> None:
        for part in self.parts.values():
            part.free()


class Drawing:
    """Meshes on the GPU. Used by one thread.

    Args:
        driver: launches.
        blend: the stream that paints.
    """

    def __init__(self, driver: Driver, blend: Stream) -> None:
        self._driver, self._blend, self._idle = driver, blend, driver.event()
        self._constants = Constants(driver, blend)
        self._rooms: dict[int, _Room] = {}

    def draw(
        self,
        slot: Slot,
        part: NDArray[np.uint8],
        mesh: NDArray[np.float32],
        attributes: NDArray[np.float32],
        triangles: NDArray[np.int32],
        texture: NDArray[np.uint8],
        opacity: NDArray[np.float32],
    ) -> None:
        """See :meth:`engines.contract.Device.draw`; ``part`` is a view into the frame of the slot."""
        blend, rectangle = self._blend, slot.part_of(part).rectangle
        room = self._room(slot.number, mesh, attributes, triangles, opacity)
        block = np.zeros(1, blocks.MESH)
        block["left"], block["top"] = rectangle.left, rectangle.top
        block["width"], block["height"], block["pitch"] = part.shape[1], part.shape[0], slot.pitch
        block["triangles"], block["texture_side"], block["opacity_side"] = len(triangles), len(texture), len(opacity)
        blend.wait_for(slot.uploaded)
        slot.wait_for_readers(blend)
        with self._driver.range("draw"), slot.laps.lap(blend):
            for name, array in (("block", block), ("mesh", mesh), ("attributes", attributes), ("opacity", opacity)):
                slot.staging.send(array, room.parts[name].address, blend)
            corners, texels = self._constants.address(triangles), self._constants.address(texture)
            self._launch(slot, room, (corners, texels), part.shape[0] * part.shape[1], len(triangles))
        slot.paint_into(rectangle, blend)

    def _launch(
        self, slot: Slot, room: _Room, constants: tuple[np.uint64, np.uint64], pixels: int, triangles: int
    ) -> None:
        picture, (corners, texels) = slot.picture, constants
        assert picture is not None
        painted, aside = np.uint64(picture.device.address), np.uint64(picture.aside.address)
        nearest, planes, at = np.uint64(picture.nearest.address), room.address("planes"), room.address("block")
        points, values = room.address("mesh"), room.address("attributes")
        for name, grid, threads, arguments in (
            ("mesh_begin", grid_for(pixels), THREADS, (painted, at, aside, nearest)),
            ("mesh_rasterise", (triangles, 1, 1), WARP_PAIR, (points, corners, at, nearest)),
            ("mesh_planes", grid_for(8 * triangles), THREADS, (points, values, corners, at, planes)),
            (
                "mesh_paint",
                grid_for(pixels),
                THREADS,
                (painted, aside, nearest, planes, texels, room.address("opacity"), at),
            ),
        ):
            self._driver.kernel("mesh.cu", name).launch(self._blend, grid, (threads, 1, 1), arguments)

    def free(self) -> None:
        """Free everything, once nothing uses it."""
        wait_until_idle(self._idle, self._blend)
        self._constants.free()
        for room in self._rooms.values():
            room.free()
        self._rooms.clear()

    def _room(
        self,
        number: int,
        mesh: NDArray[np.float32],
        attributes: NDArray[np.float32],
        triangles: NDArray[np.int32],
        opacity: NDArray[np.float32],
    ) -> _Room:
        """Buffers for a mesh, made anew only for a larger one than ever."""
        sizes = {
            "block": blocks.MESH.itemsize,
            "mesh": mesh.nbytes,
            "attributes": attributes.nbytes,
            "planes": len(triangles) * 8 * 3 * 4,
            "opacity": opacity.nbytes,
        }
        room = self._rooms.get(number)
        if room is None or any(nbytes > room.sizes[name] for name, nbytes in sizes.items()):
            if room is not None:
                wait_until_idle(self._idle, self._blend)  # a face before this one may be under way
                self._rooms.pop(number).free()
                sizes = {name: max(nbytes, room.sizes[name]) for name, nbytes in sizes.items()}
            room = self._rooms[number] = _Room(self._driver, number, sizes)
        return room
