"""A program: imports TensorRT's real bindings from a folder, over any libraries, and prints what they have.

Prints JSON: the version, and for each class its members, for each function its signatures, as their help says.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from typing import Any

_LINE = re.compile(r"^(?:\d+\. )?\w+\(.*\) -> .*$", re.MULTILINE)


def signatures(thing: Any) -> list[str]:
    """One line for each overload."""
    if inspect.isfunction(thing):  # written in Python
        return [f"{thing.__name__}{inspect.signature(thing)} -> Any"]
    return [line for line in _LINE.findall(thing.__doc__ or "") if "*args, **kwargs" not in line]


def member(thing: Any) -> dict[str, Any]:
    """What a member of a class is."""
    if isinstance(thing, property):
        return {"kind": "settable property" if thing.fset else "property"}
    if callable(thing):
        return {"kind": "method", "signatures": signatures(thing)}
    return {"kind": "value"}


def described(thing: Any) -> dict[str, Any]:
    """What a member of the module is."""
    if inspect.isclass(thing):
        kept = [name for name in dir(thing) if not name.startswith("_") or name == "__init__"]
        return {"kind": "class", "members": {name: member(getattr(thing, name)) for name in kept}}
    return member(thing)


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    import tensorrt_bindings

    module = {name: described(getattr(tensorrt_bindings, name)) for name in dir(tensorrt_bindings)}
    print(json.dumps({"version": tensorrt_bindings.__version__, "module": module}))
