"""``doppelcam models``: which models there are, how to have them, whether they are whole; knows no runtime."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from realtime.commands.build import build
from realtime.commands.export import export
from realtime.errors import LiveError, ModelError

if TYPE_CHECKING:
    from engines.store.owner import Got

models_app = typer.Typer(help="Model files: list, pull, add, verify, where, build, export.", no_args_is_help=True)

AcceptLicence = Annotated[
    bool, typer.Option("--accept-licence", help="Accept a licence that forbids commercial use (for scripts).")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Take a file whose sha256 nobody has published.")]


@models_app.command("list")
def list_models(
    family: Annotated[str, typer.Option(help="Only this family.")] = "",
    here: Annotated[bool, typer.Option("--here", help="Only what is here.")] = False,
    as_json: Annotated[bool, typer.Option("--json", metavar=" ", help="Print JSON instead of a table.")] = False,
) -> int:
    """List every model with its size, its licence and whether it is here."""
    from realtime.commands.models_list import show

    return show(family, as_json=as_json, here=here)


@models_app.command("pull")
def pull(
    names: Annotated[list[str], typer.Argument(metavar="NAME...")],
    accept_licence: AcceptLicence = False,
    yes: Yes = False,
) -> None:
    """Fetch models; an interrupted one goes on where it stopped."""
    from engines.card import load_card
    from engines.store import http
    from engines.store.pull import pull as pull_model
    from realtime.commands.models_terminal import Terminal

    cards = [load_card(name) for name in names]
    failed: list[tuple[str, LiveError]] = []
    with http.open_client() as client:
        for card in cards:
            try:
                with Terminal(card.name, accept_licence, yes) as terminal:
                    got = pull_model(card, terminal, terminal, client)
                _tell(got)
            except ModelError as error:  # one that fails does not keep the others from coming
                failed.append((card.name, error))
                if len(cards) > 1:
                    typer.echo(f"{card.name}: {error.message}", err=True)
            except KeyboardInterrupt:
                typer.echo(f"stopped; the next `doppelcam models pull {card.name}` goes on from here", err=True)
                raise
    if failed and len(cards) > 1:
        absent = ", ".join(name for name, _ in failed)
        raise ModelError(f"{len(failed)} of {len(cards)} models are not here: {absent}", failed[0][1].hint)
    if failed:
        raise failed[0][1]


@models_app.command("add")
def add(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An ONNX, TFLite or DFM file.")],
    name: Annotated[str, typer.Option("--as", metavar="NAME", help="What it is, where that is not clear.")] = "",
    move: Annotated[bool, typer.Option("--move", help="Move it instead of copying it.")] = False,
    link: Annotated[bool, typer.Option("--link", help="Leave it where it is, and link to it.")] = False,
    accept_licence: AcceptLicence = False,
    yes: Yes = False,
) -> None:
    """Take a model file that you have: it is recognised by its hash, else by its tensors."""
    from engines.store.add import add as add_model
    from realtime.commands.models_terminal import Terminal

    if move and link:
        raise typer.BadParameter("choose one of --move and --link")
    with Terminal(file.name, accept_licence, yes) as terminal:
        got = add_model(file, terminal, name, "move" if move else "link" if link else "copy")
    _tell(got)


@models_app.command("where")
def where() -> None:
    """Print the folder for models and cards of your own."""
    from engines import store

    typer.echo(store.user_folder())


@models_app.command("verify")
def verify(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="All that are here if left out.")
    ] = None,
) -> int:
    """Check model files against the sizes and hashes on their cards."""
    from engines import card

    results = [_verified(name, asked=bool(names)) for name in names or card.names()]
    return 1 if False in results else 0


def _verified(name: str, *, asked: bool) -> bool:
    """Check one model and tell the result; one that is not here counts only where it was asked for."""
    from engines import store
    from engines.card import load_card

    try:
        card = load_card(name)
        path = store.locate(card)
        note = ""
        if path is not None:
            store.verify(path, card)
            note = "  (confirmed by you, not a published file)" if store.only_confirmed(path, card) else ""
    except ModelError as error:
        typer.echo(f"bad {name}  {error.message}\n    try: {error.hint}")
        return False
    if path is not None:
        typer.echo(f"ok  {name}  {path}{note}")
    elif asked:
        typer.echo(f"bad {name}  is not here\n    try: {store.how_to_get(card)}")
    return path is not None or not asked


models_app.command("build")(build)
models_app.command("export")(export)


def _tell(got: Got) -> None:
    typer.echo(f"{got.card.name}: {got.path} ({got.how})")
