"""One frame in flight through a plan: its context, where its tensors lie, what it holds; shares no memory."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from numpy.typing import NDArray

from engines.card import ModelCard
from engines.conform import check_result, check_tensor
from engines.cuda.driver import Buffer, Driver
from engines.cuda.idle import wait_until_idle
from engines.errors import EngineError
from engines.plan import target_of
from engines.tensorrt.api import IExecutionContext
from engines.tensorrt.held import Shelf
from engines.tensorrt.session import Session


class Slot:
    """A context of a session, with memory of its own to compute in.

    Attributes:
        shapes: of the outputs by name, which the size of the target decides.
    """

    def __init__(self, card: ModelCard, driver: Driver, session: Session, shelf: Shelf | None, number: int) -> None:
        """Make it.

        Args:
            card: of the model.
            driver: of the device.
            session: the plan.
            shelf: of the inputs that are held; None where there are none.
            number: of the slot, on the shelf.

        Raises:
            EngineError: TensorRT refuses.
            OutOfMemoryError: there is no room for its scratch memory.
        """
        self._card, self._driver, self._session, self._shelf, self._number = card, driver, session, shelf, number
        self._others = {spec.name: spec for spec in card.inputs if spec.name != target_of(card).name}
        self._given: dict[str, bytes] = {}
        self._idle = driver.event()
        self._stream = 0  # that it was run on, captured runs included
        self._bound = False
        size = max(session.scratch_bytes, 1)
        self._scratch: Buffer = driver.buffer(size, f"{card.name}: scratch of slot {number}")
        self._context: IExecutionContext | None = None
        with ExitStack() as on_failure:
            on_failure.callback(self.close)
            self._context = session.context(self._scratch.address, size)
            self.shapes = self._fix_shapes()
            on_failure.pop_all()

    def bind(self, addresses: Mapping[str, int]) -> None:
        """Say where the target and the outputs lie; see :class:`engines.contract.SlottedEngine`."""
        wanted = {target_of(self._card).name, *(spec.name for spec in self._card.outputs)}
        if addresses.keys() != wanted:
            raise EngineError(
                f"{self._card.name} is bound by {', '.join(sorted(wanted))}, got {', '.join(sorted(addresses))}",
                "report this as a bug",
            )
        held = self._shelf.addresses(self._number) if self._shelf else {}
        for name, address in {**addresses, **held}.items():
            placed = self._running.set_tensor_address(name, address)
            self._session.demand(placed, f"does not take the address {address:#x} of {name!r}")
        self._bound = True

    def hold(self, given: Mapping[str, NDArray[Any]], stream: int) -> None:
        """Take over inputs that seldom change; see :class:`engines.contract.SlottedEngine`."""
        for name, tensor in given.items():
            if name not in self._others:
                raise EngineError(f"{self._card.name} holds no input {name!r}", "report this as a bug")
            check_tensor(self._card, self._others[name], tensor)
        values = self._given | {name: tensor.tobytes() for name, tensor in given.items()}
        if values == self._given:
            return
        if self._shelf and values.keys() == self._others.keys():
            self._shelf.take(self._number, values, self._driver.stream_of(stream))
        self._given = values  # only now: what failed is tried again

    def enqueue(self, stream: int) -> None:
        """Start one run; see :class:`engines.contract.SlottedEngine`."""
        if not self._bound or len(self._given) < len(self._others):
            lacks = (
                ", ".join(self._others.keys() - self._given.keys()) if self._bound else "the addresses of its tensors"
            )
            raise EngineError(
                f"{self._card.name} cannot run: slot {self._number} lacks {lacks}", "report this as a bug"
            )
        self._stream = stream
        self._session.demand(self._running.execute_async_v3(stream), "does not start a run")

    def close(self) -> None:
        """Wait for its runs, let go of the context, then of its memory. Safe to call twice."""
        if self._stream and self._context is not None:
            wait_until_idle(self._idle, self._driver.stream_of(self._stream))
        self._context = None
        self._scratch.free()

    def _fix_shapes(self) -> dict[str, tuple[int, ...]]:
        """Tell the shapes of the inputs, and hold those of the outputs to the card: from then on none is free."""
        target = target_of(self._card)
        for name, (planned, _) in self._session.inputs.items():
            shape = target.shape if name == target.name else planned
            self._session.demand(self._running.set_input_shape(name, shape), f"does not take {name!r} as {shape}")
        try:
            unknown = self._running.infer_shapes()
        except RuntimeError as error:
            raise self._session.refusal("cannot work out shapes") from error
        self._session.demand(not unknown, f"does not know the shapes of {', '.join(unknown)}")
        shapes = {spec.name: tuple(self._running.get_tensor_shape(spec.name)) for spec in self._card.outputs}
        for spec in self._card.outputs:
            self._session.demand(-1 not in shapes[spec.name], f"does not know the shape of {spec.name!r}")
            check_result(self._card, spec, shapes[spec.name])
        return shapes

    @property
    def _running(self) -> IExecutionContext:
        if self._context is None:
            raise EngineError(f"the engine of {self._card.name} is closed", "open it again")
        return self._context
