"""What doctor says of a GPU: what is missing, the ways to run networks, best first, and memory; knows no library."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from engines import gpu_report
from engines.contract import Availability
from engines.gpu_report import Finding
from realtime.doctor import Check
from realtime.errors import DeviceError

MB = 1_000_000
_WHICH_FRAME = re.compile(r",? (of )?frame \d+")
MESH = Finding("4 mesh", Availability(True, "needs no network"))


def examine_gpu() -> Iterator[Check]:
    """Go through what networks on a GPU need, and the ways to run them; where there is a GPU, send frames to it."""
    parts = gpu_report.parts()
    yield from _checks("gpu", (*parts, *gpu_report.plans()))
    yield from _checks("networks", (*gpu_report.chain(parts), MESH))
    if gpu_report.can_be_driven():
        yield from _memory()


def _checks(area: str, found: Iterable[Finding]) -> Iterator[Check]:
    for name, one in found:
        yield Check(area, name, "ok" if one.ok else "missing", one.reason, one.hint)


def _memory() -> Iterator[Check]:
    """Say what a run takes of the GPU before any network is opened; what each frame in flight has is one row."""
    area = "gpu memory"
    try:
        told = gpu_report.memory()
    except DeviceError as error:
        yield Check(area, "two frames", "broken", error.message, error.hint)
        return
    yield Check(area, "driven as", "ok", f"{told.device}, driver for CUDA {told.cuda}")
    yield Check(area, "free", "ok", f"{told.free_bytes // MB} of {told.total_bytes // MB} MB")
    for remark in told.remarks:
        yield Check(area, "remark", "ok", remark)
    sums: Counter[tuple[str, str]] = Counter()
    for where, what, nbytes in told.lines:
        sums[where, _WHICH_FRAME.sub("", what)] += nbytes
    for (where, what), nbytes in sorted(sums.items()):
        yield Check(area, where, "ok", f"{nbytes / MB:6.1f} MB  {what}")
