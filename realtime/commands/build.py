"""``doppelcam models build``: the TensorRT plan of a model, for this machine; knows the words, not how it is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from realtime.errors import DeviceError, ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from engines.building import BuildSettings, Outcome
    from engines.card import ModelCard
    from engines.contract import Availability

MINUTE_S = 60
DAY_MIN = 24 * 60
MOST_MB = 1_000_000
"""More than any GPU has."""
MB = 1_000_000


def build(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A model of `doppelcam models list`.")],
    precision: Annotated[str, typer.Option(metavar="WHAT", help="fp16, fp32 or int8.")] = "fp16",
    calibrate: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="For int8: pictures of what the network will see.")
    ] = None,
    boost: Annotated[
        int, typer.Option(min=1, max=16, metavar="N", help="For faces at N times the network's own size (swap.boost).")
    ] = 1,
    size: Annotated[str, typer.Option(metavar="WxH", help="Pin a model that takes any size to this one.")] = "",
    workspace: Annotated[
        int, typer.Option(min=0, max=MOST_MB, metavar="MB", help="GPU memory to work in; 0: all there is.")
    ] = 0,
    level: Annotated[
        int, typer.Option(min=0, max=5, help="How long the fastest kernels are looked for; 5 is the longest.")
    ] = 3,
    strict_nans: Annotated[
        bool, typer.Option("--strict-nans", help="No shortcuts that are only right for finite numbers.")
    ] = False,
    time_limit: Annotated[
        float, typer.Option(min=0.1, max=DAY_MIN, metavar="MIN", help="Give up after so many minutes.")
    ] = 60,
    force: Annotated[bool, typer.Option("--force", help="Build it even if there is one that fits.")] = False,
) -> None:
    """Build the TensorRT plan of a model for the GPU of this machine; takes minutes, once."""
    from rich.console import Console

    from engines.building import PRECISIONS, BuildSettings
    from engines.building import build as build_plan
    from engines.card import load_card
    from realtime.commands.build_terminal import BuildTerminal

    if precision not in PRECISIONS:
        raise typer.BadParameter(f"{precision} is not {', '.join(PRECISIONS)}", param_hint="--precision")
    card = load_card(name)
    _demand_boost(card, boost)
    pinned = _read_size(size)
    _demand_size(card, pinned)
    settings = BuildSettings(
        precision,
        boost * boost,
        pinned,
        workspace * MB,
        level,
        strict_nans,
        calibrate,
        time_limit * MINUTE_S,
    )
    settings.demand_possible()
    _demand_machine(card, what_is_needed(card))
    with _sampled(card, settings, boost) as ready, BuildTerminal(card.name) as terminal:
        outcome = build_plan(card, ready, terminal.moved, on_warning=terminal.warned, force=force)
    typer.echo(
        f"{name}: {outcome.plan.path} ({'built' if outcome.is_new else 'was already here; --force builds it anew'})"
    )
    Console().print(summary(outcome))


@contextmanager
def _sampled(card: ModelCard, settings: BuildSettings, boost: int) -> Iterator[BuildSettings]:
    """Make samples of photos for a swapper; every other network is shown the pictures themselves."""
    from realtime.swappers import FAMILIES

    folder = settings.calibration
    if settings.precision != "int8" or folder is None or card.family not in FAMILIES or any(folder.glob("*.npz")):
        yield settings
        return
    from realtime.calibration import write_samples

    with TemporaryDirectory() as made:
        count = write_samples(card.name, boost, folder, Path(made), lambda text: typer.echo(text, err=True))
        typer.echo(f"{card.name}: noted what it is given for {count} faces", err=True)
        yield replace(settings, calibration=Path(made))


def what_is_needed(card: ModelCard) -> tuple[tuple[str, Availability], ...]:
    """Say of everything that a build needs whether it is here; where there is no GPU, TensorRT is not started."""
    from importlib.util import find_spec

    from engines import store
    from engines.contract import Availability
    from engines.cuda import opening
    from engines.errors import install_extra
    from engines.tensorrt import probe as tensorrt
    from engines.tensorrt.api import INSTALL, installed

    gpu, path = opening.probe(), store.locate(card)
    if gpu.ok:
        trt = tensorrt.probe()
    else:
        trt = Availability(True, "installed") if installed() else Availability(False, "is not installed", INSTALL)
    has_onnx = find_spec("onnx") is not None
    return (
        ("NVIDIA GPU", gpu),
        ("TensorRT", trt),
        (
            "package onnx",
            Availability(has_onnx, "installed" if has_onnx else "is not installed", install_extra("neural")),
        ),
        ("the model", Availability(path is not None, str(path or "is not here"), store.how_to_get(card))),
    )


def _demand_machine(card: ModelCard, needed: Sequence[tuple[str, Availability]]) -> None:
    """Show what is missing on one screen, and refuse.

    Raises:
        DeviceError: something is missing.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    lacks = [(what, found) for what, found in needed if not found.ok]
    if not lacks:
        return
    table = Table.grid(padding=(0, 2))
    for what, found in needed:
        state = Text("ok", style="green") if found.ok else Text("missing", style="yellow")
        table.add_row(what, state, Text(found.reason, overflow="fold"))
    console = Console(stderr=True)
    console.print(f"What a TensorRT plan of {card.name} needs:", soft_wrap=True, highlight=False)
    console.print(table)
    console.print("\nHow to get it", style="bold")
    for what, found in lacks:
        console.print(f"{what}: {found.hint}", soft_wrap=True, markup=False, highlight=False)
    console.print()
    raise DeviceError(
        f"no plan of {card.name} can be built here, missing: {', '.join(what for what, _ in lacks)}",
        "see above; until then ONNX Runtime runs the model, see `doppelcam doctor`",
    )


def summary(outcome: Outcome) -> Table:
    """Lay out what there is now."""
    from rich.table import Table
    from rich.text import Text

    plan, note = outcome.plan, outcome.plan.sidecar.settings
    rows = [("built anew", reason) for reason in outcome.reasons]
    rows.append(("precision", _precision(plan.sidecar.precision, note)))
    if plan.sidecar.sizes:
        rows.append(("pictures", str(plan.sidecar.sizes)))
    rows.append(("size", f"{plan.path.stat().st_size / MB:.1f} MB"))
    rows.append(("built in", f"{note.get('seconds', '?')} s by TensorRT {plan.sidecar.tensorrt} on {plan.sidecar.gpu}"))
    table = Table.grid(padding=(0, 2))
    for what, words in rows:
        table.add_row(Text(what, style="dim"), Text(words, overflow="fold"))
    return table


def _precision(precision: str, note: object) -> str:
    facts = note if isinstance(note, dict) else {}
    words = [precision]
    if "whole_number_layers" in facts:
        words.append(f"{facts['whole_number_layers']} layers in whole numbers, {facts['whole_number_error']:.1%} off")
    if "islands" in facts:
        words.append(f"{facts['islands']} of {facts.get('nodes', '?')} nodes in single precision")
    return ", ".join(words)


def _read_size(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    width, _, height = text.lower().partition("x")
    if not (width.isdecimal() and height.isdecimal() and int(width) and int(height)):
        raise typer.BadParameter(f"{text} is no size like 640x384", param_hint="--size")
    return int(width), int(height)


def _demand_boost(card: ModelCard, boost: int) -> None:
    allowed = card.decode.get("boost", [1])
    if boost != 1 and boost not in allowed:
        raise ModelError(
            f"{card.name} cannot work at {boost} times its own size",
            f"use --boost with one of: {', '.join(map(str, allowed))}",
        )


def _demand_size(card: ModelCard, size: tuple[int, int] | None) -> None:
    from engines.sizes import is_free

    if size is None:
        return
    hint = "leave --size out"
    if not any(is_free(spec) for spec in card.inputs):
        raise ModelError(f"{card.name} takes pictures of one size, which --size cannot change", hint)
    if card.sizes and (fault := card.sizes.fault(size)):
        raise ModelError(f"{card.name} {fault}", hint)
