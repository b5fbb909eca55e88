"""A swap through a network keeps no memory from frame to frame, and takes none but scraps while it works."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engines.cpu import CpuDevice
from realtime.types import F32
from tests.faces import face_of

STRETCHES, SWAPS = 4, 500
KEPT_BYTES = 2000
"""Four bytes a swap: less than the smallest object."""
SCRAPS_BYTES = 20_000
"""Nearly half the smallest picture of a crop."""


def kept_and_taken(swap: Callable[[int], object]) -> tuple[int, int]:
    """Bytes, arrays' included, by which what is held grows in every stretch; and the most that one swap takes.

    Pools of the interpreter and the runtimes fill up once, by some tens of kilobytes; only a leak goes on.
    """
    kept, taken = [], 0
    tracemalloc.start()
    try:
        for stretch in range(STRETCHES + 1):
            before, _ = tracemalloc.get_traced_memory()
            for number in range(SWAPS):
                held, _ = tracemalloc.get_traced_memory()
                tracemalloc.reset_peak()
                swap(number)
                if stretch:  # the first makes the scratch
                    taken = max(taken, tracemalloc.get_traced_memory()[1] - held)
            gc.collect()
            kept.append(tracemalloc.get_traced_memory()[0] - before)
        return min(kept), taken
    finally:
        tracemalloc.stop()


@pytest.fixture
def swap(tmp_path: Path) -> Callable[[int], object]:
    """The number of a frame -> a swap in it; the face moves, turns, nears, and leaves the picture in part."""
    pytest.importorskip("onnx")
    from realtime.versus import Ours, write_stub

    ours = Ours(CpuDevice(), write_stub(tmp_path / "stub.onnx"))
    picture = np.random.default_rng(0).integers(0, 256, (240, 320, 3), np.uint8)
    shape: F32 = np.random.default_rng(1).uniform(-0.5, 0.5, (468, 3)).astype(np.float32)
    meshes = [
        shape * (60 + 40 * np.sin(k)) @ turn(0.4 * np.sin(2 * k)) + (160 + 120 * np.cos(k), 120, 0)
        for k in np.linspace(0, 6, 50)
    ]
    faces = [face_of(mesh.astype(np.float32)) for mesh in meshes]
    return lambda number: ours.swap(picture, faces[number % len(faces)])


def turn(angle_rad: float) -> F32:
    cos, sin = np.cos(angle_rad), np.sin(angle_rad)
    return np.array([[cos, sin, 0], [-sin, cos, 0], [0, 0, 1]], np.float32)


def test_two_thousand_swaps_keep_no_memory_and_take_only_scraps(swap: Callable[[int], object]) -> None:
    kept, taken = kept_and_taken(swap)
    assert kept < KEPT_BYTES
    assert taken < SCRAPS_BYTES


def test_a_swap_that_kept_a_number_or_took_a_picture_would_be_noticed(swap: Callable[[int], object]) -> None:
    memory: list[float] = []

    def hoarding(number: int) -> None:
        swap(number)
        memory.append(number * 0.1)
        np.empty((128, 128, 3), np.uint8)

    kept, taken = kept_and_taken(hoarding)
    assert kept > 3 * KEPT_BYTES
    assert taken > SCRAPS_BYTES
