"""``doppelcam models export``: from PyTorch to models that the program can use; knows the words, not the networks."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from realtime.errors import ModelError, install_extra

PACKAGES = ("torch", "onnx", "onnxscript")
"""What the extra ``train`` brings."""
FUSIONS = ("linear", "gated")
"""Those of ``engines.modular.fusion``, which cannot be asked without torch (a test compares the two)."""


def export(
    size: Annotated[
        list[int] | None, typer.Option(help="Side of the crop: 128 or 256; give it twice for both.")
    ] = None,
    fusion: Annotated[str, typer.Option(help="How identity and target become one: linear or gated.")] = "linear",
    width: Annotated[int, typer.Option(min=1, help="Channels at full size.")] = 32,
    blocks: Annotated[int, typer.Option(min=1, help="Identity blocks in the bottleneck.")] = 6,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Trained weights (a state_dict); without it they are random.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for models and cards; your model folder if left out.")
    ] = None,
) -> None:
    """Export the modular face swapper from PyTorch to ONNX, compare the two, and write model cards."""
    from rich.console import Console
    from rich.table import Table

    from engines.folders import user_folder

    sizes = tuple(dict.fromkeys(size or [128]))
    for side in sizes:
        if side not in (128, 256):
            raise typer.BadParameter(f"{side} is not 128 or 256", param_hint="--size")
    if fusion not in FUSIONS:
        raise typer.BadParameter(f"{fusion} is not {' or '.join(FUSIONS)}", param_hint="--fusion")
    if checkpoint and not checkpoint.is_file():
        raise ModelError(f"there is no checkpoint {checkpoint}", "check its name and place")
    if missing := [package for package in PACKAGES if find_spec(package) is None]:
        which = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
        raise ModelError(f"the export needs {', '.join(PACKAGES)}; {which}", install_extra("train"))

    from engines.modular.export import export as run
    from engines.modular.export import write
    from engines.modular.swapper import PipelineConfig

    folder = out or user_folder()
    exported = run(PipelineConfig(width, blocks, fusion), sizes, checkpoint, typer.echo)
    write(exported.files, folder)

    table = Table("module", "batch", "greatest difference", "allowed", box=None, pad_edge=False, header_style="bold")
    for found in exported.differences:
        table.add_row(found.module, str(found.batch), f"{found.greatest:.1e}", f"{found.allowed:.1e}")
    Console(soft_wrap=True).print(table)
    for name, content in exported.files.items():
        typer.echo(f"{len(content) / 1e3:8.0f} kB  {folder / name}")
    if checkpoint is None:
        typer.echo("These weights are random: the files have the right shape and draw nothing yet.")
