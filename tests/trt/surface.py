"""Compares what a program uses of a module with what the module has; knows names and signatures, not meanings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, get_args, get_type_hints

Real = Mapping[str, Any]
"""What ``describe.py`` prints of a module."""
_PLAIN: dict[Any, tuple[str, ...]] = {bool: ("bool",), int: ("int",), str: ("str",), type(None): ("None",)}


class Signature(NamedTuple):
    """One way to call something.

    Attributes:
        names: of the arguments, without ``self``.
        required: how many of them must be given.
        returns: as the help says it.
    """

    names: tuple[str, ...]
    required: int
    returns: str


def is_table(thing: object) -> bool:
    """Whether something is a protocol, that is, part of the table of what is used."""
    return isinstance(thing, type) and bool(getattr(thing, "_is_protocol", False))


def tables(module: type, *apis: Any) -> dict[str, list[type]]:
    """Find the tables of the classes that a program uses.

    Args:
        module: the protocol of the module.
        apis: the modules that hold the tables.

    Returns:
        The real name of a class -> tables of it: of the class itself, and of its objects.
    """
    found: dict[str, list[type]] = {}
    for name, table in get_type_hints(module).items():
        if is_table(table):
            found.setdefault(name, []).append(table)
            if "__call__" in vars(table):
                found[name].append(get_type_hints(vars(table)["__call__"])["return"])
    known = {table for listed in found.values() for table in listed} | set(module.__mro__)
    for api in apis:
        for table in vars(api).values():
            if is_table(table) and table.__module__ == api.__name__ and table not in known:
                found.setdefault(table.__name__, []).append(table)
    return found


def faults(module: type, real: Real, *apis: Any) -> list[str]:
    """List what is used and is not there, or is there otherwise.

    Args:
        module: the protocol of the module, with all that it inherits.
        real: what the module has.
        apis: the modules that hold the tables.
    """
    listed = tables(module, *apis)
    names = {table: name for name, found in listed.items() for table in found}
    missing = [f"{name} is not there" for name in get_type_hints(module) if name not in real]
    for name, function in functions(module):
        missing += _compared(name, function, real.get(name), names)
    for name, found in listed.items():
        if real.get(name, {}).get("kind") != "class":
            missing.append(f"{name} is no class there")
            continue
        for table in found:
            missing += class_faults(name, table, real[name]["members"], names)
    return sorted(set(missing))


def class_faults(name: str, used: type, members: Mapping[str, Any], names: Mapping[type, str]) -> Iterator[str]:
    """List what differs between a class, or the table of one, and the members of the real one."""
    for attribute in get_type_hints(used):
        if not attribute.startswith("_") and members.get(attribute, {}).get("kind") not in (
            "value",
            "settable property",
        ):
            yield f"{name}.{attribute} is not there"
    for attribute, thing in vars(used).items():
        if isinstance(thing, property) and members.get(attribute, {}).get("kind") not in (
            "property",
            "settable property",
        ):
            yield f"{name}.{attribute} is no property there"
    for attribute, function in functions(used):
        yield from _compared(f"{name}.{attribute}", function, members.get(attribute), names)


def functions(used: type) -> Iterator[tuple[str, Any]]:
    """The functions of a class and of the tables that it inherits; calling the class is called ``__init__``."""
    for kind in reversed(used.__mro__):
        if kind is not object and (is_table(kind) or kind is used):
            for name, thing in vars(kind).items():
                if inspect.isfunction(thing) and (not name.startswith("_") or (name == "__call__" and is_table(used))):
                    yield ("__init__" if name == "__call__" else name), thing


def _compared(name: str, function: Any, real: Mapping[str, Any] | None, names: Mapping[type, str]) -> Iterator[str]:
    if real is None or real["kind"] != "method":
        yield f"{name} is no function there"
        return
    mine = [argument for argument in inspect.signature(function).parameters if argument != "self"]
    known = [signature(line) for line in real["signatures"]]
    fitting = [one for one in known if list(one.names[: len(mine)]) == mine and len(mine) >= one.required]
    if not fitting:
        yield f"{name}({', '.join(mine)}) is called otherwise there: {' or '.join(real['signatures'])}"
        return
    wanted = get_type_hints(function).get("return", Any)
    if not name.endswith("__init__") and not any(_gives(one.returns, wanted, names) for one in fitting):
        yield f"{name} gives {fitting[0].returns} there"


def _gives(returns: str, wanted: Any, names: Mapping[type, str]) -> bool:
    """Whether a result is of a type; what the table leaves open is not looked at."""
    kinds = (
        [kind for kind in get_args(wanted) if kind is not type(None)] if type(None) in get_args(wanted) else [wanted]
    )
    # Where the help was written before the class was known it has the name of C++, "nvinfer1::IBuilder".
    last = returns.rpartition(".")[2].rpartition("::")[2]
    for kind in kinds:
        if kind in _PLAIN:
            return returns in _PLAIN[kind]
        if kind in names:
            return last in (names[kind], f"I{names[kind]}")
    return True


def signature(line: str) -> Signature:
    """Read one line of help, e.g. ``"f(self: a.B, x: list[int], y: int = 3) -> bool"``."""
    inside, _, returns = line.partition("(")[2].rpartition(") -> ")
    parts = [part.strip() for part in _split(inside)]
    parts = [part for part in parts if part and part.partition(":")[0] != "self"]
    names = tuple(re.split(r"[:=]", part)[0].strip() for part in parts)
    required = sum("=" not in re.sub(r"<[^>]*>", "", part) for part in parts)
    return Signature(names, required, returns.strip())


def _split(text: str) -> Iterator[str]:
    """Split at commas that stand in no brackets."""
    depth, start = 0, 0
    for number, letter in enumerate(text):
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == "," and depth == 0:
            yield text[start:number]
            start = number + 1
    yield text[start:]
