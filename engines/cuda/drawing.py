"""Draws a textured mesh into a frame on the GPU; knows kernels and buffers, not what the mesh shows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.cuda import blocks
from engines.cuda.driver import Buffer, Driver, Pinned, Stream
from engines.cuda.lane import THREADS, grid_for
from engines.cuda.slot import Slot

MOST_CONSTANTS = 8
"""Textures and lists of triangles that are kept on the device: a face has one for each size it is drawn at."""
WARP_PAIR = 64
"""Threads that share one triangle."""


class Constants:
    """Arrays that do not change, sent when they are first seen. The oldest is dropped for a new one."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._kept: dict[int, tuple[NDArray[Any], Pinned, Buffer]] = {}

    def address(self, array: NDArray[Any], stream: Stream) -> np.uint64:
        """Where an array lies on the device, for work that the stream is given from now on."""
        key = array.ctypes.data
        if key not in self._kept or self._kept[key][0].shape != array.shape:
            if len(self._kept) == MOST_CONSTANTS:
                self._drop(next(iter(self._kept)), stream)
            pinned = self._driver.pinned(array.nbytes, "constant of a mesh, sent")
            buffer = self._driver.buffer(array.nbytes, "constant of a mesh")
            np.copyto(pinned.array, np.ascontiguousarray(array).reshape(-1).view(np.uint8))
            self._driver.copy_in(buffer.address, pinned.array, stream)
            self._kept[key] = array, pinned, buffer  # the array too: its address is another's as soon as it is gone
        return np.uint64(self._kept[key][2].address)

    def _drop(self, key: int, stream: Stream) -> None:
        """Free one; work that uses it may be under way."""
        event = self._driver.event()
        stream.record(event)
        event.wait()
        _, pinned, buffer = self._kept.pop(key)
        pinned.free()
        buffer.free()

    def free(self) -> None:
        """Free all."""
        for _, pinned, buffer in self._kept.values():
            pinned.free()
            buffer.free()
        self._kept.clear()


class _Room:
    """Buffers for the mesh of one frame, made anew only for a larger mesh than ever."""

    def __init__(self, driver: Driver, number: int, sizes: dict[str, int]) -> None:
        self.sizes = sizes
        self.parts = {name: driver.buffer(nbytes, f"mesh of frame {number}: {name}") for name, nbytes in sizes.items()}

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
        self._driver, self._blend = driver, blend
        self._constants = Constants(driver)
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
        blend, picture = self._blend, slot.picture
        assert picture is not None
        rectangle = slot.rectangle_of(part)
        room = self._room(slot.number, mesh, attributes, triangles, opacity)
        block = np.zeros(1, blocks.MESH)
        block["left"], block["top"] = rectangle.left, rectangle.top
        block["width"], block["height"], block["pitch"] = part.shape[1], part.shape[0], picture.pitch
        block["triangles"], block["texture_side"], block["opacity_side"] = len(triangles), len(texture), len(opacity)
        blend.wait_for(slot.uploaded)
        slot.wait_for_readers(blend)
        slot.laps[blend.name].begin(blend)
        for name, array in (("block", block), ("mesh", mesh), ("attributes", attributes), ("opacity", opacity)):
            slot.staging.send(array, room.parts[name].address, blend)
        painted, aside = np.uint64(picture.device.address), np.uint64(picture.aside.address)
        nearest, planes, at = np.uint64(picture.nearest.address), room.address("planes"), room.address("block")
        corners, texels = self._constants.address(triangles, blend), self._constants.address(texture, blend)
        points, values = room.address("mesh"), room.address("attributes")
        pixels = grid_for(part.shape[0] * part.shape[1])
        for name, grid, threads, arguments in (
            ("mesh_begin", pixels, THREADS, (painted, at, aside, nearest)),
            ("mesh_rasterise", (len(triangles), 1, 1), WARP_PAIR, (points, corners, at, nearest)),
            ("mesh_planes", grid_for(8 * len(triangles)), THREADS, (points, values, corners, at, planes)),
            ("mesh_paint", pixels, THREADS, (painted, aside, nearest, planes, texels, room.address("opacity"), at)),
        ):
            self._driver.kernel("mesh.cu", name).launch(blend, grid, (threads, 1, 1), arguments)
        slot.laps[blend.name].end(blend)
        slot.paint_into(rectangle, blend)

    def free(self) -> None:
        """Free everything."""
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
        sizes = {
            "block": blocks.MESH.itemsize,
            "mesh": mesh.nbytes,
            "attributes": attributes.nbytes,
            "planes": len(triangles) * 8 * 3 * 4,
            "opacity": opacity.nbytes,
        }
        if number not in self._rooms or self._rooms[number].sizes != sizes:
            if number in self._rooms:
                self._rooms.pop(number).free()
            self._rooms[number] = _Room(self._driver, number, sizes)
        return self._rooms[number]
