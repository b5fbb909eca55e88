"""Engine on a TensorRT plan: slots for frames in flight, runs for callers on the host; knows tensors, no pictures."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.card import ModelCard
from engines.conform import CardEngine, Found, check_call, check_file
from engines.cuda.driver import Driver
from engines.errors import EngineError
from engines.plan import Plan, how_to_build, open_plan, target_of
from engines.tensorrt.api import TensorRt, load
from engines.tensorrt.held import Compute, Shelf
from engines.tensorrt.host import HostRun
from engines.tensorrt.session import Session
from engines.tensorrt.slot import Slot
from engines.tensorrt.style import Style


class TensorRtEngine(CardEngine):
    """One plan, as :class:`engines.contract.SlottedEngine`.

    The target and the outputs lie where ``bind`` says; every other input is held here. Where the builder has moved the
    part of the network that does not depend on the target into a small one of its own, ``hold`` runs that when a value
    is new: callers see the inputs of the card.
    """

    def __init__(
        self, card: ModelCard, path: Path, driver: Driver, slots: int = 2, trt: TensorRt | None = None
    ) -> None:
        """Load a plan.

        Args:
            card: its card, every axis of its inputs fixed; a plan of several sizes is run at that size alone.
            path: of the plan; its note lies beside it. It is run only where the note says that this program built it.
            driver: of the device, whose context is current in the calling thread.
            slots: frames in flight, >= 1.
            trt: the bindings; by default those that are installed.

        Raises:
            EngineError: the plan has changed since it was built, TensorRT refuses it, its tensors are not those of the
                card, or it takes no pictures of that size.
            OutOfMemoryError: there is no room for it.
        """
        trt, plan = trt or load(), open_plan(path)
        version = ".".join(plan.sidecar.tensorrt.split(".")[:3])
        super().__init__(card, f"tensorrt {version}, {plan.sidecar.precision}, {driver.gpu.name}")
        self._driver = driver
        self._slots: list[Slot] = []
        self._shelf: Shelf | None = None
        self._host: HostRun | None = None
        self._session: Session | None = None
        with ExitStack() as on_failure:
            on_failure.callback(self.close)
            self._session = Session(trt, plan.read(), card.name)
            held = self._held(self._session, plan)
            if held:  # the last of its slots is the host's
                self._shelf = Shelf(driver, held, _maker(card, plan), slots + 1, card.name)
            for number in range(slots):
                self._slots.append(self._new_slot(number))
            shapes = self._slots[0].shapes
            self._card = replace(card, outputs=tuple(replace(spec, shape=shapes[spec.name]) for spec in card.outputs))
            on_failure.pop_all()

    def bind(self, slot: int, addresses: Mapping[str, int]) -> None:
        """See :class:`engines.contract.SlottedEngine`."""
        self._slot(slot).bind(addresses)

    def hold(self, slot: int, name: str, tensor: NDArray[Any], stream: int) -> None:
        """See :class:`engines.contract.SlottedEngine`.

        Raises:
            EngineError: no such input, or it has another shape or type.
        """
        self._slot(slot).hold({name: tensor}, stream)

    def enqueue(self, slot: int, stream: int) -> None:
        """See :class:`engines.contract.SlottedEngine`; nothing but the run itself, so that it can be captured."""
        self._slot(slot).enqueue(stream)

    def run(self, *tensors: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """See :class:`engines.contract.Engine`; the first run allocates what only callers on the host need."""
        check_call(self._card, tensors)
        if self._host is None:
            self._host = HostRun(self._card, self._driver, self._new_slot(len(self._slots)))
        return self._host.run(tensors)

    def close(self) -> None:
        """See :class:`engines.contract.Engine`; what was enqueued ends before."""
        closing: list[HostRun | Slot | Session | Shelf | None] = [self._host, *self._slots]
        for part in (*closing, self._session, self._shelf):  # contexts, then the plan and TensorRT, then memory
            if part is not None:
                part.close()
        self._slots.clear()
        self._host = self._session = self._shelf = None

    def _slot(self, number: int) -> Slot:
        self._loaded()
        return self._slots[number]

    def _new_slot(self, number: int) -> Slot:
        return Slot(self._card, self._driver, self._loaded(), self._shelf, number)

    def _loaded(self) -> Session:
        if self._session is None:
            raise EngineError(f"the engine of {self._card.name} is closed", "open it again")
        return self._session

    def _held(self, session: Session, plan: Plan) -> Found:
        """Hold the plan to its card, and find the inputs that are held."""
        card, styled, target = self._card, plan.sidecar.style_inputs, target_of(self._card)
        asked = replace(card, inputs=(target,)) if styled else card
        check_file(asked, session.inputs, session.outputs)
        taken = {*(spec.name for spec in asked.inputs), *styled}
        if taken != session.inputs.keys() or len(card.outputs) != len(session.outputs):
            raise EngineError(
                f"the plan of {card.name} has {', '.join((*session.inputs, *session.outputs))}; its card and its note "
                f"say {', '.join((*sorted(taken), *(spec.name for spec in card.outputs)))}",
                how_to_build(card.name),
            )
        held = {name: found for name, found in session.inputs.items() if name != target.name}
        if any(
            -1 in shape for shape in (*(shape for shape, _ in held.values()), *(spec.shape for spec in card.inputs))
        ):
            raise EngineError(f"the plan of {card.name}, or its card, leaves an axis free", how_to_build(card.name))
        sizes = plan.sidecar.sizes
        if sizes and (wrong := sizes.fault(target.size)):
            raise EngineError(f"the plan of {card.name} {wrong}", how_to_build(card.name, target.size))
        return held


def _maker(card: ModelCard, plan: Plan) -> Compute:
    """What makes the held inputs of a plan of the inputs of its card."""
    others = [spec for spec in card.inputs if spec.name != target_of(card).name]

    def arrays(values: Mapping[str, bytes]) -> Mapping[str, NDArray[Any]]:
        return {spec.name: np.frombuffer(values[spec.name], spec.dtype).reshape(spec.shape) for spec in others}

    if not plan.sidecar.style_inputs:
        return arrays
    style = Style(plan.read_style(), card.name)
    return lambda values: style(arrays(values))
