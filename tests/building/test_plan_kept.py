"""However the writing of a plan ends, what is found afterwards is a whole plan or none."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from engines.cuda.driver import Gpu
from engines.errors import ModelError
from engines.plan import Plan, find_plan, keep
from engines.sidecar import Sidecar
from engines.store import disk
from tests.building.stand import small_model

GPU = Gpu("RTX 4090", (8, 9), 1, "13.0", "GPU-1")
VERSION = "11.4.0.106"
HASH = "0" * 64
SHAPES = {"in": (1, 3, 8, 8), "out": (1, 3, 8, 8)}
NOTE = Sidecar("one", HASH, SHAPES, ("style",), "fp16", VERSION, GPU.name, GPU.capability, GPU.uuid, GPU.driver, "1")


def plan_data(content: bytes) -> bytes:
    return b"ftrt".ljust(24, b"\0") + bytes((11, 4, 0, 106)) + content


class Interrupt(BaseException):
    """The process is killed."""


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_plan_whose_writing_is_cut_off_is_no_plan(
    mine: Path, monkeypatch: pytest.MonkeyPatch, at: int, is_first: bool
) -> None:
    card = small_model(mine)
    if not is_first:
        keep(card, plan_data(b"old"), b"old style", NOTE)
    commit, done = disk.commit, list[Path]()

    def cut_off(part: Path, path: Path) -> None:
        if len(done) == at:
            raise Interrupt
        done.append(path)
        commit(part, path)

    monkeypatch.setattr(disk, "commit", cut_off)
    with pytest.raises(Interrupt):
        keep(card, plan_data(b"new"), b"new style", NOTE)
    assert isinstance(find_plan(card, HASH, GPU, VERSION), str)
    monkeypatch.setattr(disk, "commit", commit)
    keep(card, plan_data(b"new"), b"new style", NOTE)
    found = find_plan(card, HASH, GPU, VERSION)
    assert isinstance(found, Plan)
    assert (found.read(), found.read_style()) == (plan_data(b"new"), b"new style")


def test_a_full_disk_is_told_and_costs_nothing(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = small_model(mine)
    before = keep(card, plan_data(b"old"), b"old style", NOTE)
    write = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        if path.name.endswith(".plan.part"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ModelError, match=r"no room for .*: the disk is full"):
        keep(card, plan_data(b"new"), b"new style", replace(NOTE, uuid="GPU-2"))
    assert find_plan(card, HASH, GPU, VERSION) == before
    assert before.read_style() == b"old style"
