"""The kernels under AddressSanitizer and UndefinedBehaviorSanitizer: nothing is read or written beyond its memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.kernels.host import KERNELS, compiler

pytestmark = pytest.mark.kernels_host
WRITES_BESIDE = ("total = width * (block.bottom - block.top);", "total = width * (block.bottom - block.top + 60);")
"""A mistake: rows below the picture are painted too."""


def run(folder: Path, sources: Path) -> subprocess.CompletedProcess[str]:
    """Run the core of the host tests on a build with sanitizers."""
    if compiler() is None:
        pytest.skip("g++ is not installed")
    libraries = [
        subprocess.run(["g++", f"-print-file-name={name}"], check=True, capture_output=True, text=True).stdout.strip()
        for name in ("libasan.so", "libubsan.so", "libstdc++.so")
    ]
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join(libraries),
        # Python frees little at its end, and fibres have stacks that the sanitizer does not know.
        "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONPATH": str(ROOT),
    }
    script = Path(__file__).with_name("sanitized.py")
    return subprocess.run(
        [sys.executable, str(script), str(folder), str(sources)],
        check=False, capture_output=True, text=True, env=environment, timeout=300,
    )  # fmt: skip


def test_the_kernels_are_clean(tmp_path: Path) -> None:
    done = run(tmp_path, KERNELS)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip().endswith("done")


def test_a_kernel_that_writes_beside_its_picture_is_found(tmp_path: Path) -> None:
    sources, built = tmp_path / "sources", tmp_path / "built"
    sources.mkdir()
    built.mkdir()
    for file in KERNELS.iterdir():
        (sources / file.name).write_text(file.read_text(encoding="utf-8").replace(*WRITES_BESIDE), encoding="utf-8")
    done = run(built, sources)
    assert done.returncode != 0
    assert "AddressSanitizer" in done.stderr
    assert "paste" in done.stderr
