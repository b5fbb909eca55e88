"""What doctor says of the ways to run networks, the best first, and why each is not used; knows no library."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from realtime.doctor import Check
from realtime.errors import DeviceError

AREA = "networks"


def examine_gpu() -> Iterator[Check]:
    """Go through the ways to run networks, and where there is a GPU through what a frame takes of it."""
    from engines import gpu_report, registry

    for step in gpu_report.chain():
        yield Check(AREA, step.name, "ok" if step.ok else "missing", step.found, step.fix)
    if not registry.probe("device", "cuda").ok:
        return
    try:
        lines = gpu_report.memory()
    except DeviceError as error:
        yield Check(AREA, "a frame on the GPU", "broken", error.message, error.hint)
        return
    for where, group in groupby(sorted(lines), key=lambda line: line[0]):
        for _, what, nbytes in group:
            yield Check(AREA, f"{where} memory", "ok", f"{nbytes / 1e6:6.1f} MB  {what}")
