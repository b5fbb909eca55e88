"""Runs a plan for a caller on the host, with memory and a stream of its own, and waits; knows tensors, not pictures."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from engines.card import ModelCard
from engines.cuda.driver import Buffer, Driver, Pinned
from engines.errors import DeviceError, EngineError
from engines.plan import target_of
from engines.tensorrt.held import laid_out
from engines.tensorrt.slot import Slot

Memory = TypeVar("Memory", Buffer, Pinned)


class HostRun:
    """A slot whose target comes from the host and whose outputs go there: one copy each way for a run."""

    def __init__(self, card: ModelCard, driver: Driver, slot: Slot) -> None:
        """Allocate everything.

        Args:
            card: of the model.
            driver: of the device.
            slot: of its own, not bound; closed with this, and where this fails.

        Raises:
            EngineError: TensorRT refuses.
            OutOfMemoryError: there is no room.
        """
        self._card, self._driver, self._slot = card, driver, slot
        target = target_of(card)
        self._target = [spec.name for spec in card.inputs].index(target.name)
        (given, given_bytes), (made, made_bytes) = (
            laid_out({spec.name: (spec.shape, spec.dtype) for spec in specs}) for specs in ((target,), card.outputs)
        )
        what = f"{card.name}: runs for the host"
        self._memory: list[Buffer | Pinned] = []
        with ExitStack() as on_failure:
            on_failure.callback(self.close)
            self._from_host, self._to_host = (self._kept(driver.pinned(n, what)) for n in (given_bytes, made_bytes))
            self._read, self._written = (self._kept(driver.buffer(n, what)) for n in (given_bytes, made_bytes))
            slot.bind({target.name: self._read.address} | {n: self._written.address + p.start for n, p in made.items()})
            self._stream, self._done = driver.stream(f"{card.name} for the host"), driver.event()
            on_failure.pop_all()
        self._input = given[target.name].of(self._from_host.array)
        self._outputs = tuple(part.of(self._to_host.array) for part in made.values())

    def run(self, tensors: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], ...]:
        """Run once; see :class:`engines.contract.Engine`. ``tensors`` are those of the card, checked."""
        np.copyto(self._input, tensors[self._target])
        others = (number for number in range(len(tensors)) if number != self._target)
        self._slot.hold({self._card.inputs[n].name: tensors[n] for n in others}, self._stream.handle)
        self._driver.copy_in(self._read.address, self._from_host.array, self._stream)
        try:
            self._slot.enqueue(self._stream.handle)
            self._driver.copy_out(self._to_host.array, self._written.address, self._stream)
        finally:  # nothing is under way when this returns, however it does
            self._stream.record(self._done)
            self._wait()
        return self._outputs

    def close(self) -> None:
        """Free everything. Safe to call twice."""
        self._slot.close()
        for memory in self._memory:
            memory.free()

    def _wait(self) -> None:
        try:
            self._done.wait()
        except DeviceError as error:
            raise EngineError(f"{self._card.name} failed on the GPU: {error.message}", error.hint) from error

    def _kept(self, memory: Memory) -> Memory:
        self._memory.append(memory)
        return memory
