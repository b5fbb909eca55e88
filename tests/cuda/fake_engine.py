"""Networks for the fake GPU: host functions that run when their stream comes to them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.contract import TensorSpec
from engines.errors import EngineError
from tests.cuda.fake_driver import FakeDriver
from tests.cuda.fake_parts import OrderError

Function = Callable[..., tuple[NDArray[Any], ...]]


class HostFunction:
    """An ``Engine`` that is a function on arrays."""

    def __init__(self, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...], function: Function) -> None:
        self.inputs, self.outputs, self.function = inputs, outputs, function
        self.runtime = "a function"
        self.runs = 0

    def run(self, *tensors: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        self.runs += 1
        return tuple(np.ascontiguousarray(made) for made in self.function(*tensors))

    def close(self) -> None:
        pass


class FakeSlotted(HostFunction):
    """A ``SlottedEngine``; the same function, in the memory of the fake GPU."""

    def __init__(
        self, driver: FakeDriver, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...], function: Function
    ) -> None:
        super().__init__(inputs, outputs, function)
        self._driver = driver
        self.bound: dict[int, Mapping[str, int]] = {}
        self.held: dict[tuple[int, str], NDArray[Any]] = {}
        self._told: dict[tuple[int, str], NDArray[Any]] = {}
        self._ran: set[int] = set()
        self.fails = False

    def bind(self, slot: int, addresses: Mapping[str, int]) -> None:
        self.bound[slot] = dict(addresses)

    def hold(self, slot: int, name: str, tensor: NDArray[Any], stream: int) -> None:
        kept = self.held.setdefault((slot, name), np.full_like(tensor, np.nan))
        if not np.array_equal(self._told.get((slot, name), kept), tensor):
            values = self._told[slot, name] = tensor.copy()
            self._driver.stream_of(stream).push(f"hold {name}", lambda: np.copyto(kept, values))

    def enqueue(self, slot: int, stream: int) -> None:
        if self.fails:
            raise EngineError("the engine refused", "build the plan again")
        if self._driver.capturing is not None and slot not in self._ran:
            raise OrderError("captured before a run of this slot has happened")
        inputs = {spec.name for spec in self.inputs}
        uses = [
            self._driver.block_at(address)._replace(writes=name not in inputs)
            for name, address in self.bound[slot].items()
        ]
        self._driver.stream_of(stream).push("engine", lambda: self._run(slot), uses=uses)

    def _run(self, slot: int) -> None:
        self.runs += 1
        self._ran.add(slot)
        given = [
            _view(self.bound[slot][spec.name], spec) if spec.name in self.bound[slot] else self.held[slot, spec.name]
            for spec in self.inputs
        ]
        for spec, made in zip(self.outputs, self.function(*given), strict=True):
            _view(self.bound[slot][spec.name], spec)[:] = made


def _view(address: int, spec: TensorSpec) -> NDArray[Any]:
    nbytes = int(np.prod(spec.shape)) * np.dtype(spec.dtype).itemsize
    memory = (ctypes.c_uint8 * nbytes).from_address(address)
    return np.ctypeslib.as_array(memory).view(spec.dtype).reshape(spec.shape)
