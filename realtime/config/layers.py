"""Layers of settings, laid over each other and checked; knows which layer a wrong value came from, no folder."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from realtime.config.settings import Settings, all_keys, allowed_text
from realtime.errors import ConfigError

MANUAL = "every setting is explained in configs/default.toml"


@dataclass(frozen=True, slots=True)
class Layer:
    """Some settings and where a person wrote them.

    Attributes:
        origin: for people: ``"settings.toml"``, ``"--size"``.
        values: ``"section.name"`` -> raw value as TOML gives it. Every key exists; values are checked by ``resolve``.
    """

    origin: str
    values: Mapping[str, Any]


def flag(origin: str, key: str, value: Any) -> Layer:
    """Make the layer of one command line option, e.g. ``flag("--size", "input.size", "1280x720")``."""
    return Layer(origin, {key: value})


def read_layer(path: Path, *, optional: bool = False) -> Layer:
    """Read a settings file.

    Args:
        path: the file, TOML in UTF-8.
        optional: a file that does not exist is an empty layer.

    Raises:
        ConfigError: the file cannot be read, is not TOML, or holds something that is no setting.
    """
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        if optional:
            return Layer(path.name, {})
        raise ConfigError(f"there is no file {path}", "check the name") from error
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", "check the name and the permissions") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}", "correct that line, or move the file away") from error
    return Layer(path.name, _flatten(tree, str(path)))


def from_set_options(options: Sequence[str]) -> Layer:
    """Read ``--set section.name=value`` options; a value that is no TOML is taken as text.

    Raises:
        ConfigError: no ``=``, or no such setting.
    """
    values: dict[str, Any] = {}
    for option in options:
        key, equals, text = option.partition("=")
        if not equals:
            raise ConfigError(f"--set {option}: no value", "write it as --set section.name=value")
        values[_known(key.strip(), "--set")] = read_value(text.strip())
    return Layer("--set", values)


def resolve(layers: Iterable[Layer]) -> Settings:
    """Lay the layers over each other, the last one on top, and check the result.

    Raises:
        ConfigError: a value of the wrong type or out of range; names the layer, the key, the value and what is allowed.
    """
    merged: dict[str, tuple[Any, str]] = {}
    for layer in layers:
        merged |= {key: (value, layer.origin) for key, value in layer.values.items()}
    tree: dict[str, dict[str, Any]] = {}
    for key, (value, _) in merged.items():
        section, _, name = key.partition(".")
        tree.setdefault(section, {})[name] = value
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        raise _explain(error, merged) from error


def as_toml(value: Any) -> str:
    """Write a checked or raw setting as a TOML value; what TOML cannot say is written as Python does.

    A JSON text is a TOML text, except that TOML wants the character 127 escaped.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(as_toml(item) for item in value) + "]"
    return repr(value)


def _flatten(tree: Mapping[str, Any], origin: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for section, content in tree.items():
        if not isinstance(content, dict):
            raise _unknown(section, origin)
        values |= {_known(f"{section}.{name}", origin): value for name, value in content.items()}
    return values


def _known(key: str, origin: str) -> str:
    if key not in all_keys():
        raise _unknown(key, origin)
    return key


def _unknown(key: str, origin: str) -> ConfigError:
    """Name the nearest setting: of the whole key, or of the name where the section was left out or mistaken."""
    keys = all_keys()
    name = key.rpartition(".")[2]
    near = [known for known in keys if known.endswith(f".{name}")] or get_close_matches(key, keys, n=1, cutoff=0.7)
    if not near:
        names = {known.partition(".")[2]: known for known in reversed(keys)}
        near = [names[name] for name in get_close_matches(name, names, n=1, cutoff=0.75)]
    hint = f"did you mean {near[0]}? {MANUAL}" if near else MANUAL
    return ConfigError(f"{origin}: there is no setting {_short(key)}", hint)


def _explain(error: ValidationError, merged: Mapping[str, tuple[Any, str]]) -> ConfigError:
    """Say the first fault in words; the rest would only hide it."""
    section, name = (*error.errors()[0]["loc"], "")[:2]
    key = f"{section}.{name}"
    if key not in merged:
        return ConfigError(
            f"no value for the setting {key.rstrip('.')}", "reinstall: configs/default.toml is incomplete"
        )
    value, origin = merged[key]
    named_option = origin.startswith("--") and origin != "--set"
    return ConfigError(
        f"{origin}: {key} is {_short(as_toml(value))}, but must be {allowed_text(key)}",
        f"correct {origin if named_option else f'{key} in {origin}'}; {MANUAL}",
    )


def read_value(text: str) -> Any:
    """Read one value as TOML does; what is no TOML is text: ``30`` a number, ``me`` a text, ``nan`` a number."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return parsed["value"] if parsed.keys() == {"value"} else text


def _short(text: str) -> str:
    """Keep a message on one readable line whatever was typed."""
    line = "".join(char if char.isprintable() else "?" for char in text)
    return line if len(line) <= 80 else f"{line[:77]}..."
