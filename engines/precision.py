"""Checks that a runtime computes what another one computes, once for each model and version; knows no runtime.

Some runtimes take a lower precision than the model states where the processor has one, and a mesh then moves by pixels
without anybody being told.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import platformdirs

from engines.card import ModelCard
from engines.contract import Engine
from engines.errors import EngineError
from engines.trial import apart, trial_inputs

TOLERANCE = 1e-3
"""How far an output may be from the reference, over its largest value. Between float32 kernels it was 1e-7 to 1e-5 in
every model measured; bfloat16, the next precision that processors have, moved the embedded mesh by 4e-3."""


def verdicts() -> Path:
    """Return the folder where it is noted what was checked; it need not exist."""
    return platformdirs.user_cache_path("doppelcam", appauthor=False) / "precision"


def demand_precision(
    card: ModelCard, engine: Engine, open_reference: Callable[[], Engine], key: tuple[str, ...], folder: Path
) -> None:
    """Refuse an engine that does not compute what the reference computes.

    Args:
        card: of the model.
        engine: to check.
        open_reference: opens the reference; only called where there is no verdict yet.
        key: everything that a verdict depends on: hash of the model, versions of both runtimes, processor.
        folder: where verdicts are kept. A damaged one counts as none; where none can be written the check costs its
            time at each start and nothing else.

    Raises:
        EngineError: it does not, or the reference cannot be opened.
    """
    note = folder / f"{hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]}.json"
    worst = _noted(note)
    if worst is None:
        worst = _compare(card, engine, open_reference)
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            note.write_text(json.dumps({"model": card.name, "apart": worst, "key": key}), encoding="utf-8")
    if not worst <= TOLERANCE:
        raise EngineError(
            f"model {card.name} on {engine.runtime} is {worst:.2%} apart from runtime {card.runtimes[0]}, "
            f"more than the {TOLERANCE:.2%} of rounding",
            f"choose runtime {card.runtimes[0]}",
        )


def _compare(card: ModelCard, engine: Engine, open_reference: Callable[[], Engine]) -> float:
    tensors = trial_inputs(card, seed=0)
    reference = open_reference()
    try:
        pairs = zip(reference.run(*tensors), engine.run(*tensors), strict=True)
        return max(apart(right, asked) for right, asked in pairs)
    finally:
        reference.close()


def _noted(note: Path) -> float | None:
    """Read a verdict; ``None`` where there is none that can be read."""
    try:
        return float(json.loads(note.read_text(encoding="utf-8"))["apart"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
