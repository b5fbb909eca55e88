"""What a plain start repeats: what of the last run is still there, and what of this run is worth it; prints nothing."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from engines import store
from engines.card import load_card
from engines.errors import ModelError
from realtime import config
from realtime.config import Layer, Settings
from realtime.errors import ConfigError
from realtime.people.parts import pairs
from realtime.sinks import parse_output
from realtime.sources import NETWORKED, parse_input
from realtime.swappers import MESH

REPEATED_OUTPUTS = ("auto", "virtualcam", "preview")
"""Kinds of output that are repeated. A recording never is: the second one would replace the first."""
PEOPLE = ("faces.only", "faces.map")
"""Keys that say who gets whose face."""
RECOGNISED_BY = ("faces.recogniser", "faces.match")
"""Keys that say by what these people are known again: another model may not be here, or judge otherwise."""
MODELS = ("swap.engine", "enhance.model")
"""Keys that name the models that make the face."""
LABELS = {
    "source.photos": "face",
    **dict.fromkeys((*PEOPLE, *RECOGNISED_BY), "people"),
    "swap.engine": "model",
    "enhance.model": "enhancer",
    "input.what": "input",
    "output.to": "output",
}
"""What the banner calls each thing that is repeated."""


def recall(*, new_face: bool = False) -> tuple[Layer, tuple[str, ...]]:
    """Read what the last run used, without what is gone.

    Args:
        new_face: a photo is named for this run. Then the demo or a file as input is not taken over: it was a trial or
            one job, and who names a photo next means the camera. Nor is who got whose face.

    Returns:
        The layer, and a warning for each thing that cannot be repeated. A damaged file is one of them and no more.
    """
    try:
        layer = config.read_last_run()
    except ConfigError as error:
        return Layer("the last run", {}), (f"the last run cannot be repeated: {error.message}",)
    values, warnings = {}, []
    for key, value in layer.values.items():
        if new_face and (key in (*PEOPLE, *RECOGNISED_BY) or (key == "input.what" and _is_one_job(value))):
            continue
        if gone := _gone(key, value):
            warnings.append(f"not as in the last run: {gone}")
        else:
            values[key] = value
    return Layer(layer.origin, values), tuple(warnings)


def keep(settings: Settings) -> None:
    """Note what this run uses; files by their full path, because the next start may be elsewhere.

    Raises:
        ConfigError: it cannot be written.
    """
    here = with_full_paths(settings)
    by = RECOGNISED_BY if here.faces.only or here.faces.map else ()
    config.remember(
        {
            "source.photos": here.source.photos,
            **{key: value for key in (*PEOPLE, *by, *MODELS) if (value := _of(here, key)) not in ((), "", MESH)},
            **({} if parse_input(here.input.what).kind in NETWORKED else {"input.what": here.input.what}),
            **_outputs(settings.output.to),
        }
    )


def with_full_paths(settings: Settings) -> Settings:
    """The same settings, with photos and a file as input by their full paths: the next start may be elsewhere."""
    people = {
        "only": _full(settings.faces.only),
        "map": tuple("=".join(_full(pair)) for pair in pairs(settings.faces.map)),
    }
    source = parse_input(settings.input.what)
    what = str(Path(source.target).resolve()) if source.kind in ("video", "image") else settings.input.what
    return settings.model_copy(
        update={
            "source": settings.source.model_copy(update={"photos": _full(settings.source.photos)}),
            "faces": settings.faces.model_copy(update=people),
            "input": settings.input.model_copy(update={"what": what}),
        }
    )


def repeated(settings: Settings, last_run: Layer, typed: Collection[str] = ()) -> tuple[str, ...]:
    """Which of the last run's values are in use, for the banner.

    Args:
        settings: of this run.
        last_run: see ``recall``.
        typed: keys that the command line gives itself, the same value or not.
    """
    taken = {key: value for key, value in last_run.values.items() if key not in typed}
    return tuple(dict.fromkeys(LABELS[key] for key, value in taken.items() if value and value == _of(settings, key)))


def _of(settings: Settings, key: str) -> Any:
    """The value of a setting by its key."""
    section, _, name = key.partition(".")
    return getattr(getattr(settings, section), name)


def _full(paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(Path(path).resolve()) for path in paths)


def _is_one_job(what: str) -> bool:
    try:
        return parse_input(what).kind in ("demo", "video", "image")
    except ConfigError:  # gone, and told as such
        return False


def _outputs(names: Sequence[str]) -> dict[str, Any]:
    live = [name for name in names if parse_output(name).kind in REPEATED_OUTPUTS]
    return {"output.to": live} if live else {}


def _gone(key: str, value: Any) -> str:
    if key == "source.photos" or key in PEOPLE:
        photos = itertools.chain.from_iterable(pairs(value)) if key == "faces.map" else value
        missing = [photo for photo in photos if not Path(photo).is_file()]
        return f"there is no picture {missing[0]} any more" if missing else ""
    if key in MODELS:
        return _model_gone(value)
    if key in RECOGNISED_BY:  # without it these people cannot be told apart, so the run may say that it is missing
        return ""
    try:
        if key == "input.what":
            parse_input(value)
        else:
            for name in value:
                parse_output(name)
    except ConfigError as error:
        return error.message
    return ""


def _model_gone(name: str) -> str:
    try:
        here = name == MESH or store.locate(load_card(name)) is not None
    except ModelError as error:
        return error.message
    return "" if here else f"the model {name} is not here any more"
