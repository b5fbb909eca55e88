"""``doppelcam models``: which models there are, where they lie, whether they are whole; knows no runtime."""

from __future__ import annotations

from typing import Annotated

import typer

models_app = typer.Typer(help="Model files: list, where, verify.", no_args_is_help=True)


@models_app.command("list")
def list_models() -> None:
    """List every model card with its size, licence and whether its file is here."""
    from rich.console import Console
    from rich.table import Table

    from engines import card, store

    table = Table("model", "size", "licence", "commercial use", "file", box=None, pad_edge=False, header_style="bold")
    for path in sorted(card.FOLDER.glob("*.toml")):
        model = card.load_card(path.stem)
        folders = {"yours": store.user_folder(), "embedded": store.EMBEDDED}
        here = [name for name, folder in folders.items() if (folder / model.file).is_file()]
        table.add_row(
            model.name,
            f"{model.size_bytes / 1e6:.1f} MB",
            model.licence.name,
            "yes" if model.licence.commercial_use else "no",
            here[0] if here else "not here",
        )
    Console(soft_wrap=True).print(table)


@models_app.command("where")
def where() -> None:
    """Print the folder for models of your own."""
    from engines import store

    typer.echo(store.user_folder())


@models_app.command("verify")
def verify(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="All when left out.")] = None,
) -> None:
    """Check model files against the sizes and hashes on their cards."""
    from engines import card, store

    for name in names or sorted(path.stem for path in card.FOLDER.glob("*.toml")):
        typer.echo(f"ok  {name}  {store.find(card.load_card(name))}")
