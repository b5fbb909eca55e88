"""How far a build has come, from what its process tells; knows how long stages take, not what happens in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from engines.building.messages import Message, PhaseBegun, PhaseDone, Stage, StepDone
from engines.building.settings import Precision

STAGES: Mapping[str, int] = {
    "checking the model": 2,
    "preparing the graph": 15,
    "calibrating": 60,
    "converting": 10,
    "building": 120,
    "writing": 2,
}
"""Parts of a build in their order -> how long each takes, about, in seconds for a network of inswapper's size.
Measured on two cores, but for the building itself: of that people report one to five minutes."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One of the phases under way.

    Attributes:
        name: in TensorRT's words.
        parent: the phase that it is part of; empty for none.
        done: steps.
        steps: all of them.
    """

    name: str
    parent: str
    done: int
    steps: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a build is.

    Attributes:
        stage: in :data:`STAGES`.
        share: of the whole, 0..1; never less than before. An estimate: nobody knows how long the next step takes.
        phases: those under way, outermost first.
        skipped: stages that this build has not.
    """

    stage: str = next(iter(STAGES))
    share: float = 0.0
    phases: tuple[Phase, ...] = ()
    skipped: frozenset[str] = frozenset()

    @classmethod
    def of(cls, precision: Precision) -> Progress:
        """Begin a build."""
        skipped = {"fp32": {"calibrating", "converting"}, "fp16": {"calibrating"}}.get(precision, ())
        return cls(skipped=frozenset(skipped))

    def after(self, message: Message) -> Progress:
        """Say how far the build is when it has told one thing more."""
        match message:
            case Stage(name):
                return _moved(self, replace(self, stage=name, phases=()))
            case PhaseBegun(name, parent, steps):
                return _moved(self, replace(self, phases=(*self.phases, Phase(name, parent, 0, max(steps, 1)))))
            case StepDone(name, step):
                done = (
                    replace(phase, done=min(max(phase.done, step + 1), phase.steps)) if phase.name == name else phase
                    for phase in self.phases
                )
                return _moved(self, replace(self, phases=tuple(done)))
            case PhaseDone(name):
                return _moved(self, replace(self, phases=tuple(p for p in self.phases if p.name != name)))
            case _:
                return self


def _moved(before: Progress, now: Progress) -> Progress:
    """Work out the share; the end of a phase alone moves nothing: its parent's step tells."""
    order = {name: number for number, name in enumerate(STAGES)}
    costs = {name: cost for name, cost in STAGES.items() if name not in now.skipped}
    past = sum(cost for name, cost in costs.items() if order[name] < order[now.stage])
    share = (past + costs.get(now.stage, 0) * _inside(now.phases)) / sum(costs.values())
    return replace(now, share=max(before.share, share))


def _inside(phases: tuple[Phase, ...], parent: str = "") -> float:
    """Share that is done of a stage, or of the step of a phase that is under way."""
    for number, phase in enumerate(phases):
        if phase.parent == parent:
            return min(1.0, (phase.done + _inside(phases[number + 1 :], phase.name)) / phase.steps)
    return 0.0
