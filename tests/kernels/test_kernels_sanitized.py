"""The kernels under AddressSanitizer and UndefinedBehaviorSanitizer: nothing is read or written beyond its memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.kernels.host import KERNELS, compiler

pytestmark = pytest.mark.kernels_host
MISTAKES = {
    "AddressSanitizer": (
        "faces", "paste.cu",  # rows below the picture are painted too
        "total = width * (block.bottom - block.top);", "total = width * (block.bottom - block.top + 60);",
    ),
    "outside the range of representable values": (
        "meshes", "mesh.cu",  # a far point becomes an integer before it is clipped
        "(int)ceilf(fmaxf(fminf(k.a[0], fminf(k.b[0], k.c[0])), 0.0f))",
        "max(0, (int)ceilf(fminf(k.a[0], fminf(k.b[0], k.c[0]))))",
    ),
    "signed integer overflow": (
        "meshes", "mesh.cu",
        "int x = i % block.width, y = i / block.width;", "int x = i % block.width, y = i / block.width * 2000000000;",
    ),
}  # fmt: skip
"""What is wrong by the words of who finds it: the part of the run, the file, what stands there, what should not."""


def run(folder: Path, sources: Path, *what: str) -> subprocess.CompletedProcess[str]:
    """Run kernels on a build with sanitizers; ``what`` are functions of ``sanitized``."""
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
        [sys.executable, str(script), str(folder), str(sources), *what],
        check=False, capture_output=True, text=True, env=environment, timeout=300,
    )  # fmt: skip


def test_the_kernels_are_clean(tmp_path: Path) -> None:
    done = run(tmp_path, KERNELS, "faces", "meshes", "marks")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip().endswith("done")


@pytest.mark.parametrize("words", MISTAKES)
def test_a_kernel_with_a_mistake_is_found(tmp_path: Path, words: str) -> None:
    what, name, right, wrong = MISTAKES[words]
    sources, built = tmp_path / "sources", tmp_path / "built"
    shutil.copytree(KERNELS, sources)
    built.mkdir()
    file = sources / name
    assert right in file.read_text(encoding="utf-8")
    file.write_text(file.read_text(encoding="utf-8").replace(right, wrong), encoding="utf-8")
    done = run(built, sources, what)
    assert done.returncode != 0
    assert words in done.stderr
    assert name in done.stderr
