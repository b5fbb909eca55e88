"""What a plain start repeats: what of the last run is still there, and what of this run is worth it; prints nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from realtime import config
from realtime.config import Layer, Settings
from realtime.errors import ConfigError
from realtime.sinks import parse_output
from realtime.sources import parse_input

REPEATED_OUTPUTS = ("auto", "virtualcam", "preview")
"""Kinds of output that are repeated. A recording never is: the second one would replace the first."""


def recall() -> tuple[Layer, tuple[str, ...]]:
    """Read what the last run used, without what is gone.

    Returns:
        The layer, and a warning for each thing that cannot be repeated. A damaged file is one of them and no more.
    """
    try:
        layer = config.read_last_run()
    except ConfigError as error:
        return Layer("the last run", {}), (f"the last run cannot be repeated: {error.message}",)
    values, warnings = {}, []
    for key, value in layer.values.items():
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
    source = parse_input(settings.input.what)
    is_file = source.kind in ("video", "image")
    config.remember(
        {
            "source.photos": [str(Path(photo).resolve()) for photo in settings.source.photos],
            "input.what": str(Path(source.target).resolve()) if is_file else settings.input.what,
            **_outputs(settings.output.to),
        }
    )


def repeated(settings: Settings, last_run: Layer) -> tuple[str, ...]:
    """Which of the last run's values are in use, for the banner."""
    now = {
        "source.photos": settings.source.photos,
        "input.what": settings.input.what,
        "output.to": settings.output.to,
    }
    names = {"source.photos": "face", "input.what": "input", "output.to": "output"}
    return tuple(names[key] for key, value in last_run.values.items() if value and value == now[key])


def _outputs(names: Sequence[str]) -> dict[str, Any]:
    live = [name for name in names if parse_output(name).kind in REPEATED_OUTPUTS]
    return {"output.to": live} if live else {}


def _gone(key: str, value: Any) -> str:
    if key == "source.photos":
        missing = [photo for photo in value if not Path(photo).is_file()]
        return f"there is no picture {missing[0]} any more" if missing else ""
    try:
        if key == "input.what":
            parse_input(value)
        else:
            for name in value:
                parse_output(name)
    except ConfigError as error:
        return error.message
    return ""
