"""A program: opens a back end for one law of the contract after another and prints what came of each, as JSON.

A process of its own, because a libcuda cannot be changed for another once it is loaded, and may go down.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from engines.cuda.driver import Driver
from engines.errors import DeviceError
from tests.cuda.driver_contract import CUPY_LAWS, LAWS, Law


def opener(target: str) -> Callable[[], Driver]:
    """The class behind "module:Class"."""
    module, _, name = target.partition(":")
    found: Callable[[], Driver] = getattr(importlib.import_module(module), name)
    return found


def broken_laws(open_driver: Callable[[], Driver], laws: Iterable[Law]) -> dict[str, str]:
    """Law -> how it was broken, "" for one that was obeyed."""
    found = {}
    for law in laws:
        driver = open_driver()
        try:
            law(driver)
        except (AssertionError, pytest.fail.Exception, DeviceError):
            found[law.__name__] = traceback.format_exc()
        else:
            found[law.__name__] = ""
        finally:
            driver.close()
    return found


def main(target: str) -> dict[str, Any]:
    """All laws on a real GPU."""
    return broken_laws(opener(target), LAWS + CUPY_LAWS)


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
