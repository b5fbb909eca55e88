"""The process that builds, on a machine that has a GPU as far as it can tell."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace
from typing import Any

from engines.building import child
from engines.cuda import opening
from engines.cuda.driver import Gpu


def open_driver() -> Any:
    changed = json.loads(os.environ.get("FAKE_GPU", "{}"))
    facts = {"name": "RTX 4090", "capability": (8, 9), "memory_bytes": 1, "driver": "13.0", "uuid": "GPU-1", **changed}
    gpu = Gpu(**{**facts, "capability": tuple(facts["capability"])})
    return SimpleNamespace(gpu=gpu, close=lambda: None)


def start() -> None:
    opening.open_driver = open_driver
    child.main()


if __name__ == "__main__":
    start()
