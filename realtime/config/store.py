"""Where settings lie on disk: shipped, the user's own, saved profiles, the last run; knows no meaning of a setting."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from platformdirs import user_config_path, user_state_path

from realtime.config.layers import Layer, as_toml, flag, read_layer, resolve
from realtime.config.settings import Settings
from realtime.errors import ConfigError

APP = "doppelcam"
SHIPPED = Path(__file__).resolve().parents[2] / "configs"
# What a plain start repeats. Everything else that should last belongs in a profile or in settings.toml.
REMEMBERED_KEYS = (
    "source.photos",
    "faces.only",
    "faces.map",
    "faces.recogniser",
    "faces.match",
    "swap.engine",
    "enhance.model",
    "input.what",
    "output.to",
)
# True of one run only, so never saved.
ONE_RUN_KEYS = ("run.duration_s", "run.stats_file")


def config_dir() -> Path:
    """The user's folder for ``settings.toml`` and ``profiles/``; may not exist yet."""
    return user_config_path(APP, appauthor=False)


def last_run_path() -> Path:
    """The file that holds what the last run used."""
    return user_state_path(APP, appauthor=False) / "last.toml"


def default_layer() -> Layer:
    """The shipped defaults: every setting once."""
    return read_layer(SHIPPED / "default.toml")


def load(profile: str | None, overrides: Sequence[Layer], last_run: Layer | None = None) -> Settings:
    """Read every layer in its order and check the result.

    From the bottom: shipped defaults, what the last run used, the user's ``settings.toml``, the profile, then
    ``overrides`` (command line). What was remembered lies low on purpose: it fills only what nobody says.

    Args:
        profile: name of a shipped or saved profile, or ``None``.
        overrides: the layers of the command line, lowest first.
        last_run: see ``read_last_run``; ``None`` where it does not count.

    Raises:
        ConfigError: a settings file, profile or option is wrong.
    """
    layers = [default_layer()]
    if last_run is not None:
        layers.append(last_run)
    layers.append(read_layer(config_dir() / "settings.toml", optional=True))
    if profile is not None:
        layers.append(profile_layer(profile))
    return resolve([*layers, *overrides])


def profile_names() -> tuple[str, ...]:
    """Every profile that ``--profile`` takes: shipped ones and saved ones, sorted."""
    folders = (SHIPPED / "profiles", config_dir() / "profiles")
    return tuple(sorted({path.stem for folder in folders for path in folder.glob("*.toml")}))


def profile_layer(name: str) -> Layer:
    """Read a profile; a shipped one wins over a saved one, and saving under a shipped name is refused.

    Raises:
        ConfigError: there is none of that name, or it holds something wrong.
    """
    if name not in profile_names():
        known = ", ".join(profile_names())
        raise ConfigError(
            f"--profile: there is no profile {name!r}", f"use one of {known}, or save one with --save NAME"
        )
    shipped = SHIPPED / "profiles" / f"{name}.toml"
    return read_layer(shipped if shipped.exists() else config_dir() / "profiles" / f"{name}.toml")


def save_profile(name: str, settings: Settings) -> Path:
    """Write what differs from the shipped defaults as a profile of the user, replacing one of that name.

    Args:
        name: letters, digits, ``-`` and ``_``.
        settings: the settings to save; those that are true of one run only are left out.

    Returns:
        The file.

    Raises:
        ConfigError: the name cannot be used or the file cannot be written.
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise ConfigError(f"--save: {name!r} cannot be a profile name", "use letters, digits, - and _ only")
    if (SHIPPED / "profiles" / f"{name}.toml").exists():
        raise ConfigError(f"--save: the profile {name} ships with doppelcam", "choose another name")
    base = _flat(resolve([default_layer()]))
    changed = {key: value for key, value in _flat(settings).items() if value != base[key] and key not in ONE_RUN_KEYS}
    path = config_dir() / "profiles" / f"{name}.toml"
    _write(path, f"# Saved by --save {name}; used with --profile {name}.\n", changed)
    return path


def changed(settings: Settings, key: str, value: Any, origin: str) -> Settings:
    """Make the same settings with another value, checked.

    Args:
        settings: as they are.
        key: ``"section.name"``.
        value: as TOML or JSON gives it.
        origin: who wants it, for the message.

    Raises:
        ConfigError: there is no such setting, or it does not take this value.
    """
    return resolve([Layer("the run", _flat(settings)), flag(origin, key, value)])


def read_last_run() -> Layer:
    """Read what the last run used, as checked values; empty when there was none.

    Raises:
        ConfigError: the file is damaged.
    """
    layer = read_layer(last_run_path(), optional=True)
    checked = _flat(resolve([default_layer(), layer]))
    return Layer("the last run", {key: checked[key] for key in REMEMBERED_KEYS if key in layer.values})


def remember(values: Mapping[str, Any]) -> None:
    """Note what a run used, for the next plain start.

    Args:
        values: ``"section.name"`` -> value, of ``REMEMBERED_KEYS``.

    Raises:
        ConfigError: the file cannot be written.
    """
    _write(last_run_path(), "# What the last run used; written by doppelcam, safe to delete.\n", values)


def _flat(settings: Settings) -> dict[str, Any]:
    tree = settings.model_dump()
    return {f"{section}.{name}": value for section, content in tree.items() for name, value in content.items()}


def _write(path: Path, head: str, values: Mapping[str, Any]) -> None:
    """Write a settings file in one step, so that a reader sees the old one or the new one and never a half."""
    lines = [head]
    section = ""
    for key, value in values.items():
        table, _, name = key.partition(".")
        if table != section:
            lines.append(f"\n[{table}]\n")
            section = table
        lines.append(f"{name} = {as_toml(value)}\n")
    partial = path.with_suffix(".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text("".join(lines), encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}", "make the folder writable") from error
    except UnicodeEncodeError as error:
        raise ConfigError(f"{values} holds a name that is no valid text", "rename that file") from error
